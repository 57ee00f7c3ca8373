package catalog

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"sqe/fault"
	"sqe/plan"
)

func TestReserved(t *testing.T) {
	for _, k := range []string{TagsProperty, ColumnTagsProperty, "SQE.Tags", " sqe.column-tags "} {
		if !Reserved(k) {
			t.Errorf("%q can be set by anybody", k)
		}
	}
	for _, k := range []string{"", "sqe", "sqe.tagsx", "write.format.default"} {
		if Reserved(k) {
			t.Errorf("%q is reserved", k)
		}
	}
}

func TestParseTags(t *testing.T) {
	got, err := parseTags(`{"0":[{"name":"T"}],"3":[{"name":"PII","attributes":{"level":"high"},"column":"c","schema":0},{"name":"B","inherited":true,"lent":true}],"4":[]}`, 5)
	must(t, err)
	if len(got[3]) != 2 || got[3][0].Attributes["level"] != "high" || got[3][0].Schema == nil || !got[3][1].Lent || got[0][0].Name != "T" {
		t.Errorf("%v", got)
	}
	text, err := formatTags(got)
	must(t, err)
	if again, err := parseTags(text, 5); err != nil || len(again[3]) != 2 || again[3][0].Schema == nil {
		t.Errorf("%s: %v, %v", text, again, err)
	}
	for _, bad := range []string{
		"", "null", "[]", `"x"`, `{"3":`, `{"3":[{"name":"a"}]} x`, `{"x":[]}`, `{"03":[{"name":"a"}]}`, `{"-1":[{"name":"a"}]}`,
		`{"6":[{"name":"a"}]}`, `{"3":[{"name":""}]}`, `{"3":[{"name":"a"},{"name":"a"}]}`, `{"3":[{"nmae":"a"}]}`, `{"3":["a"]}`,
		`{"3":[{"name":"a","attributes":{"k":1}}]}`, `{"3":[{"name":"a"}],"3":[]}`, `{"3":null}`, `{"3":[null]}`, `{"3":[{"name":null}]}`,
		`{"3":[{"name":"a","name":"b"}]}`, `{"3":[{"name":"a","Name":"b"}]}`, `{"3":[{}]}`, `{"3":[{"name":"a","attributes":null}]}`,
		`{"3":[{"name":"a","attributes":{"k":null}}]}`, `{"3":[{"name":"a","attributes":{"k":"1","k":"2"}}]}`,
		`{"3":[{"name":"a","schema":"1"}]}`, `{"3":[{"name":"a","inherited":1}]}`, `{"3":[{"name":"a","lent":null}]}`, `{"3":{"name":"a"}}`,
	} {
		if got, err := parseTags(bad, 5); !fault.Is(err, fault.PolicyBroken) {
			t.Errorf("%s: %v, %v", bad, got, err)
		}
	}
}

func TestParseColumnTags(t *testing.T) {
	got, err := parseColumnTags(`{"ssn":["PII","X","PII"],"email":[]}`)
	must(t, err)
	if fmt.Sprint(got) != "[{ssn [PII X]} {email []}]" {
		t.Errorf("%v", got)
	}
	for _, bad := range []string{
		"", "null", "[]", `"x"`, `{"ssn":`, `{"ssn":["a"]} x`, `{"ssn":"a"}`, `{"ssn":null}`, `{"ssn":[1]}`, `{"ssn":[null]}`,
		`{"ssn":[""]}`, `{"ssn":["a"],"ssn":["b"]}`, `{"ssn":{"a":1}}`, `{"ssn":[["a"]]}`,
	} {
		if got, err := parseColumnTags(bad); !fault.Is(err, fault.PolicyBroken) {
			t.Errorf("%s: %v, %v", bad, got, err)
		}
	}
}

// tagLab is one table that another engine and SQE change in turn.
type tagLab struct {
	*testing.T
	c *SQL
	n plan.TableName
}

