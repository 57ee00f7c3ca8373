package admin

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"sqe/fault"
	"sqe/plan"
	"sqe/policy"
	"sqe/rangerclient/model"
)

var root = policy.Author{User: "root", From: "10.0.0.7"}

// administrator is one over a fake; reloads counts.
func administrator(t *testing.T, f *fake, change func(*Config)) (a *Administrator, reloads *int) {
	t.Helper()
	reloads = new(int)
	c := Config{Source: "ranger", DataService: "lake", PolarisService: "objects", ProjectTags: true, Reload: func(context.Context) error { *reloads++; return nil }}
	if change != nil {
		change(&c)
	}
	a, err := New(f, c)
	if err != nil {
		t.Fatal(err)
	}
	a.writer.pause = func(int) time.Duration { return time.Millisecond }
	return a, reloads
}

func wantFault(t *testing.T, err error, kind fault.Kind, words ...string) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Errorf("got %v (%v), want a fault of kind %v", err, fault.KindOf(err), kind)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

func TestCreateAndDrop(t *testing.T) {
	ctx := context.Background()
	f := lake()
	a, reloads := administrator(t, f, nil)
	d := maskOn("iban")
	if err := a.Create(ctx, root, d, false); err != nil {
		t.Fatal(err)
	}
	list, err := a.List(ctx)
	if err != nil || len(list) != 1 || *reloads != 1 {
		t.Fatalf("%v, %v, %d reloads", list, err, *reloads)
	}
	if s := list[0]; s.Service != "lake" || s.Resources != "database=bank.eu.retail, table=customers, column=iban" || !slices.Equal(s.Labels, []string{"managed-by:sqe", "sqe:by=root"}) || len(s.Beyond) > 0 {
		t.Errorf("%+v", s)
	}
	wantFault(t, a.Create(ctx, root, d, false), fault.BadStatement, "OR REPLACE", `"m"`)
	d.Items = append(d.Items, policy.Item{Grantees: to(policy.GroupGrantee, "public"), Mask: "MASK"})
	if err := a.Create(ctx, policy.Author{User: "eve"}, d, true); err != nil {
		t.Fatal(err)
	}
	if list, _ = a.List(ctx); len(list) != 1 || len(list[0].Items) != 2 || list[0].Version != 2 || !slices.Contains(list[0].Labels, "sqe:by=eve") || !strings.Contains(list[0].Description, "root from 10.0.0.7") {
		t.Errorf("%+v", list)
	}
	d.Name = "n"
	wantFault(t, a.Create(ctx, root, d, true), fault.BadStatement, `policy "m"`, `ALTER POLICY "m" ADD`)
	wantFault(t, a.Drop(ctx, root, "n"), fault.NotFound, "SHOW POLICIES")
	if err := a.Drop(ctx, root, "m"); err != nil || len(f.policies) != 0 {
		t.Errorf("%v, %d left", err, len(f.policies))
	}
	if *reloads != 3 {
		t.Errorf("%d reloads, want one for each write", *reloads)
	}
}

func TestCreateOnTagGoesToTheTagService(t *testing.T) {
	f := lake()
	a, _ := administrator(t, f, nil)
	d := policy.Definition{Name: "m", Kind: policy.MaskDefinition, Tag: "PII", Items: maskOn("x").Items}
	if err := a.Create(context.Background(), root, d, false); err != nil {
		t.Fatal(err)
	}
	if err := a.Create(context.Background(), root, maskOn("iban"), true); err != nil {
		t.Fatal(err) // the same name in the other service
	}
	wantFault(t, a.Drop(context.Background(), root, "m"), fault.BadStatement, "service lake", "service tags")
	if len(f.policies) != 2 {
		t.Errorf("%d policies", len(f.policies))
	}
}

