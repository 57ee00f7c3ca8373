package ranger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"sqe/audit"
	"sqe/policy"
)

func testConverter(dataType string) *converter {
	data := Service{Name: "hive_svc", Type: "hive", ID: 3}
	if dataType == "trino" {
		data = Service{Name: "trino_svc", Type: "trino", ID: 203}
	}
	return &converter{
		naming: Naming{Agent: "sqe", Host: "sqe-1", Cluster: "lake"},
		sources: []Source{{
			Name: "ranger", Realm: "POLARIS",
			Services: func() (Service, Service) { return Service{Name: "polaris_svc", Type: "polaris", ID: 205}, data },
		}},
	}
}

// TestEvents: the file testdata/events shows which events of Ranger a statement
// becomes. "event" gives the lines of a file, "solr" the documents.
func TestEvents(t *testing.T) {
	datadriven.RunTest(t, "testdata/events", func(t *testing.T, d *datadriven.TestData) string {
		dataType := "hive"
		if d.HasArg("type") {
			d.ScanArgs(t, "type", &dataType)
		}
		e := audit.Event{Run: "run1", Seq: 7, Time: time.Date(2026, 3, 1, 12, 30, 15, 123456789, time.UTC), Type: "statement", User: "alice", Remote: "10.1.2.3:51234", Connection: 42, DurationMS: 12.7}
		decoder := json.NewDecoder(strings.NewReader(d.Input))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&e); err != nil {
			d.Fatalf(t, "%v", err)
		}
		events := testConverter(dataType).events(e)
		text, err := lines(new(bytes.Buffer), events)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		if d.Cmd == "event" {
			if len(events) == 0 {
				return "no event"
			}
			return string(text)
		}
		docs, err := solrDocs(split(text))
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return strings.ReplaceAll(string(docs), "},{", "},\n{")
	})
}

func split(text []byte) [][]byte {
	var out [][]byte
	for line := range strings.Lines(string(text)) {
		out = append(out, []byte(strings.TrimSuffix(line, "\n")))
	}
	return out
}

// TestMembers holds the members of a line to those of Ranger's class, in its
// order: the lines that plugins of released Rangers wrote must read and write back
// as they are.
func TestMembers(t *testing.T) {
	for _, line := range []string{
		`{"repoType":7,"repo":"kms","reqUser":"admin","evtTime":"2022-04-14 07:47:21.660","access":"getkeys","resType":"keyname","action":"getkeys","result":1,"agent":"kms","policy":42,"enforcer":"ranger-acl","cliIP":"172.27.187.194","agentHost":"host","logType":"RangerAudit","id":"9404917a-7353-413f-aa6e-171ea74e9c71-0","seq_num":1,"event_count":1,"event_dur_ms":1,"cluster_name":"Cluster 1","policy_version":2}`,
		`{"repoType":3,"repo":"hive","reqUser":"a","evtTime":"2022-04-14 07:47:21.660","access":"SELECT","resource":"db/t/a,b","resType":"@column","action":"select","result":0,"agent":"hiveServer2","policy":-1,"reason":"r","enforcer":"ranger-acl","sess":"s","cliType":"HIVESERVER2","cliIP":"1.1.1.1","reqData":"select ? from t where a < ?","agentHost":"h","logType":"RangerAudit","id":"u-1","seq_num":0,"event_count":1,"event_dur_ms":0,"tags":["{\"type\":\"PII\"}"],"additional_info":"{\"remote-ip-address\":\"1.1.1.1\"}","cluster_name":"c","zone_name":"z"}`,
	} {
		var e Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if got, err := lines(new(bytes.Buffer), []Event{e}); err != nil || string(got) != line+"\n" {
			t.Errorf("got  %s\nwant %s (%v)", got, line, err)
		}
	}
}