func newTagLab(t *testing.T, s *iceberg.Schema) *tagLab {
	l := &tagLab{t, open(t, t.TempDir()), name("ns", "t")}
	create(t, l.c, l.n, s, nil)
	return l
}

// evolve changes the schema as another engine does: it leaves the tags alone.
func (l *tagLab) evolve(f func(*table.UpdateSchema) *table.UpdateSchema) {
	l.Helper()
	tb, err := l.c.Iceberg().LoadTable(ctx, append(slices.Clone(l.n.Namespace), l.n.Name))
	must(l, err)
	tx := tb.NewTransaction()
	must(l, f(tx.UpdateSchema(true, true)).Commit())
	_, err = tx.Commit(ctx)
	must(l, err)
}

func (l *tagLab) rename(from, to string) {
	l.Helper()
	l.evolve(func(u *table.UpdateSchema) *table.UpdateSchema { return u.RenameColumn(strings.Split(from, "."), to) })
}

func (l *tagLab) drop(col string) {
	l.Helper()
	l.evolve(func(u *table.UpdateSchema) *table.UpdateSchema { return u.DeleteColumn(strings.Split(col, ".")) })
}

func (l *tagLab) add(col string) {
	l.Helper()
	l.evolve(func(u *table.UpdateSchema) *table.UpdateSchema {
		return u.AddColumn(strings.Split(col, "."), iceberg.PrimitiveTypes.String, "", false, nil)
	})
}

// foreign sets the property by name as another engine does.
func (l *tagLab) foreign(value string) {
	l.Helper()
	tb, err := l.c.Iceberg().LoadTable(ctx, append(slices.Clone(l.n.Namespace), l.n.Name))
	must(l, err)
	tx := tb.NewTransaction()
	must(l, tx.SetProperties(iceberg.Properties{ColumnTagsProperty: value}))
	_, err = tx.Commit(ctx)
	must(l, err)
}

// alter edits the tags as SQE does: "+column tag ..." or "-column tag ...".
func (l *tagLab) alter(edits ...string) {
	l.Helper()
	_, err := l.c.UpdateProperties(ctx, l.n, func(t *plan.Table, _ map[string]string) (map[string]string, []string, error) {
		s, err := ReadTags(t)
		must(l, err)
		for _, e := range edits {
			words := strings.Fields(e[1:])
			id, err := s.Column(words[0])
			must(l, err)
			if e[0] == '-' {
				s.Unset(id, words[1:]...)
				continue
			}
			for _, w := range words[1:] {
				must(l, s.Set(id, plan.Tag{Name: w}))
			}
		}
		return s.Properties()
	})
	must(l, err)
}

// own lists the tags of present columns, those of others in brackets.
func (l *tagLab) own() string {
	l.Helper()
	t, err := l.c.Table(ctx, l.n, plan.AsOf{}, "")
	must(l, err)
	s, err := ReadTags(t)
	must(l, err)
	var out []string
	for _, c := range s.List() {
		word := c.Column + ":" + c.Name
		if c.Lent {
			word = "(" + word + ")"
		}
		out = append(out, word)
	}
	return strings.Join(out, " ")
}

// acting lists what acts by field id; ~ marks what only restricts, <name what came
// by another name.
func (l *tagLab) acting() string {
	l.Helper()
	t, err := l.c.Table(ctx, l.n, plan.AsOf{}, "")
	must(l, err)
	var out []string
	for id := range 40 {
		for _, g := range t.Tags[id] {
			word := fmt.Sprint(id, ":", g.Name)
			if g.Inherited {
				word += "~"
			}
			if g.Earlier != "" {
				word += "<" + g.Earlier
			}
			out = append(out, word)
		}
	}
	return strings.Join(out, " ")
}

func (l *tagLab) want(own, acting string) {
	l.Helper()
	if got := l.own(); got != own {
		l.Errorf("listed %q, want %q", got, own)
	}
	if got := l.acting(); got != acting {
		l.Errorf("acting %q, want %q", got, acting)
	}
}