func TestCreateInZone(t *testing.T) {
	ctx := context.Background()
	for database, want := range map[string]string{"bank.*": "eu", "eu.retail": "eu", "EU.*": "eu", "us*": "", "bank": ""} {
		f := lake()
		f.zones = []*model.Zone{{Name: "eu", Services: map[string]model.ZoneService{"lake": {Resources: []map[string][]string{{"database": {database}, "table": {"*"}}}}}}}
		a, _ := administrator(t, f, nil)
		if err := a.Create(ctx, root, maskOn("iban"), false); err != nil {
			t.Fatal(err)
		}
		list, err := a.List(ctx)
		if err != nil || len(list) != 1 || list[0].Zone != want {
			t.Errorf("zone of %s: %+v, %v; want zone %q", database, list, err, want)
		}
	}
	f := lake()
	f.forbid = true
	a, _ := administrator(t, f, nil)
	if err := a.Create(ctx, root, maskOn("iban"), false); err != nil {
		t.Errorf("no zones to be read and no policy in one: %v", err)
	}
	zoned := masks(mask("MASK", "x"))
	zoned.Name, zoned.ZoneName = "z", "eu"
	stored(t, f, zoned)
	d := maskOn("email")
	d.Name = "other"
	wantFault(t, a.Create(ctx, root, d, false), fault.Denied, "security zones")
}

func TestAlter(t *testing.T) {
	ctx := context.Background()
	f := lake()
	a, _ := administrator(t, f, nil)
	if err := a.Create(ctx, root, maskOn("iban"), false); err != nil {
		t.Fatal(err)
	}
	yes, name, when := true, "renamed", time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	var checked policy.Definition
	c := policy.Change{
		Rename: &name, Disabled: &yes, Override: &yes, ValidUntil: &when, First: true,
		Add: []policy.Item{{Grantees: to(policy.UserGrantee, "boss"), Mask: "MASK_NONE"}},
	}
	// What somebody else wrote and SQE has no word for stays.
	for _, p := range f.policies {
		p.Conditions = []model.Condition{{Type: "_expression", Values: []string{"x"}}}
	}
	if err := a.Alter(ctx, root, "m", c, func(d policy.Definition) error { checked = d; return nil }); err != nil {
		t.Fatal(err)
	}
	list, err := a.List(ctx)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	s := list[0]
	if s.Name != name || !s.Disabled || !s.Override || !s.ValidUntil.Equal(when) || len(s.Items) != 2 || s.Items[0].Mask != "MASK_NONE" || !slices.Equal(s.Beyond, []string{"conditions"}) {
		t.Errorf("%+v", s)
	}
	if checked.Name != name || len(checked.Items) != 2 {
		t.Errorf("checked %+v", checked)
	}
	writes := f.writes
	no := errors.New("no such column")
	if err := a.Alter(ctx, root, name, policy.Change{Description: &name}, func(policy.Definition) error { return no }); !errors.Is(err, no) || f.writes != writes {
		t.Errorf("refused by the check: %v, %d writes", err, f.writes-writes)
	}
	if err := a.Alter(ctx, root, name, policy.Change{Remove: to(policy.UserGrantee, "boss")}, nil); err != nil {
		t.Fatal(err)
	}
	wantFault(t, a.Alter(ctx, root, name, policy.Change{Remove: to(policy.UserGrantee, "boss")}, nil), fault.BadStatement, "names no user boss")
	wantFault(t, a.Alter(ctx, root, name, policy.Change{Remove: to(policy.RoleGrantee, "analyst")}, nil), fault.BadStatement, "DROP POLICY")
	wantFault(t, a.Alter(ctx, root, name, policy.Change{Add: []policy.Item{{Grantees: to(policy.UserGrantee, "x"), Mask: "CUSTOM"}}}, nil), fault.BadStatement, "ALTER POLICY: CUSTOM COLUMN MASK requires USING")
	wantFault(t, a.Alter(ctx, root, "m", policy.Change{}, nil), fault.NotFound)
	if list, _ = a.List(ctx); len(list[0].Items) != 1 {
		t.Errorf("a refused change was stored: %+v", list[0])
	}
	grant := granting(allow("alice", "select"))
	stored(t, f, grant)
	wantFault(t, a.Alter(ctx, root, "g", policy.Change{Add: maskOn("x").Items}, nil), fault.Unsupported, "docs/grants.md")
}

