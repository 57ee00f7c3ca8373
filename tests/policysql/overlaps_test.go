package policysql

import (
	"context"
	"strings"
	"testing"

	"sqe/fault"
	"sqe/rangerclient/model"
)

// TestNoSilentSecondPolicy: beside a policy that names the table in another way no
// second one is written that would do nothing; an override acts, and what the
// warning says of who sees what is so.
func TestNoSilentSecondPolicy(t *testing.T) {
	l := open(t)
	if _, err := l.store.CreatePolicy(context.Background(), &model.Policy{
		Service: "hive", Name: "mask iban", PolicyType: model.MaskPolicy,
		Resources: map[string]model.Resource{"database": {Values: []string{"bank"}}, "table": {Values: []string{"customers"}}, "column": {Values: []string{"iban"}}},
		DataMaskPolicyItems: []*model.Item{{
			Groups: []string{"public"}, Accesses: []model.Access{{Type: "select"}}, DataMaskInfo: &model.DataMaskInfo{DataMaskType: "MASK_SHOW_LAST_4"},
		}},
	}); err != nil {
		t.Fatal(err)
	}
	const create = "CREATE POLICY zz ON TABLE bank.customers COLUMN MASK MASK_NULL TO GROUP eu ON COLUMN %"
	statement := func(rest string) string { return strings.ReplaceAll(create, "%", rest) }
	masked := map[string]string{"ann": last4, "ben": last4, "control": last4}
	l.write(statement("phone")) // the control: another column; it also makes the source read what was written
	l.sees(first, masked)
	l.write("DROP POLICY zz")
	_, err := ask(l.root, statement("iban"))
	if !fault.Is(err, fault.BadStatement) || !strings.Contains(err.Error(), "'mask iban'") || !strings.Contains(err.Error(), "ALTER POLICY `mask iban` ADD") || !strings.Contains(err.Error(), "PRIORITY OVERRIDE") {
		t.Fatalf("%v", err)
	}
	l.sees(first, masked)
	l.write(statement("iban PRIORITY OVERRIDE"))
	if got, _ := ask(l.root, "SHOW WARNINGS"); !strings.Contains(got, "the policy 'mask iban' is on column iban") || !strings.Contains(got, "for whom 'zz' names it alone acts, and 'mask iban' for the others") {
		t.Errorf("warned %q", got)
	}
	l.sees(first, map[string]string{"ann": "NULL", "ben": "NULL", "control": last4})
	if _, err := ask(l.root, "ALTER POLICY zz SET PRIORITY NORMAL"); !fault.Is(err, fault.BadStatement) {
		t.Errorf("%v", err)
	}
	// What the refusal advises does what it says.
	l.write("DROP POLICY zz")
	l.write("ALTER POLICY `mask iban` ADD FIRST COLUMN MASK MASK_NULL TO GROUP eu")
	l.sees(first, map[string]string{"ann": "NULL", "ben": "NULL", "control": last4})
}