func (l *tagLab) property(key, want string) {
	l.Helper()
	t, err := l.c.Table(ctx, l.n, plan.AsOf{}, "")
	must(l, err)
	if got := t.Properties[key]; got != want {
		l.Errorf("%s is %s, want %s", key, got, want)
	}
}

func people() *iceberg.Schema {
	return iceberg.NewSchema(0, col(1, "id", iceberg.PrimitiveTypes.Int64), col(2, "ssn", iceberg.PrimitiveTypes.String), col(3, "email", iceberg.PrimitiveTypes.String))
}

func TestSetAndUnsetTags(t *testing.T) {
	l := newTagLab(t, people())
	l.want("", "")
	l.alter("+ssn PII A", "+email PII")
	l.want("email:PII ssn:A ssn:PII", "2:PII 2:A 3:PII")
	l.property(ColumnTagsProperty, `{"email":["PII"],"ssn":["PII","A"]}`)
	l.property(TagsProperty, `{"2":[{"name":"PII","column":"ssn","schema":0},{"name":"A","column":"ssn","schema":0}],"3":[{"name":"PII","column":"email","schema":0}]}`)
	l.alter("+SSN A B PII")
	l.property(ColumnTagsProperty, `{"email":["PII"],"ssn":["PII","A","B"]}`)
	l.alter("-ssn A none", "-email")
	l.want("ssn:B ssn:PII", "2:PII 2:B")
	l.property(ColumnTagsProperty, `{"ssn":["PII","B"]}`)
	l.alter("-ssn")
	l.want("", "")
	l.property(ColumnTagsProperty, "")
	l.property(TagsProperty, "")
}

// TestTagsByName: what only the property by name says.
func TestTagsByName(t *testing.T) {
	for _, c := range []struct {
		what        string
		change      func(*tagLab)
		own, acting string
	}{
		{"nothing", func(*tagLab) {}, "ssn:PII", "2:PII"},
		{"another case", func(l *tagLab) { l.foreign(`{"SSN":["PII"]}`) }, "ssn:PII", "2:PII<SSN"},
		{"rename", func(l *tagLab) { l.rename("ssn", "tax") }, "tax:PII", "2:PII<ssn"},
		{"drop", func(l *tagLab) { l.drop("ssn") }, "", "2:PII<ssn"},
		{"drop and add", func(l *tagLab) { l.drop("ssn"); l.add("ssn") }, "ssn:PII", "2:PII~<ssn 4:PII~<ssn"},
		{"rename and add", func(l *tagLab) { l.rename("ssn", "old"); l.add("ssn") }, "old:PII ssn:PII", "2:PII~<ssn 4:PII~<ssn"},
		{"swap", func(l *tagLab) { l.rename("ssn", "x"); l.rename("email", "ssn"); l.rename("x", "email") }, "email:PII ssn:PII", "2:PII~<ssn 3:PII~<ssn"},
	} {
		t.Run(c.what, func(t *testing.T) {
			l := newTagLab(t, people())
			l.foreign(`{"ssn":["PII"]}`)
			c.change(l)
			l.want(c.own, c.acting)
			// Writing another tag takes nothing away.
			l.alter("+id X")
			if got := strings.ReplaceAll(l.acting(), "1:X ", ""); strings.Count(got, "PII") != strings.Count(c.acting, "PII") || strings.Count(got, "~") != strings.Count(c.acting, "~") {
				t.Errorf("after another change: %s, before: %s", got, c.acting)
			}
		})
	}
}