// TestAlterMerges: a mask added through Ranger at the same time is there too.
func TestAlterMerges(t *testing.T) {
	f := lake()
	a, _ := administrator(t, f, nil)
	if err := a.Create(context.Background(), root, maskOn("iban"), false); err != nil {
		t.Fatal(err)
	}
	f.before = once(func(_ string, id int64) error {
		f.foreign(f.policies[id], func(p *model.Policy) {
			p.DataMaskPolicyItems = append(p.DataMaskPolicyItems, mask("MASK_NULL", "mallory"))
		})
		return nil
	})
	if err := a.Alter(context.Background(), root, "m", policy.Change{Add: []policy.Item{{Grantees: to(policy.UserGrantee, "bob"), Mask: "MASK"}}}, nil); err != nil {
		t.Fatal(err)
	}
	for id := range f.policies {
		wantUsers(t, f, id, "bob", "mallory")
	}
}

func TestFaults(t *testing.T) {
	ctx := context.Background()
	answer := func(err error) error {
		f := lake()
		f.before = func(string, int64) error { return err }
		a, reloads := administrator(t, f, nil)
		out := a.Create(ctx, root, maskOn("iban"), false)
		if *reloads != 0 {
			t.Error("reloaded though nothing was written")
		}
		if out != nil && strings.Contains(out.Error(), "secret") {
			t.Errorf("the server's words are in a fault: %v", out)
		}
		return out
	}
	wantFault(t, answer(&Error{Kind: UnknownPrincipal, Name: "ghost", Reason: "secret"}), fault.NoPrincipal, `"ghost"`)
	wantFault(t, answer(&Error{Kind: UnknownPrincipal, Name: "ghost", Reason: "Operation denied. Role name: ghost specified in policy does not exist in ranger admin."}), fault.NoPrincipal, `the role "ghost"`)
	wantFault(t, answer(&Error{Kind: UnknownPrincipal, Name: "ghost", Reason: "Operation denied. User name: ghost specified in policy does not exist in ranger admin."}), fault.NoPrincipal, `the user "ghost"`, "ROLE")
	wantFault(t, answer(&Error{Kind: Forbidden, Reason: "secret"}), fault.Denied, "service.admin.users", "lake")
	wantFault(t, answer(&Error{Kind: Unauthenticated, Reason: "secret"}), fault.Unavailable, "password", "source ranger")
	wantFault(t, answer(&Error{Kind: Invalid, Code: 3022, Reason: "secret"}), fault.BadStatement, "3022", "autopropagate")
	wantFault(t, answer(&Error{Kind: Invalid, Reason: "secret"}), fault.BadStatement, "mask")
	wantFault(t, answer(errors.New("secret: connection reset")), fault.Unavailable, "look again")

	f := lake()
	a, _ := administrator(t, f, func(c *Config) { c.Reload = func(context.Context) error { return errors.New("secret") } })
	wantFault(t, a.Create(ctx, root, maskOn("iban"), false), fault.Unavailable, "is stored", "not yet in force")
	if len(f.policies) != 1 {
		t.Error("it is not stored")
	}
	a, _ = administrator(t, f, func(c *Config) { c.DataService = "objects" })
	wantFault(t, a.Create(ctx, root, maskOn("iban"), false), fault.Config, "hive or trino")
	a, _ = administrator(t, f, func(c *Config) { c.DataService = "nosuch" })
	wantFault(t, a.Drop(ctx, root, "x"), fault.NotFound, "nosuch")
}

// tagsOf lists the tags that the fake has, as column=tag.
func tagsOf(f *fake) (out []string) {
	doc, _ := f.Tags(context.Background(), "lake")
	p := &projection{now: doc}
	for _, r := range doc.ServiceResources {
		for _, t := range p.tags(r) {
			out = append(out, strings.Join(slices.Concat(r.ResourceElements["database"].Values, r.ResourceElements["table"].Values, r.ResourceElements["column"].Values), "/")+"="+t.Type)
		}
	}
	slices.Sort(out)
	return out
}