// TestDottedNames: the parts of a name are told apart although they hold dots and
// slashes.
func TestDottedNames(t *testing.T) {
	e := audit.Event{
		Type: "statement", Outcome: "ok",
		Tables:   []audit.Table{{Name: "c.a.b.x.y/z", Path: []string{"c", "a.b", "x.y/z"}, Columns: []string{"k"}}},
		Policies: []audit.Action{{Table: "c.a.b.x.y/z", What: "allow", Origin: policy.Origin{Source: "ranger", ID: 1}}},
	}
	got := testConverter("hive").events(e)
	if len(got) != 2 || got[0].Resource != `POLARIS/c/a.b/x.y\/z` || got[1].Resource != "a.b/x.y/z/k" {
		t.Errorf("%+v", got)
	}
	c := testConverter("hive")
	c.sources[0].WithCatalog = true
	if got := c.events(e); got[1].Resource != "c.a.b/x.y/z/k" {
		t.Errorf("%+v", got)
	}
}

// TestNoLiterals: whatever a statement event holds, its events in Ranger's form
// hold of texts nothing but what the event holds in its named places; the error
// text, which may repeat what the user typed, is in none.
func TestNoLiterals(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 2))
	const secret = "Secret-4711"
	pick := func(list ...string) string { return list[g.IntN(len(list))] }
	seen := map[string]int{}
	for range 2000 {
		e := audit.Event{
			Type: pick("statement", "statement", "login"), User: "u", Statement: "SELECT ? FROM t", Error: "Unknown '" + secret + "'",
			Outcome: pick("ok", "denied", "timeout", "not-found"), Rows: int64(g.IntN(9)),
		}
		for i := range g.IntN(3) {
			name := fmt.Sprintf("c.n.t%d", i)
			if g.IntN(2) == 0 {
				e.Tables = append(e.Tables, audit.Table{Name: name, Snapshot: int64(i), Columns: []string{"a", "b"}[:g.IntN(3)]})
			}
			for range g.IntN(4) {
				e.Policies = append(e.Policies, audit.Action{
					Table: name, Column: pick("", "a"), What: pick("allow", "row-filter", "mask", "fixed", "null", "withheld", "exempt"), Unused: g.IntN(3) == 0,
					Origin: policy.Origin{Source: pick("ranger", "gone"), ID: int64(g.IntN(3)), Version: 2, Tag: pick("", "PII")},
				})
			}
			if g.IntN(4) == 0 {
				e.Denials = append(e.Denials, audit.Denial{Object: name, Privilege: pick("table-data-read", "namespace-list"), Reason: policy.NoGrant})
			}
		}
		events := testConverter(pick("hive", "trino")).events(e)
		text, err := lines(new(bytes.Buffer), events)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), secret) {
			t.Fatalf("%+v gives %s", e, text)
		}
		if e.Type == "login" && len(events) > 0 {
			t.Fatalf("a login gives %s", text)
		}
		if len(e.Denials) > 0 && e.Type == "statement" {
			if !slices.ContainsFunc(events, func(e Event) bool { return e.Result == 0 }) {
				t.Fatalf("a denial gives no event: %+v", e)
			}
		}
		ids := map[string]bool{}
		for _, x := range events {
			if ids[x.ID] || x.Repo == "" && x.Policy != noPolicy && len(e.Denials) == 0 && x.RepoType != 0 {
				t.Fatalf("%s", text)
			}
			ids[x.ID] = true
			seen[fmt.Sprint(x.Result)]++
			if x.Result == 1 && e.Outcome == "denied" && len(e.Denials) > 0 {
				t.Fatalf("a denied statement was allowed: %s", text)
			}
		}
	}
	if seen["0"] == 0 || seen["1"] == 0 {
		t.Errorf("the events are of one sort: %v", seen)
	}
	// The control: what should be there is.
	if text, _ := lines(new(bytes.Buffer), testConverter("hive").events(audit.Event{Type: "statement", Statement: "SELECT ?", Tables: []audit.Table{{Name: "c.n.t"}}})); !strings.Contains(string(text), "SELECT ?") {
		t.Errorf("no fingerprint: %s", text)
	}
}

// TestLongStatement: the statement is cut as Ranger cuts it, between characters.
func TestLongStatement(t *testing.T) {
	e := audit.Event{Type: "statement", Statement: strings.Repeat("ä", 5000), Tables: []audit.Table{{Name: "c.n.t"}}}
	got := testConverter("hive").events(e)
	if len(got) != 1 || got[0].Data != strings.Repeat("ä", maxData) {
		t.Errorf("%d events, %d bytes", len(got), len(got[0].Data))
	}
}