// TestTagsOutOfStep: SQE tagged the column, then another engine changed the schema.
func TestTagsOutOfStep(t *testing.T) {
	for _, c := range []struct {
		what        string
		change      func(*tagLab)
		own, acting string
	}{
		{"rename", func(l *tagLab) { l.rename("ssn", "tax") }, "tax:PII", "2:PII<ssn"},
		{"drop", func(l *tagLab) { l.drop("ssn") }, "", "2:PII<ssn"},
		{"drop and add", func(l *tagLab) { l.drop("ssn"); l.add("ssn") }, "(ssn:PII)", "2:PII<ssn 4:PII~<ssn"},
		{"drop, add and rename", func(l *tagLab) { l.drop("ssn"); l.add("ssn"); l.rename("ssn", "new") }, "(new:PII)", "2:PII<ssn 4:PII~<ssn"},
		{"rename and add", func(l *tagLab) { l.rename("ssn", "old"); l.add("ssn") }, "old:PII (ssn:PII)", "2:PII<ssn 4:PII~<ssn"},
		{"swap", func(l *tagLab) { l.rename("ssn", "x"); l.rename("email", "ssn"); l.rename("x", "email") }, "email:PII (ssn:PII)", "2:PII<ssn 3:PII~<ssn"},
	} {
		t.Run(c.what, func(t *testing.T) {
			l := newTagLab(t, people())
			l.alter("+ssn PII")
			c.change(l)
			l.want(c.own, c.acting)
			l.alter("+id X")
			l.alter("-id")
			if got := l.own(); got != c.own {
				t.Errorf("after other changes the list is %s", got)
			}
			if got := l.acting(); strings.Count(got, "PII") != strings.Count(c.acting, "PII") || strings.Count(got, "~") != strings.Count(c.acting, "~") {
				t.Errorf("after other changes there act %s, before: %s", got, c.acting)
			}
		})
	}
}

// TestDroppedColumn: a dropped column bequeaths nothing that its successor could
// not be freed of, and a later successor does not open either.
func TestDroppedColumn(t *testing.T) {
	l := newTagLab(t, people())
	l.alter("+ssn PII")
	l.drop("ssn")
	l.alter("+email X")
	l.property(ColumnTagsProperty, `{"email":["X"],"ssn":["PII"]}`)
	l.add("ssn")
	l.want("email:X (ssn:PII)", "2:PII<ssn 3:X 4:PII~<ssn")
	l.alter("-ssn")
	l.want("email:X", "2:PII 3:X")
	l.property(ColumnTagsProperty, `{"email":["X"]}`)
	// What is put on it from now on is its own.
	l.foreign(`{"email":["X"],"ssn":["PII"]}`)
	l.want("email:X ssn:PII", "2:PII 3:X 4:PII~<ssn")
	l.alter("+ssn PII")
	l.want("email:X ssn:PII", "2:PII 3:X 4:PII")
}

// TestSwappedNames: after a swap either column can be freed by itself.
func TestSwappedNames(t *testing.T) {
	swapped := func(t *testing.T) *tagLab {
		l := newTagLab(t, people())
		l.alter("+ssn PII")
		l.rename("ssn", "x")
		l.rename("email", "ssn")
		l.rename("x", "email")
		return l
	}
	l := swapped(t)
	l.alter("-ssn")
	l.want("email:PII", "2:PII")
	l.alter("+id X")
	l.want("email:PII id:X", "1:X 2:PII")
	l = swapped(t)
	l.alter("-email")
	l.want("(ssn:PII)", "3:PII~<ssn")
	l.alter("-ssn")
	l.want("", "")
}

