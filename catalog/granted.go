package catalog

import (
	"context"
	"net"
	"net/url"
	"strings"

	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"sqe/catalog/objects"
	"sqe/catalog/rest"
	"sqe/fault"
	"sqe/plan"
)

// ObjectStores say how the object stores of a REST catalog are reached.
type ObjectStores struct {
	// Options are those of the configuration. Its credentials are used for tables with
	// which the catalog gives none, and only where Warehouse is set.
	Options objects.Options
	// AllowHTTP permits an endpoint of the catalog at http:// on another machine.
	AllowHTTP bool
	// Warehouse is the place in a store outside of which nothing is read or written; ""
	// is the folder of each table, for which the catalog gives credentials.
	Warehouse string
}

// grant are credentials for a place.
type grant struct {
	place  string
	rank   int // of vend
	client *objects.Client
}

// granted opens the files of a table in an object store with what the catalog answered
// to one principal. It lives as long as the table that is handed out: for one
// statement. again asks for other credentials when these expire, as whoever runs the
// statement.
func (c *REST) granted(name plan.TableName, answer *rest.Table, again asking) func(context.Context) (icebergio.IO, error) {
	grants, err := c.grants(name, answer, again)
	return func(ctx context.Context) (icebergio.IO, error) {
		switch {
		case err != nil:
			return nil, err
		case len(grants) == 0:
			return nil, fault.New(fault.Unavailable, "The catalog gives no credentials for the files of table '%s', and there are none in the configuration; an administrator must look at the catalog's storage", name)
		}
		return objects.FilesOf(ctx, func(location string) *objects.Client {
			if c.stores.Warehouse != "" && !below(c.stores.Warehouse, location) {
				return nil
			}
			return best(grants, location)
		}), nil
	}
}

// best are the credentials for a location: of those for a prefix the ones with the
// longest, and before them none. Those of the configuration of a table are for what no
// prefix covers (Iceberg REST specification, LoadTableResult).
func best(grants []grant, location string) *objects.Client {
	var found *grant
	for i, g := range grants {
		if below(g.place, location) && (found == nil || g.rank > found.rank) {
			found = &grants[i]
		}
	}
	if found == nil {
		return nil
	}
	return found.client
}

// grants makes clients of the credentials of an answer.
func (c *REST) grants(name plan.TableName, answer *rest.Table, again asking) ([]grant, error) {
	all, err := c.vended(answer.Metadata, answer.Config, answer.Credentials)
	if err != nil {
		return nil, err
	}
	renewal := &renewal{c: c, name: name, again: again, turn: make(chan struct{}, 1)}
	var out []grant
	for _, v := range all {
		if again != nil {
			v.options.Renew = renewal.of(v)
		}
		client, err := objects.New(v.options)
		if err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "The catalog gives credentials for an object store that cannot be used; an administrator must look at the catalog's storage")
		}
		for _, p := range v.places {
			out = append(out, grant{p, v.rank, client})
		}
	}
	if s := c.stores; len(out) == 0 && s.Warehouse != "" && s.Options.Credentials.AccessKeyID != "" {
		client, err := objects.New(s.Options)
		if err != nil {
			return nil, fault.Wrap(fault.Config, err, "The object store of catalog '%s' cannot be used", c.name)
		}
		out = append(out, grant{s.Warehouse, 0, client})
	}
	return out, nil
}

// broad reports whether a prefix means every place in S3, or a bucket. Credentials are
// then used for the table's own folders.
func broad(prefix string) bool {
	if prefix == "" || prefix == "s3" || prefix == "s3a" || prefix == "s3n" {
		return true
	}
	return objects.Is(prefix)
}

// folders are where the files of a table lie: in its location, and where its
// properties have them written.
func folders(meta table.Metadata) []string {
	out := []string{meta.Location()}
	for _, key := range placeProperties {
		if p := meta.Properties()[key]; p != "" && key != "location" {
			out = append(out, p)
		}
	}
	return out
}

// storeOptions reads the configuration of a store. ok is false when it has no
// credentials. The keys are those of Iceberg's S3FileIO.
func (c *REST) storeOptions(config map[string]string) (o objects.Options, ok bool, err error) {
	o = c.stores.Options
	o.Credentials = objects.Credentials{
		AccessKeyID: config["s3.access-key-id"], SecretAccessKey: config["s3.secret-access-key"], SessionToken: config["s3.session-token"],
		Expires: expiry(config),
	}
	if o.Credentials.AccessKeyID == "" {
		if strings.EqualFold(config["s3.remote-signing-enabled"], "true") {
			return o, false, fault.New(fault.Unsupported, "The catalog signs requests to the object store itself, which SQE does not support; have it give credentials")
		}
		return o, false, nil
	}
	for _, key := range []string{"client.region", "s3.region"} {
		if r := config[key]; r != "" {
			o.Region = r
		}
	}
	if o.Endpoint == "" && config["s3.endpoint"] != "" {
		if !c.mayAsk(config["s3.endpoint"]) {
			return o, false, fault.New(fault.Unsupported, "The catalog names an object store at an address that SQE does not ask: it must be https; an administrator can set s3-endpoint or allow-http in the configuration")
		}
		o.Endpoint = config["s3.endpoint"]
		if v := config["s3.path-style-access"]; v != "" {
			o.VirtualHosts = !strings.EqualFold(v, "true")
		}
	}
	return o, true, nil
}

// mayAsk reports whether requests may go to an address that a catalog names.
func (c *REST) mayAsk(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.User != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (c.stores.AllowHTTP || u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}
