package identity

import "testing"

// TestKey: principals whose decisions may differ have different keys.
func TestKey(t *testing.T) {
	all := []Principal{
		{Name: "ann"},
		{Name: "Ann"},
		{Name: "ann "},
		{Name: "ann", Groups: []string{"ann"}},
		{Name: "ann", Roles: []string{"ann"}},
		{Name: "ann", ActiveRoles: []string{}},
		{Name: "ann", ActiveRoles: []string{"ann"}},
		{Name: "ann", Attributes: map[string]string{"ann": ""}},
		{Name: "ann", Groups: []string{"a", "b"}},
		{Name: "ann", Groups: []string{"a\x00gb"}},
		{Name: "ann", Groups: []string{"a", "B"}},
		{Name: "ann", Groups: []string{"a", "b "}},
		{Name: "ann", Address: "10.0.0.7"},
		{Name: "ann", Address: "10.0.0.70"},
		{Name: "ann", Attributes: map[string]string{"a": "b=c"}},
		{Name: "ann", Attributes: map[string]string{"a=b": "c"}},
	}
	seen := map[string]int{}
	for i, p := range all {
		if other, ok := seen[p.Key()]; ok {
			t.Errorf("%+v and %+v are one", p, all[other])
		}
		seen[p.Key()] = i
	}
	if (Principal{Name: "ann", Groups: []string{"a", "b"}}).Key() != (Principal{Name: "ann", Groups: []string{"b", "a"}}).Key() {
		t.Error("the order of groups counts")
	}
}

// TestAddress: one address has one text.
func TestAddress(t *testing.T) {
	for remote, want := range map[string]string{
		"10.0.0.7:1234": "10.0.0.7", "[::ffff:10.0.0.7]:1": "10.0.0.7", "[2001:DB8:0:0:0:0:0:1]:9": "2001:db8::1", "[fe80::1%eth0]:9": "fe80::1",
		"": "", "test": "", "10.0.0.7": "", "host:1": "", "10.0.0.7:": "",
	} {
		if got := Address(remote); got != want {
			t.Errorf("%q: %q, want %q", remote, got, want)
		}
	}
}
