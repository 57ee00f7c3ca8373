package data

import (
	"context"
	"testing"

	"sqe/catalog"
	"sqe/plan"
)

func open(t *testing.T, dir string) *catalog.SQL {
	t.Helper()
	c, err := catalog.OpenSQLite("lake", dir+"/catalog.db", dir+"/warehouse", catalog.SQLOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestWriteTwice(t *testing.T) {
	ctx := context.Background()
	c := open(t, t.TempDir())
	versions := map[string]string{}
	for round := range 2 {
		if err := Write(ctx, c); err != nil {
			t.Fatal(err)
		}
		names, err := c.Tables(ctx, []string{Namespace})
		if err != nil || len(names) != len(tables) {
			t.Fatalf("tables %v, %v", names, err)
		}
		for _, n := range names {
			got, err := c.Table(ctx, plan.TableName{Catalog: "lake", Namespace: []string{Namespace}, Name: n}, plan.AsOf{}, "")
			if err != nil {
				t.Fatal(err)
			}
			if round == 1 && versions[n] != got.Version {
				t.Errorf("%s was written again", n)
			}
			versions[n] = got.Version
		}
	}
}
