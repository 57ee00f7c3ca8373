//go:build e2e

package live

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sqe/tests/sqetest"
)

// A policy is changed a hundred times while statements run. It masks two columns
// with its own number: every statement, of whatever shape, shows one number, and
// no connection goes back to an earlier one.
func TestNoStatementMixesVersions(t *testing.T) {
	ns := orders(t)
	const changes = 100
	body := func(n int) object {
		return object{
			"service": dataService, "name": "sqe-live-changes-" + ns, "policyType": 1, "isEnabled": true,
			"resources": object{"database": values(ns), "table": values("orders"), "column": values("ssn", "email")},
			"dataMaskPolicyItems": []object{{"roles": []string{"engineer"}, "accesses": selects, "dataMaskInfo": object{
				"dataMaskType": "CUSTOM", "valueExpr": fmt.Sprintf("concat('v%03d', substr({col}, 1, 0))", n),
			}}},
		}
	}
	id := policy(t, body(0))
	becomes(t, "bob", "SELECT max(ssn) FROM "+ns+".orders", "v000")
	table := ns + ".orders"
	statements := []string{
		"SELECT ssn, email FROM " + table,
		"SELECT a.ssn, b.email FROM " + table + " a JOIN " + table + " b ON a.id <> b.id",
		"SELECT (SELECT max(ssn) FROM " + table + "), min(email) FROM " + table + " GROUP BY id",
		"WITH c AS (SELECT * FROM " + table + ") SELECT x.ssn, y.email FROM c x, c y",
		"SELECT ssn, ssn FROM " + table + " UNION ALL SELECT email, ssn FROM " + table,
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	defer cancel()
	var done atomic.Bool
	var asked, seen atomic.Int64
	var workers sync.WaitGroup
	for w := range 4 {
		conn := sqe.Conn(t, "bob")
		workers.Add(1)
		go func() {
			defer workers.Done()
			last := ""
			for i := w; !done.Load(); i++ {
				a := sqetest.Ask(ctx, conn, statements[i%len(statements)])
				if a.Err != nil {
					t.Errorf("%s: %v", statements[i%len(statements)], a.Err)
					return
				}
				version := a.Rows[0][0]
				for _, r := range a.Rows {
					for _, v := range r {
						if v != version {
							t.Errorf("%s shows %s and %s", statements[i%len(statements)], version, v)
							return
						}
					}
				}
				if !strings.HasPrefix(version, "v") || version < last {
					t.Errorf("%s after %s", version, last)
					return
				}
				if version != last {
					seen.Add(1)
				}
				last = version
				asked.Add(1)
			}
		}()
	}
	enough := func() bool { return asked.Load() >= changes && seen.Load() >= 10 }
	n := 0
	for deadline := time.Now().Add(patience); (n < changes || !enough() && n < 999 && time.Now().Before(deadline)) && !t.Failed(); {
		n++
		server.must(t, "PUT", fmt.Sprintf("public/v2/api/policy/%d", id), body(n))
		time.Sleep(pollInterval / 3)
	}
	becomes(t, "bob", "SELECT max(email) FROM "+table, fmt.Sprintf("v%03d", n))
	done.Store(true)
	workers.Wait()
	if !enough() {
		t.Errorf("only %d statements saw %d versions: the load was none", asked.Load(), seen.Load())
	}
	t.Logf("%d statements, %d changes of version seen", asked.Load(), seen.Load())
}

// documents are policies and tags of two services, roles, users.
const documents = 6

// One poll an interval, whatever the load.
func TestOnePollAnIntervalWhateverTheLoad(t *testing.T) {
	ns := orders(t)
	is(t, "bob", "SELECT count(*) FROM "+ns+".orders", "3")
	conn := sqe.Conn(t, "bob")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	before, _ := front.count()
	began := time.Now()
	n := 0
	for time.Since(began) < 2*time.Second {
		if a := sqetest.Ask(ctx, conn, "SELECT ssn FROM "+ns+".orders"); a.Err != nil {
			t.Fatal(a.Err)
		}
		n++
	}
	after, _ := front.count()
	if most := (int(time.Since(began)/pollInterval) + 2) * documents; after-before > most {
		t.Errorf("%d statements made %d requests, more than %d", n, after-before, most)
	}
}
