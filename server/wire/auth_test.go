package wire

import (
	"errors"
	"strings"
	"testing"
)

// TestParseChangeUser: the layouts that clients send, short ones and long ones.
func TestParseChangeUser(t *testing.T) {
	const caps = ClientPluginAuth | ClientConnectAttrs
	whole := "bob\x00\x03abcshop\x00\x2d\x00caching_sha2_password\x00\x14\x0cprogram_name\x06client"
	r, err := ParseChangeUser([]byte(whole), caps)
	if err != nil || r.User != "bob" || string(r.Auth) != "abc" || r.Database != "shop" || r.Method != MethodCachingSHA2 || r.Program != "client" {
		t.Errorf("%+v %v", r, err)
	}
	if r, err := ParseChangeUser([]byte("bob\x00\x00\x00"), caps); err != nil || r.User != "bob" || r.Database != "" || r.Method != "" {
		t.Errorf("%+v %v", r, err)
	}
	for _, bad := range []string{"", "bob", "bob\x00", "bob\x00\x03ab", "bob\x00\x03abcshop", "bob\x00\x00\x00\x2d", "bob\x00\x00\x00\x2d\x00method"} {
		if r, err := ParseChangeUser([]byte(bad), caps); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %+v %v", bad, r, err)
		}
	}
}

// FuzzLoginPackets: nothing that a client sends after the greeting makes a reader
// panic, or gives more than was sent.
func FuzzLoginPackets(f *testing.F) {
	f.Add([]byte("\x01\x05a.b.c"))
	f.Add([]byte("\x01\x05a.b.c\x00\x00"))
	f.Add([]byte("bob\x00\x03abcshop\x00\x2d\x00caching_sha2_password\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if token, err := ParseOpenID(data); err == nil && !strings.HasSuffix(strings.TrimRight(string(data), "\x00"), strings.TrimRight(token, "\x00")) {
			t.Errorf("%q gives %q", data, token)
		}
		if r, err := ParseChangeUser(data, ClientPluginAuth|ClientConnectAttrs); err == nil && len(r.User)+len(r.Auth)+len(r.Database) > len(data) {
			t.Errorf("%q gives %+v", data, r)
		}
	})
}
