package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"sqe/catalog/objects"
	"sqe/catalog/rest"
	"sqe/fault"
	"sqe/plan"
)

func keyOf(n string) map[string]string {
	return map[string]string{"s3.access-key-id": "KEY-" + n, "s3.secret-access-key": "SECRET-" + n, "s3.session-token": "TOKEN-" + n, "s3.endpoint": "https://store.example"}
}

func vendedTable(t *testing.T) table.Metadata {
	t.Helper()
	meta, err := table.NewMetadata(iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64}), iceberg.UnpartitionedSpec, table.UnsortedSortOrder, "s3://b/wh/t", iceberg.Properties{"write.data.path": "s3://b/data/t"})
	if err != nil {
		t.Fatal(err)
	}
	return meta
}

// TestVendedPrefixes: which credentials are used for a file. Those for a prefix go before
// those of the configuration, longer prefixes before shorter ones, and no part of one set
// is ever used with a part of another one.
func TestVendedPrefixes(t *testing.T) {
	c := &REST{common: common{name: "lake"}}
	bare := keyOf("bare")
	delete(bare, "s3.session-token")
	config := keyOf("config")
	config["s3.session-token-expires-at-ms"] = "4102444800000"
	all, err := c.vended(vendedTable(t), config, []rest.StorageCredential{
		{Prefix: "s3://b/wh/t/metadata/", Config: keyOf("long")},
		{Prefix: "s3://b/wh/t", Config: bare},
		{Prefix: "s3a://b/wh", Config: keyOf("short")},
		{Prefix: "gs://b/wh/t", Config: keyOf("google")},
		{Prefix: "s3://other", Config: keyOf("bucket")},
	})
	if err != nil {
		t.Fatal(err)
	}
	by := map[*objects.Client]objects.Credentials{}
	var grants []grant
	for _, v := range all {
		client, err := objects.New(v.options)
		if err != nil {
			t.Fatal(err)
		}
		by[client] = v.options.Credentials
		for _, p := range v.places {
			grants = append(grants, grant{p, v.rank, client})
		}
	}
	for location, want := range map[string]string{
		"s3://b/wh/t/metadata/m.avro": "long", "s3://b/wh/t/data/f": "bare", "s3n://b/wh/u/f": "short", "s3://b/wh/t2/f": "short",
		"s3://b/data/t/f": "bucket", "s3://b/elsewhere/f": "", "s3://other/f": "", "file:///wh/t/f": "",
	} {
		got := by[best(grants, location)]
		if want == "" && got.AccessKeyID != "" || want != "" && got.AccessKeyID != "KEY-"+want {
			t.Errorf("%s: %q, want %q", location, got.AccessKeyID, want)
		}
		if want == "bare" && (got.SessionToken != "" || !got.Expires.IsZero()) {
			t.Error("a key goes with the token or the time of another one")
		}
	}
	if len(all) != 5 {
		t.Errorf("%d sets", len(all))
	}
	if text := fmt.Sprintf("%v %+v %#v", all, all, all[0]); strings.Contains(text, "SECRET") || strings.Contains(text, "KEY-") {
		t.Error(text)
	}
	// Signing by the catalog, with or without a prefix.
	for _, config := range []map[string]string{{"s3.remote-signing-enabled": "true"}, {}} {
		_, err := c.vended(vendedTable(t), config, []rest.StorageCredential{{Prefix: "s3://b/wh", Config: map[string]string{"s3.remote-signing-enabled": "true"}}})
		if !fault.Is(err, fault.Unsupported) {
			t.Error(err)
		}
	}
}

// TestRenewal: what comes in the place of credentials is for the same place in the same
// store; all places of a table are asked for at once.
func TestRenewal(t *testing.T) {
	c := &REST{common: common{name: "lake"}, now: time.Now}
	name := plan.TableName{Catalog: "lake", Namespace: []string{"ns"}, Name: "t"}
	meta := vendedTable(t)
	sets := func(config map[string]string, credentials ...rest.StorageCredential) []vend {
		t.Helper()
		all, err := c.vended(meta, config, credentials)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	old := sets(keyOf("c"), rest.StorageCredential{Prefix: "s3://b/wh/t", Config: keyOf("a")}, rest.StorageCredential{Prefix: "s3://b/data/t", Config: keyOf("b")})
	var answer []vend
	var refused error
	asked := 0
	fresh := func() *renewal {
		asked = 0
		return &renewal{c: c, name: name, turn: make(chan struct{}, 1), again: func(context.Context) ([]vend, error) { asked++; return answer, refused }}
	}
	want := func(r *renewal, v vend, key string, times int) {
		t.Helper()
		got, err := r.of(v)(context.Background())
		if got.AccessKeyID != key || (err == nil) != (key != "") || asked != times {
			t.Errorf("%q, %v, asked %d times; want %q, asked %d times", got.AccessKeyID, err, asked, key, times)
		}
		if err != nil && fault.KindOf(err) == fault.Internal {
			t.Error(err)
		}
	}
	answer = sets(nil, rest.StorageCredential{Prefix: "s3://b/data/t", Config: keyOf("b2")}, rest.StorageCredential{Prefix: "s3://b/wh/t", Config: keyOf("a2")})
	r := fresh()
	want(r, old[0], "KEY-a2", 1)
	want(r, old[1], "KEY-b2", 1) // came with the other one
	want(r, old[0], "KEY-a2", 2)
	want(fresh(), old[2], "", 1) // nothing covers both folders of the table
	answer = sets(nil, rest.StorageCredential{Prefix: "s3", Config: keyOf("whole")})
	want(fresh(), old[0], "KEY-whole", 1)
	want(fresh(), old[2], "KEY-whole", 1)
	answer = sets(nil, rest.StorageCredential{Prefix: "s3://b/wh/other", Config: keyOf("x")})
	want(fresh(), old[0], "", 1)
	elsewhere := keyOf("a3")
	elsewhere["s3.endpoint"] = "https://elsewhere.example"
	answer = sets(nil, rest.StorageCredential{Prefix: "s3://b/wh/t", Config: elsewhere})
	want(fresh(), old[0], "", 1)
	answer, refused = nil, missing(name)
	if _, err := fresh().of(old[0])(context.Background()); !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), "expired during the statement") || !errors.Is(err, refused) {
		t.Error(err)
	}
	// One that came for another place, and has expired since, is not used.
	late := keyOf("late")
	late["s3.session-token-expires-at-ms"] = "1"
	refused, answer = nil, sets(nil, rest.StorageCredential{Prefix: "s3://b/wh/t", Config: keyOf("a4")}, rest.StorageCredential{Prefix: "s3://b/data/t", Config: late})
	r = fresh()
	want(r, old[0], "KEY-a4", 1)
	want(r, old[1], "KEY-late", 2) // it was asked again; what a store makes of it is not known here
}
