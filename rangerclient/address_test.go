package rangerclient

import (
	"strings"
	"testing"

	"sqe/identity"
	"sqe/policy"
	"sqe/rangerclient/model"
)

// TestAddress: the address of the session reaches both gates, under one state that
// remembers principals, and the answers say that they depend on it.
func TestAddress(t *testing.T) {
	office := []model.Condition{{Type: "_expression", Values: []string{"REQ.clientIPAddress.startsWith('10.')"}}}
	b := newBuild(t)
	b.object("root=* catalog=c namespace=s table=t", item("public", "table-data-read")).PolicyItems[0].Conditions = office
	b.mask("database=s table=t column=a", "public: MASK_NONE", "public: MASK").DataMaskPolicyItems[0].Conditions = office
	b.filter(&b.data, "database=s table=t", "", "public: ", "public: a = '${{REQ.clientIPAddress}}'").RowFilterPolicyItems[0].Conditions = office
	b.mask("database=s table=t column=b", "public: MASK")
	b.mask("database=s table=u column=a", "public: MASK")
	st := b.state(Options{})
	tab, other := table("c.s.t", "a", "b"), table("c.s.u", "a")
	from := func(address string) identity.Principal { return identity.Principal{Name: "ann", Address: address} }
	for range 2 {
		for address, want := range map[string]struct {
			reads  bool
			filter string
			mask   string
		}{
			"10.1.2.3":    {true, "", ""},
			"192.168.1.1": {false, "a = '192.168.1.1'", "MASK"},
			"192.168.1.2": {false, "a = '192.168.1.2'", "MASK"},
		} {
			d := st.Authorize(from(address), policy.TableObject(tab.Name), policy.TableDataRead)
			if d.Allow != want.reads || !d.ByAddress {
				t.Errorf("%s: %+v", address, d)
			}
			r, err := st.Restrict(from(address), tab)
			if err != nil || r.Refuse != "" {
				t.Fatal(err, r)
			}
			filter := ""
			if len(r.Filters) > 0 {
				filter = r.Filters[0].SQL
			}
			if filter != want.filter || r.Columns[1].Action != want.mask || r.Columns[2].Action != "MASK" {
				t.Errorf("%s: filter %q, masks %v", address, filter, r.Columns)
			}
			notes := strings.Join(r.Notes, "\n")
			if !r.ByAddress || strings.Count(notes, "("+address+")") != 2 || !strings.Contains(notes, `policy 2 "p002"`) || !strings.Contains(notes, `policy 3 "p003"`) || strings.Contains(notes, "p004") {
				t.Errorf("%s: %q", address, notes)
			}
		}
	}
	// An address that is not known gives nothing and lifts nothing.
	if d := st.Authorize(from(""), policy.TableObject(tab.Name), policy.TableDataRead); d.Allow {
		t.Error("allowed without an address:", d)
	}
	if r, err := st.Restrict(from(""), tab); err != nil || r.Refuse == "" {
		t.Error("a filter with an address that is not known:", r, err)
	}
	// What no address decides does not say so.
	if r, err := st.Restrict(from("10.1.2.3"), other); err != nil || r.ByAddress || len(r.Notes) > 0 || r.Columns[1].Action != "MASK" {
		t.Error(r, err)
	}
	if d := st.Authorize(from("10.1.2.3"), policy.TableObject(other.Name), policy.TableDataRead); d.ByAddress {
		t.Error(d)
	}
}
