//go:build e2e

package parity

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sqe/tests/sqetest"
)

var update = flag.Bool("update", false, "write what SQE answers into the lists of differences; new ones get the reason ?")

// Difference is one that is known.
type Difference struct {
	Case   string `json:"case"`
	Reason string `json:"reason"` // a name in docs/decisions/peer-differences.md
	User   string `json:"user"`
	SQL    string `json:"sql"`
	SQE    string `json:"sqe"` // what SQE answers instead
}

func TestSpark(t *testing.T) { compare(t, Spark) }

func TestTrino(t *testing.T) { compare(t, Trino) }

// serve starts a server over the tables under the policies and rendering of peer.
func serve(t *testing.T, peer *Peer, users []string) *sqetest.Server {
	t.Helper()
	dir := t.TempDir()
	if err := Build(context.Background(), dir); err != nil {
		t.Fatal(err)
	}
	if err := peer.Policies().Write(filepath.Join(dir, "policies")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mask.key"), []byte("the key of the comparison\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config, port, err := sqetest.Config(dir, Catalog, users, map[string]string{
		"data-service": peer.kind,
		"policies":     `filter-combination = "ranger"`,
		"masks":        "rendering = \"" + peer.Name + "\"\nshort-values = \"keep\"\nunkeyed-hash = true",
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := sqetest.Serve(config, port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (peer *Peer) differencesFile() string {
	return filepath.Join("testdata", peer.Name+"-differences.json")
}

// differences are the listed ones by case.
func differences(t *testing.T, peer *Peer) map[string]Difference {
	t.Helper()
	known := map[string]Difference{}
	text, err := os.ReadFile(peer.differencesFile())
	if os.IsNotExist(err) && *update {
		return known
	}
	var list []Difference
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range list {
		known[d.Case] = d
	}
	return known
}

func compare(t *testing.T, peer *Peer) {
	cases, err := peer.Cases()
	if err != nil {
		t.Fatal(err)
	}
	held, err := peer.Held()
	if err != nil {
		t.Fatal(err)
	}
	known := differences(t, peer)
	s := serve(t, peer, Users(cases))
	pools := map[string]*sql.DB{}
	for _, u := range Users(cases) {
		pools[u] = s.Open(u)
		defer pools[u].Close()
	}
	var found []Difference
	reasons := map[string]int{}
	for _, c := range cases {
		var got string
		var equal bool
		if table, ok := c.changes(); ok {
			got, equal = changeRows(t, peer, pools, held, c, table)
			delete(held, c.Case)
		} else {
			a := ask(t, pools, peer, c)
			got, equal = Outcome(c, a), Equal(c, a)
		}
		d, listed := known[c.Case]
		if equal {
			if listed && !*update {
				t.Errorf("%s %s: %s\nis listed as different (%s) and is equal now", c.Case, c.User, c.SQL, d.Reason)
			}
			continue
		}
		reasons[d.Reason]++
		switch {
		case *update:
			if !listed {
				d = Difference{Reason: "?"}
			}
			d.Case, d.User, d.SQL, d.SQE = c.Case, c.User, c.SQL, got
			found = append(found, d)
			if d.Reason == "?" {
				t.Logf("%s %s: %s\n%s: %s\nSQE: %s", c.Case, c.User, c.SQL, peer.Name, Expected(c), got)
			}
		case !listed:
			t.Errorf("%s %s: %s\nis an unlisted difference; %s: %s\nSQE: %s", c.Case, c.User, c.SQL, peer.Name, Expected(c), got)
		case d.SQE != got:
			t.Errorf("%s %s: %s\nis listed as different (%s), and SQE answers\n%s\ninstead of\n%s", c.Case, c.User, c.SQL, d.Reason, got, d.SQE)
		}
	}
	for c := range held {
		t.Errorf("%s is said to change rows, and is no such statement", c)
	}
	if *update {
		var b bytes.Buffer
		for i, d := range found {
			text := new(strings.Builder)
			e := json.NewEncoder(text)
			e.SetEscapeHTML(false)
			if err := e.Encode(d); err != nil {
				t.Fatal(err)
			}
			b.WriteString(map[bool]string{true: "[\n", false: ",\n"}[i == 0] + strings.TrimSuffix(text.String(), "\n"))
		}
		b.WriteString("\n]\n")
		if err := os.WriteFile(peer.differencesFile(), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	total := 0
	for _, n := range reasons {
		total += n
	}
	explained(t, peer, reasons, len(cases)-total)
	t.Logf("%s: %d answers, %d equal, %d listed: %v", peer.Name, len(cases), len(cases)-total, total, reasons)
}

// ask runs a captured statement as its user.
func ask(t *testing.T, pools map[string]*sql.DB, peer *Peer, c Case) sqetest.Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	return sqetest.Ask(ctx, pools[c.User], snapshots(t, pools["raw"], peer.translate(c.SQL)))
}

// explained checks that the page about differences has every reason with how
// often it occurs.
func explained(t *testing.T, peer *Peer, found map[string]int, equal int) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(sqetest.Root(), "docs", "decisions", "peer-differences.md"))
	if err != nil {
		t.Fatal(err)
	}
	column := map[string]int{"spark": 2, "trino": 3}[peer.Name]
	if text := fmt.Sprintf("%d %s", equal, map[string]string{"spark": "answers of Spark", "trino": "of Trino"}[peer.Name]); !strings.Contains(string(page), text) {
		t.Errorf("the page does not say %q", text)
	}
	documented := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| ([0-9]*) ?\\| ([0-9]*) ?\\|").FindAllStringSubmatch(string(page), -1) {
		if m[column] != "" {
			documented[m[1]] = m[column]
		}
	}
	for reason, n := range found {
		if documented[reason] != fmt.Sprint(n) {
			t.Errorf("%s: %d differences of %q, the page says %q", peer.Name, n, reason, documented[reason])
		}
		delete(documented, reason)
	}
	for reason := range documented {
		t.Errorf("%s: the page has %q, and nothing differs for this reason", peer.Name, reason)
	}
}

var snapshotOf = regexp.MustCompile(`\$\{(first|last):(\w+)\.(\w+)\}`)

// snapshots puts the first or last snapshot of a table where the captured
// statement names one.
func snapshots(t *testing.T, db *sql.DB, statement string) string {
	for {
		m := snapshotOf.FindStringSubmatch(statement)
		if m == nil {
			return statement
		}
		order := map[string]string{"first": "ASC", "last": "DESC"}[m[1]]
		id, err := sqetest.Ask(context.Background(), db,
			"SELECT snapshot_id FROM "+m[2]+".`"+m[3]+"$snapshots` ORDER BY committed_at "+order+" LIMIT 1").One()
		if err != nil {
			t.Fatal(err)
		}
		statement = strings.Replace(statement, m[0], id, 1)
	}
}
