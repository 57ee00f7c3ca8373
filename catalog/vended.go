package catalog

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/apache/iceberg-go/table"

	"sqe/catalog/objects"
	"sqe/catalog/rest"
	"sqe/fault"
	"sqe/plan"
)

// vend is one set of credentials that a catalog gave with a table.
type vend struct {
	// prefix is what they are for, as the catalog wrote it; "" for those of the
	// configuration of the table.
	prefix string
	// rank is higher for a longer prefix, 0 for none.
	rank    int
	places  []string
	options objects.Options
}

// Format shows nothing of the credentials.
func (vend) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("[secret]")) }

// credentialKeys are the properties that make up one set of credentials, of which no
// part goes with another set.
var credentialKeys = []string{"s3.access-key-id", "s3.secret-access-key", "s3.session-token", "s3.session-token-expires-at-ms", "expiration-time"}

// vended reads the credentials of an answer.
func (c *REST) vended(meta table.Metadata, config map[string]string, credentials []rest.StorageCredential) ([]vend, error) {
	var out []vend
	add := func(config map[string]string, v vend) error {
		o, ok, err := c.storeOptions(config)
		if err != nil || !ok {
			return err
		}
		v.options = o
		out = append(out, v)
		return nil
	}
	own, store := folders(meta), maps.Clone(config)
	if store == nil {
		store = map[string]string{}
	}
	for _, k := range credentialKeys {
		delete(store, k)
	}
	for _, one := range credentials {
		with := maps.Clone(store)
		maps.Copy(with, one.Config)
		v := vend{prefix: one.Prefix, rank: 1, places: own}
		if at, ok := objects.Parse(one.Prefix); ok && at.Key != "" {
			v.places, v.rank = []string{one.Prefix}, 2+len(strings.TrimRight(at.Key, "/"))
		} else if !broad(one.Prefix) {
			continue // for another kind of storage
		}
		if err := add(with, v); err != nil {
			return nil, err
		}
	}
	return out, add(config, vend{places: own})
}

// expiry is when the credentials of a configuration expire: in Iceberg's property of
// S3FileIO, or in that of Apache Polaris for any store. Zero: it is not known.
func expiry(config map[string]string) time.Time {
	for _, key := range []string{"s3.session-token-expires-at-ms", "expiration-time"} {
		if ms, err := strconv.ParseInt(config[key], 10, 64); err == nil && ms > 0 {
			return time.UnixMilli(ms)
		}
	}
	return time.Time{}
}

// asking asks a catalog for the credentials of a table once more, for the principal of
// the context.
type asking func(ctx context.Context) ([]vend, error)

// renewal has what a catalog gave in the place of credentials that expired: at once for
// all places of one table of one statement.
type renewal struct {
	c     *REST
	name  plan.TableName
	again asking
	turn  chan struct{}
	// have are those that nobody has taken yet.
	have []vend
}

// Format shows nothing of the credentials.
func (*renewal) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("[secret]")) }

// of renews one set of credentials. Others never go to another store than these.
func (r *renewal) of(v vend) objects.Renew {
	return func(ctx context.Context) (objects.Credentials, error) {
		select {
		case r.turn <- struct{}{}:
		case <-ctx.Done():
			return objects.Credentials{}, ctx.Err()
		}
		defer func() { <-r.turn }()
		if i := instead(r.have, v); i >= 0 {
			found := r.have[i]
			r.have = append(r.have[:i:i], r.have[i+1:]...)
			if is := found.options.Credentials; is.Expires.IsZero() || r.c.now().Before(is.Expires) {
				return r.take(found, v)
			}
		}
		got, err := r.again(ctx)
		if fault.Is(err, fault.NotFound) {
			return objects.Credentials{}, fault.Wrap(fault.NotFound, err, "The credentials for the files of table '%s' expired during the statement, and the catalog gives no others: the table was dropped, or you may not use it any more", r.name)
		}
		if err != nil {
			return objects.Credentials{}, fault.Wrap(fault.KindOf(err), err, "The credentials for the files of table '%s' expired during the statement, and the catalog gives no others: %s", r.name, err)
		}
		i := instead(got, v)
		if i < 0 {
			return objects.Credentials{}, fault.New(fault.Unavailable, "The credentials for the files of table '%s' expired during the statement, and the catalog gives others only for other places; an administrator must look at the catalog's storage", r.name)
		}
		r.have = append(got[:i:i], got[i+1:]...)
		return r.take(got[i], v)
	}
}

func (r *renewal) take(found, v vend) (objects.Credentials, error) {
	a, b := found.options, v.options
	if a.Endpoint != b.Endpoint || a.Region != b.Region || a.VirtualHosts != b.VirtualHosts {
		return objects.Credentials{}, fault.New(fault.Unavailable, "The credentials for the files of table '%s' expired during the statement, and the catalog names another object store; run the statement again", r.name)
	}
	return found.options.Credentials, nil
}

// instead finds credentials that are for the same as v: for the same prefix, or else
// the ones with the longest prefix that cover every place.
func instead(all []vend, v vend) int {
	found := -1
	for i, w := range all {
		if w.prefix == v.prefix {
			return i
		}
		covers := true
		for _, p := range v.places {
			some := false
			for _, q := range w.places {
				some = some || strings.TrimRight(p, "/") == strings.TrimRight(q, "/") || below(q, p)
			}
			covers = covers && some
		}
		if covers && (found < 0 || w.rank > all[found].rank) {
			found = i
		}
	}
	return found
}

// loadedAgain asks for other credentials for a table that was loaded: by the call that
// is for that where the catalog has it, else by loading the table.
func (c *REST) loadedAgain(name plan.TableName, answer *rest.Table) asking {
	return func(ctx context.Context) ([]vend, error) {
		credentials, has, err := c.client.LoadCredentials(ctx, name.Namespace, name.Name)
		if err != nil {
			return nil, c.tableFault(ctx, err, name, true)
		}
		if has {
			// Which store it is the configuration of the table says, with the old credentials.
			store := maps.Clone(answer.Config)
			for _, k := range credentialKeys {
				delete(store, k)
			}
			return c.vended(answer.Metadata, store, credentials)
		}
		now, err := c.client.LoadTable(ctx, name.Namespace, name.Name, "")
		switch {
		case err != nil:
			return nil, c.tableFault(ctx, err, name, true)
		case now.Metadata.TableUUID() != answer.Metadata.TableUUID():
			return nil, missing(name) // another one has its name now
		}
		return c.vended(now.Metadata, now.Config, now.Credentials)
	}
}

// stagedAgain is loadedAgain for a table that is only staged, which nobody can load: it
// is staged once more. What that would be is of no interest.
func (c *REST) stagedAgain(name plan.TableName, asked rest.NewTable, answer *rest.Table, seen bool) asking {
	return func(ctx context.Context) ([]vend, error) {
		now, err := c.client.CreateTable(ctx, name.Namespace, asked)
		switch {
		case statusOf(err) == http.StatusConflict:
			return nil, exists(name)
		case err != nil:
			return nil, c.createFault(ctx, err, name, seen)
		}
		return c.vended(answer.Metadata, now.Config, now.Credentials)
	}
}
