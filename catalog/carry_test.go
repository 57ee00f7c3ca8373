package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go/table"

	"sqe/plan"
)

func carried(names ...string) []plan.Tag {
	var out []plan.Tag
	for _, n := range names {
		out = append(out, plan.Tag{Name: n, Attributes: map[string]string{"of": n}, Inherited: true, Carried: true})
	}
	return out
}

// stand prints the tags of a table: a "~" stands before one that only takes, a "+"
// behind one that came with values.
func stand(t *plan.Table) string {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(t.Tags)) {
		for _, tag := range t.Tags[id] {
			text := tag.Name
			if tag.Inherited {
				text = "~" + text
			}
			if tag.Carried {
				text += "+"
			}
			out = append(out, fmt.Sprintf("%d:%s", id, text))
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// TestWithTags: carried tags come with the rows or not at all, only restrict, and
// leave those that are there as they are.
func TestWithTags(t *testing.T) {
	c, dir := lake(t)
	made(t, c, "t", TableDefinition{Fields: []plan.Field{fld("a", plan.String), fld("b", plan.String), fld("s", plan.String)}, Tags: []TaggedPath{
		{Path: []string{"a"}, Tags: []plan.Tag{{Name: "OWN"}}}, {Tags: []plan.Tag{{Name: "WHOLE"}}},
	}})
	n := loaded(t, c, "t").Name
	boom := errors.New("boom")
	before := files(t, dir)
	_, err := c.Commit(ctx, n, WithTags(func(context.Context, *table.Transaction, *plan.Table) error { return boom }, map[int][]plan.Tag{2: carried("X")}))
	if !errors.Is(err, boom) || stand(loaded(t, c, "t")) != "0:WHOLE 1:OWN" {
		t.Errorf("a change that failed: %v, %s", err, stand(loaded(t, c, "t")))
	}
	if got := files(t, dir); !slices.Equal(got, before) {
		t.Errorf("it left files: %v", got)
	}
	tags := map[int][]plan.Tag{1: carried("OWN", "X"), 2: carried("WHOLE", "X", "Y"), 99: carried("X")}
	after, err := c.Commit(ctx, n, WithTags(rows(`[{"a":"1"}]`), tags))
	must(t, err)
	const want = "0:WHOLE 1:OWN 1:~X+ 2:~X+ 2:~Y+"
	if stand(after) != want || stand(loaded(t, c, "t")) != want {
		t.Errorf("%s, want %s", stand(after), want)
	}
	if scanned(t, after) == 0 || len(after.Tags[2]) != 2 || after.Tags[2][0].Attributes["of"] != "X" || after.Tags[2][0].Earlier != "" {
		t.Errorf("%d rows, %+v", scanned(t, after), after.Tags)
	}
	if got := after.Properties[ColumnTagsProperty]; got != `{"a":["OWN","X"],"b":["X","Y"]}` {
		t.Errorf("for other engines: %s", got)
	}
	// Again: the rows come, and the tags are as they were.
	props := maps.Clone(after.Properties)
	after, err = c.Commit(ctx, n, WithTags(rows(`[{"a":"2"}]`), tags))
	must(t, err)
	if !maps.Equal(props, after.Properties) {
		t.Errorf("%v, they were %v", after.Properties, props)
	}
	// A table of this definition has the tags of its kind; what is set becomes own.
	d, err := DefinitionOf(after)
	must(t, err)
	like, _, err := c.CreateTable(ctx, plan.TableName{Catalog: n.Catalog, Namespace: n.Namespace, Name: "like"}, d, CreateOptions{})
	must(t, err)
	if stand(like) != want {
		t.Errorf("LIKE: %s", stand(like))
	}
	like, err = c.UpdateProperties(ctx, like.Name, func(t *plan.Table, _ map[string]string) (map[string]string, []string, error) {
		set, err := ReadTags(t)
		if err == nil {
			err = set.Set(1, plan.Tag{Name: "X"})
		}
		if err != nil {
			return nil, nil, err
		}
		return set.Properties()
	})
	must(t, err)
	if stand(like) != "0:WHOLE 1:OWN 1:X 2:~X+ 2:~Y+" {
		t.Errorf("SET TAGS: %s", stand(like))
	}
}

// TestCarryWhatIsLent: a tag that a column has only from another one that bore its
// name is its own once values bring it.
func TestCarryWhatIsLent(t *testing.T) {
	l := newTagLab(t, people())
	l.alter("+ssn PII")
	l.drop("ssn")
	l.add("ssn")
	tb, err := l.c.Table(ctx, l.n, plan.AsOf{}, "")
	must(t, err)
	f, _ := tb.FieldNamed("ssn")
	set, err := ReadTags(tb)
	must(t, err)
	if list := set.List(); len(list) != 1 || !list[0].Lent {
		t.Fatalf("%+v", list)
	}
	if !set.Carry(f.ID, carried("PII")...) || set.Carry(f.ID, carried("PII")...) {
		t.Error("a lent tag becomes carried, once")
	}
	if list := set.List(); len(list) != 1 || list[0].Lent || !list[0].Carried || !list[0].Inherited {
		t.Errorf("%+v", list)
	}
}