func TestNestedTags(t *testing.T) {
	l := newTagLab(t, iceberg.NewSchema(0, col(1, "id", iceberg.PrimitiveTypes.Int64),
		col(2, "contact", &iceberg.StructType{FieldList: []iceberg.NestedField{col(3, "email", iceberg.PrimitiveTypes.String)}}),
		col(4, "phones", &iceberg.ListType{ElementID: 5, Element: &iceberg.StructType{FieldList: []iceberg.NestedField{col(6, "number", iceberg.PrimitiveTypes.String)}}}),
		col(7, "prefs", &iceberg.MapType{KeyID: 8, KeyType: iceberg.PrimitiveTypes.String, ValueID: 9, ValueType: iceberg.PrimitiveTypes.String}),
	))
	l.alter("+contact.email PII", "+phones.number PII", "+prefs.value PII", "+prefs.key K", "+phones L")
	l.want("contact.email:PII phones:L phones.element.number:PII prefs.key:K prefs.value:PII", "3:PII 4:L 6:PII 8:K 9:PII")
	l.property(ColumnTagsProperty, `{"contact.email":["PII"],"phones":["L"],"phones.element.number":["PII"],"prefs.key":["K"],"prefs.value":["PII"]}`)
	l.rename("contact", "kontakt")
	l.rename("kontakt.email", "mail")
	l.want("kontakt.mail:PII phones:L phones.element.number:PII prefs.key:K prefs.value:PII", "3:PII<contact.email 4:L 6:PII 8:K 9:PII")
	l.foreign(`{"phones.number":["N"],"contact.email":["N"]}`)
	l.want("kontakt.mail:N kontakt.mail:PII phones:L phones.element.number:N phones.element.number:PII prefs.key:K prefs.value:PII",
		"3:PII<contact.email 3:N<contact.email 4:L 6:PII 6:N<phones.number 8:K 9:PII")
	for _, none := range []string{"email", "contact.email", "phones.none", "contact.", "number"} {
		tb, err := l.c.Table(ctx, l.n, plan.AsOf{}, "")
		must(t, err)
		s, err := ReadTags(tb)
		must(t, err)
		if id, err := s.Column(none); !fault.Is(err, fault.NoColumn) {
			t.Errorf("%s is field %d, %v", none, id, err)
		}
	}
}

// TestUnreadableTags: tags that cannot be understood refuse the table, its metadata
// and every change of its tags.
func TestUnreadableTags(t *testing.T) {
	l := newTagLab(t, people())
	for _, bad := range []string{"", "{", `{"ssn":"PII"}`, `{"nowhere":["PII"]}`, `{"nowhere":[]}`, `{"ssn":["PII"],"ssn":[]}`, `{"ssn":["PII"],"nowhere":["X"]}`} {
		l.foreign(`{"ssn":["PII"]}`)
		l.want("ssn:PII", "2:PII")
		l.foreign(bad)
		for _, kind := range []string{"", "files"} {
			if _, err := l.c.Table(ctx, l.n, plan.AsOf{}, kind); !fault.Is(err, fault.PolicyBroken) {
				t.Errorf("%s: %q: %v", bad, kind, err)
			}
		}
		_, err := l.c.UpdateProperties(ctx, l.n, func(*plan.Table, map[string]string) (map[string]string, []string, error) {
			return map[string]string{ColumnTagsProperty: "{}"}, nil, nil
		})
		if !fault.Is(err, fault.PolicyBroken) {
			t.Errorf("%s: written over: %v", bad, err)
		}
	}
}

// TestAttributes: a value that was given to a tag stays until another is given.
func TestAttributes(t *testing.T) {
	l := newTagLab(t, people())
	set := func(tags ...plan.Tag) {
		t.Helper()
		_, err := l.c.UpdateProperties(ctx, l.n, func(t *plan.Table, _ map[string]string) (map[string]string, []string, error) {
			s, err := ReadTags(t)
			must(l, err)
			must(l, s.Set(0, tags...))
			return s.Properties()
		})
		must(t, err)
	}
	level := func(want string) {
		t.Helper()
		tb, err := l.c.Table(ctx, l.n, plan.AsOf{}, "")
		must(t, err)
		if len(tb.Tags[0]) != 1 || tb.Tags[0][0].Attributes["level"] != want {
			t.Errorf("tags %v", tb.Tags)
		}
	}
	set(plan.Tag{Name: "T", Attributes: map[string]string{"level": "1"}})
	level("1")
	set(plan.Tag{Name: "T"})
	level("1")
	set(plan.Tag{Name: "T", Attributes: map[string]string{"level": "2"}})
	level("2")
	l.want(":T", "0:T")
}