func TestProjectTags(t *testing.T) {
	ctx := context.Background()
	table := &plan.Table{Name: customers}
	for _, adds := range []bool{false, true} {
		f := lake()
		f.adds = adds
		a, reloads := administrator(t, f, nil)
		// A tag of somebody else, with an attribute, on the same column and on another table.
		foreign := newTags("lake", "add_or_update")
		elsewhere := []model.Tag{{Type: "ATLAS", Attributes: model.Strings{"level": "high"}}}
		addTags(foreign, model.ServiceResource{ResourceElements: on("database", "bank.eu.retail", "table", "customers", "column", "iban")}, elsewhere, nil)
		addTags(foreign, model.ServiceResource{ResourceElements: on("database", "other", "table", "t")}, elsewhere, nil)
		if err := f.ImportTags(ctx, foreign); err != nil {
			t.Fatal(err)
		}
		step := func(before, after map[string][]string, want ...string) {
			t.Helper()
			f.imports = nil
			if err := a.ProjectTags(ctx, root, table, before, after); err != nil {
				t.Fatal(err)
			}
			want = append(want, "other/t=ATLAS", "bank.eu.retail/customers/iban=ATLAS")
			slices.Sort(want)
			if got := tagsOf(f); !slices.Equal(got, want) {
				t.Errorf("adds only %t: tags %q, want %q", adds, got, want)
			}
		}
		step(nil, map[string][]string{"iban": {"PII"}, "email": {"PII", "CONTACT"}}, "bank.eu.retail/customers/iban=PII", "bank.eu.retail/customers/email=PII", "bank.eu.retail/customers/email=CONTACT")
		step(map[string][]string{"iban": {"PII"}, "email": {"PII", "CONTACT"}}, map[string][]string{"iban": {"FIN"}, "mail": {"PII", "CONTACT"}},
			"bank.eu.retail/customers/iban=FIN", "bank.eu.retail/customers/mail=PII", "bank.eu.retail/customers/mail=CONTACT")
		if f.imports[0].Op != "add_or_update" || len(f.imports) < 2 {
			t.Errorf("imports %v: additions come first", len(f.imports))
		}
		step(map[string][]string{"iban": {"FIN"}, "mail": {"PII", "CONTACT"}}, map[string][]string{"iban": {"FIN"}, "mail": {"PII", "CONTACT"}},
			"bank.eu.retail/customers/iban=FIN", "bank.eu.retail/customers/mail=PII", "bank.eu.retail/customers/mail=CONTACT")
		if len(f.imports) != 0 {
			t.Errorf("%d imports though nothing changes", len(f.imports))
		}
		if *reloads != 3 {
			t.Errorf("%d reloads", *reloads)
		}
		doc := f.tags["lake"]
		if tag := doc.Tags[doc0(doc, "ATLAS")]; tag.Attributes["level"] != "high" {
			t.Errorf("the attribute of a foreign tag is lost: %+v", tag)
		}
	}
}

func doc0(doc *model.ServiceTags, typ string) string {
	for k, t := range doc.Tags {
		if t.Type == typ {
			return k
		}
	}
	return ""
}

// TestProjectTagsOpensNoWindow: after each import every column has the tags that
// it has before and after.
func TestProjectTagsOpensNoWindow(t *testing.T) {
	ctx := context.Background()
	table := &plan.Table{Name: customers}
	f := lake()
	a, _ := administrator(t, f, nil)
	before := map[string][]string{"iban": {"PII", "OLD"}, "email": {"PII"}}
	if err := a.ProjectTags(ctx, root, table, nil, before); err != nil {
		t.Fatal(err)
	}
	imports := 0
	f.after = func(op string, _ int64) error {
		if op != "tags" {
			return nil
		}
		imports++
		for _, must := range []string{"bank.eu.retail/customers/iban=PII", "bank.eu.retail/customers/email=PII"} {
			if !slices.Contains(tagsOf(f), must) {
				t.Errorf("import %d takes %s away for a moment", imports, must)
			}
		}
		return errors.New("the answer is lost")
	}
	if err := a.ProjectTags(ctx, root, table, before, map[string][]string{"iban": {"PII", "NEW"}, "email": {"PII"}}); err != nil {
		t.Fatal(err)
	}
	if imports != 2 {
		t.Errorf("%d imports", imports)
	}
	f.after = nil
	f.before = func(string, int64) error { return errors.New("no route") }
	wantFault(t, a.ProjectTags(ctx, root, table, map[string][]string{"iban": {"PII", "NEW"}}, nil), fault.Unavailable, "did not answer")
	off, _ := administrator(t, f, func(c *Config) { c.ProjectTags = false })
	wantFault(t, off.ProjectTags(ctx, root, table, nil, before), fault.Unsupported)
}
