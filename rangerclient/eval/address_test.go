package eval

import (
	"strings"
	"testing"
	"time"

	"sqe/rangerclient/model"
)

// TestAddresses: the condition on addresses takes what Ranger's RangerIpMatcher takes,
// whichever way an address is written, and says that it does not know where Ranger
// would open or close by accident.
func TestAddresses(t *testing.T) {
	for _, x := range []struct {
		values string
		want   map[string]tri
	}{
		{"", map[string]tri{"": yes, "10.0.0.7": yes}},
		{"*", map[string]tri{"": yes, "10.0.0.7": yes, "2001:db8::1": yes}},
		{"*.*.*|1.2.3.4", map[string]tri{"": yes, "10.0.0.7": yes}},
		{"*:*", map[string]tri{"10.0.0.7": yes}},
		{"10.0.0.7", map[string]tri{"": unknown, "10.0.0.7": yes, "10.0.0.70": no, "110.0.0.7": no, "::ffff:10.0.0.7": yes, "nonsense": unknown}},
		{"10.0.*", map[string]tri{"": unknown, "10.0.0.7": yes, "10.0.255.1": yes, "10.1.0.7": no, "110.0.0.7": no}},
		{"10.0.*.*|192.168.1.1", map[string]tri{"10.0.3.4": yes, "192.168.1.1": yes, "192.168.1.11": no}},
		{"10.*", map[string]tri{"10.200.0.1": yes, "100.0.0.1": no}},
		{"2001:db8:*", map[string]tri{"2001:db8::1": yes, "2001:DB8:0:0:0:0:0:1": yes, "2001:db80::1": no, "10.0.0.7": no}},
		{"2001:DB8:0:*:*", map[string]tri{"2001:db8::1": yes, "2001:db8:1::1": no}},
		{"fe80::1", map[string]tri{"fe80:0:0:0:0:0:0:1": yes, "fe80::1%eth0": yes, "fe80::12": no}},
		// Ranger takes an address in capital letters for the beginning of one.
		{"FE80::1", map[string]tri{"fe80::1": yes, "fe80::12": unknown, "fe80::2": no}},
		// Ranger compares these as texts, and finds nobody.
		{"10.0.0.0/8", map[string]tri{"10.0.0.7": unknown, "192.168.1.1": unknown}},
		{"10.0.0.1-10.0.0.9|192.168.1.1", map[string]tri{"10.0.0.7": unknown, "192.168.1.1": yes}},
		{" 10.0.0.7|10.*.0.7|10.0*|host.*|1000.*|010.0.0.7", map[string]tri{"10.0.0.7": unknown}},
	} {
		var values []string
		if x.values != "" {
			values = strings.Split(x.values, "|")
		}
		for from, want := range x.want {
			q := NewRequest(&Subject{User: "ann"}, "select", time.Now())
			q.ClientIP, q.current = from, &Policy{ID: 1}
			c := newAddresses(values)
			if got := c.holds(q); got != want {
				t.Errorf("%q from %q: %d, want %d", x.values, from, got, want)
			}
			if (len(q.ByAddress()) == 1) == c.any {
				t.Errorf("%q: that the address was looked at is noted %d times", x.values, len(q.ByAddress()))
			}
		}
	}
	var problems []Problem
	c := &compiler{problems: &problems, conditions: map[string]model.ConditionDef{"ip-range": {Evaluator: "org.apache.ranger.plugin.conditionevaluator.RangerIpMatcher"}}}
	for _, values := range [][]string{{"10.0.0.7", "10.*", "2001:db8::1"}, {"*", "10.0.0.0/8"}, {"10.0.0.0/8", "10.0.0.7"}} {
		c.compileConditions(&model.Policy{ID: 3}, []model.Condition{{Type: "ip-range", Values: values}})
	}
	if len(problems) != 1 || problems[0].Policy != 3 || !strings.Contains(problems[0].Text, `"10.0.0.0/8"`) || strings.Contains(problems[0].Text, "10.0.0.7") {
		t.Error(problems)
	}
}

// TestAddressScripts: scripts see the address under all of Ranger's names, and one
// that is not known decides nothing.
func TestAddressScripts(t *testing.T) {
	for _, source := range []string{
		`REQ.clientIPAddress == '10.0.0.7'`, `ctx.getClientIPAddress() == '10.0.0.7'`, `REQ.remoteIPAddress.startsWith('10.0.')`,
		`_ctx.request.clientIPAddress == '10.0.0.7'`, `J(REQ.clientIPAddress) == '"10.0.0.7"'`, `REQ['client' + 'IPAddress'] == '10.0.0.7'`,
	} {
		s, err := compileScript(source)
		if err != nil {
			t.Fatal(source, err)
		}
		for from, want := range map[string]tri{"10.0.0.7": yes, "192.168.1.1": no, "": unknown} {
			q := scriptRequest()
			q.ClientIP, q.current = from, &Policy{ID: 1}
			if got := s.holds(q); got != want {
				t.Errorf("%s from %q: %d, want %d", source, from, got, want)
			}
			if len(q.ByAddress()) != 1 {
				t.Errorf("%s: it is not noted that the address was looked at", source)
			}
		}
	}
	s, err := compileScript(`REQ.user == 'ann' && _ctx.tagNames.length == 2 && REQ.forwardedAddresses.length == 0`)
	if err != nil {
		t.Fatal(err)
	}
	q := scriptRequest()
	q.current = &Policy{ID: 1}
	if s.holds(q) != yes || len(q.ByAddress()) != 0 {
		t.Error("a script that does not look at the address:", q.ByAddress())
	}
	for _, source := range []string{`REQ.clientType == 'jdbc'`, `REQ.clusterName != 'c1'`, `REQ.action == 'query'`, `REQ.requestData == null`} {
		if s, err := compileScript(source); err != nil || s.holds(scriptRequest()) != unknown {
			t.Errorf("%s is decided: %v", source, err)
		}
	}
}