// TestConcurrentTags: no change of tags is lost, whether writers share a process or
// not, and whatever else is committed meanwhile.
func TestConcurrentTags(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir)
	n := name("ns", "t")
	create(t, first, n, people(), nil)
	second, err := OpenSQLite("lake", filepath.Join(dir, "catalog.db"), filepath.Join(dir, "ware house%41"), SQLOptions{})
	must(t, err)
	t.Cleanup(func() { _ = second.Close() })
	var wg sync.WaitGroup
	errs := make(chan error, 100)
	var want []string
	for i := range 12 {
		tag := fmt.Sprintf("T%02d", i)
		want = append(want, tag)
		c := []*SQL{first, second}[i%2]
		wg.Go(func() {
			_, err := c.UpdateProperties(ctx, n, func(t *plan.Table, _ map[string]string) (map[string]string, []string, error) {
				s, err := ReadTags(t)
				if err != nil {
					return nil, nil, err
				}
				if err := s.Set(2, plan.Tag{Name: tag}); err != nil {
					return nil, nil, err
				}
				return s.Properties()
			})
			errs <- err
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		must(t, err)
	}
	for _, c := range []*SQL{first, second} {
		got, err := c.Table(ctx, n, plan.AsOf{}, "")
		must(t, err)
		var names []string
		for _, g := range got.Tags[2] {
			names = append(names, g.Name)
		}
		slices.Sort(names)
		if !slices.Equal(names, want) {
			t.Errorf("tags %v", names)
		}
	}
}

// TestUpdateProperties: what is decided on is what is changed.
func TestUpdateProperties(t *testing.T) {
	l := newTagLab(t, people())
	before, err := l.c.Table(ctx, l.n, plan.AsOf{}, "")
	must(t, err)
	calls := 0
	after, err := l.c.UpdateProperties(ctx, l.n, func(_ *plan.Table, props map[string]string) (map[string]string, []string, error) {
		if calls++; calls == 1 {
			l.foreign(`{"ssn":["PII"]}`) // another writer is faster
		}
		if calls == 2 && props[ColumnTagsProperty] == "" {
			t.Error("the change was decided on what is no longer so")
		}
		return map[string]string{"a": "1", "b": "2"}, nil, nil
	})
	must(t, err)
	if calls != 2 || after.Version == before.Version || after.Properties["a"] != "1" || after.Properties[ColumnTagsProperty] == "" {
		t.Errorf("%d calls: %v", calls, after.Properties)
	}
	same, err := l.c.UpdateProperties(ctx, l.n, func(*plan.Table, map[string]string) (map[string]string, []string, error) {
		return map[string]string{"a": "1"}, []string{"none"}, nil
	})
	must(t, err)
	if same.Version != after.Version {
		t.Error("nothing to do made a commit")
	}
	gone, err := l.c.UpdateProperties(ctx, l.n, func(*plan.Table, map[string]string) (map[string]string, []string, error) {
		return nil, []string{"a"}, nil
	})
	must(t, err)
	if _, ok := gone.Properties["a"]; ok || gone.Properties["b"] != "2" {
		t.Errorf("%v", gone.Properties)
	}
	if _, err := l.c.UpdateProperties(ctx, name("ns", "none"), nil); !fault.Is(err, fault.NotFound) {
		t.Errorf("a table that is not there: %v", err)
	}
	stop := fault.New(fault.Denied, "no")
	if _, err := l.c.UpdateProperties(ctx, l.n, func(*plan.Table, map[string]string) (map[string]string, []string, error) {
		return map[string]string{"c": "1"}, nil, stop
	}); err != stop {
		t.Errorf("the refusal of a change: %v", err)
	}
}

var tagSeed = flag.Uint64("tag-seed", 1, "seed of TestTagsNeverOpen")

// TestTagsNeverOpen: whatever other engines do to the schema, and whatever is done
// to the tags of other columns, a field keeps its tags until they are taken from
// it, one that only restricts never begins to give, and a column that takes the
// name of a dropped one has its tags.
func TestTagsNeverOpen(t *testing.T) {
	t.Logf("seed %d", *tagSeed)
	rng := rand.New(rand.NewPCG(*tagSeed, 0))
	for range 15 {
		neverOpen(t, rng)
	}
}

func neverOpen(t *testing.T, rng *rand.Rand) {
	l := newTagLab(t, iceberg.NewSchema(0, col(1, "keep", iceberg.PrimitiveTypes.Int64), col(2, "a", iceberg.PrimitiveTypes.String), col(3, "b", iceberg.PrimitiveTypes.String)))
	var did []string
	state := func() (map[int][]plan.Tag, map[string]int) {
		tb, err := l.c.Table(ctx, l.n, plan.AsOf{}, "")
		if err != nil {
			t.Fatalf("%q: %v", did, err)
		}
		names := map[string]int{}
		for _, f := range tb.Fields {
			names[f.Name] = f.ID
		}
		return tb.Tags, names
	}
	pick := func(names map[string]int) string {
		all := slices.Sorted(maps.Keys(names))
		return all[rng.IntN(len(all))]
	}
	free := func(names map[string]int) string {
		for {
			n := string("abcd"[rng.IntN(4)])
			if _, ok := names[n]; !ok {
				return n
			}
		}
	}
	lost := map[string][]string{} // tags of dropped columns by name
	for range 14 {
		before, names := state()
		column := pick(names)
		touched, tag := 0, string("XY"[rng.IntN(2)])
		var set, unset bool
		switch op := rng.IntN(10); {
		case op < 3 && column != "keep" && len(names) < 5:
			to := free(names)
			did = append(did, "rename "+column+" "+to)
			l.rename(column, to)
		case op < 4 && column != "keep":
			did = append(did, "drop "+column)
			lost[column] = nil
			for _, g := range before[names[column]] {
				lost[column] = append(lost[column], g.Name)
			}
			l.drop(column)
		case op < 6 && len(names) < 5:
			to := free(names)
			did = append(did, "add "+to)
			l.add(to)
			after, now := state()
			for _, want := range lost[to] {
				if !slices.ContainsFunc(after[now[to]], func(g plan.Tag) bool { return g.Name == want }) {
					t.Fatalf("%q: the new column %s has not the tag %s of the dropped one: %v", did, to, want, after)
				}
			}
		case op < 7:
			did = append(did, "foreign "+column+" "+tag)
			tb, err := l.c.Table(ctx, l.n, plan.AsOf{}, "")
			must(t, err)
			tags := map[string][]string{}
			if text := tb.Properties[ColumnTagsProperty]; text != "" {
				must(t, json.Unmarshal([]byte(text), &tags))
			}
			if !slices.Contains(tags[column], tag) {
				tags[column] = append(tags[column], tag)
			}
			text, err := json.Marshal(tags)
			must(t, err)
			l.foreign(string(text))
			touched = names[column]
		case op < 8:
			did = append(did, "set "+column+" "+tag)
			l.alter("+" + column + " " + tag)
			touched, set = names[column], true
		default:
			did = append(did, "unset "+column+" "+tag)
			l.alter("-" + column + " " + tag)
			touched, unset = names[column], true
			for name, tags := range lost {
				if name == column {
					lost[name] = slices.DeleteFunc(tags, func(s string) bool { return s == tag })
				}
			}
		}
		after, _ := state()
		has := func(id int, tag string) (there, gives bool) {
			for _, g := range after[id] {
				if g.Name == tag {
					return true, !g.Inherited
				}
			}
			return false, false
		}
		for id, tags := range before {
			for _, g := range tags {
				if id == touched && g.Name == tag {
					continue
				}
				there, gives := has(id, g.Name)
				if !there || gives && g.Inherited {
					t.Fatalf("%q: field %d had %v, now there are %v", did, id, g, after)
				}
			}
		}
		if there, gives := has(touched, tag); touched != 0 && (set && !gives || unset && there) {
			t.Fatalf("%q: field %d: %v", did, touched, after)
		}
	}
}
