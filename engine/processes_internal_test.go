package engine

import "testing"

func TestCounted(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1234: "-1,234", -123: "-123"} {
		if got := counted(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
