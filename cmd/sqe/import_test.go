package main

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestTableName(t *testing.T) {
	for path, want := range map[string]string{
		"trips.csv": "trips", "/a/b/Trips-2024.01.csv.gz": "trips_2024", "2024.parquet": "t2024", ".hidden.csv": "hidden", "Zürich Fahrten.csv": "zürich_fahrten",
		"...": "t", "x`y.csv": "x_y",
	} {
		if got := tableName(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	if got := quotedTable("a.b`c.d"); got != "`a`.`b``c`.`d`" {
		t.Error(got)
	}
}

// TestProgress: a bar on a terminal, lines elsewhere.
func TestProgress(t *testing.T) {
	p := newProgress(io.Discard, "x.csv", 4<<20, true)
	for _, x := range []struct {
		sent  int64
		stage string
		want  string
	}{
		{0, "", "x.csv  [                              ]   0 %  0 B of 4.0 MiB  0 B/s"},
		{1 << 20, "", "x.csv  [=======                       ]  25 %  1.0 MiB of 4.0 MiB  512.0 KiB/s"},
		{4 << 20, "", "x.csv  [==============================] 4.0 MiB sent, committing"},
		{5 << 20, "loading: 1,000 rows", "x.csv  [==============================] 4.0 MiB sent, loading: 1,000 rows"},
	} {
		if got := p.line(x.sent, 2*time.Second, x.stage); got != x.want {
			t.Errorf("%d:\n%s\n%s", x.sent, got, x.want)
		}
	}
	for _, terminal := range []bool{true, false} {
		var out shown
		p := newProgress(&out, "x.csv", 3, terminal)
		p.stage = func() string { return "loading" }
		stop := p.show()
		if n, err := io.Copy(io.Discard, p.reading(strings.NewReader("abc"))); n != 3 || err != nil {
			t.Fatal(n, err)
		}
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if got := out.String(); strings.Contains(got, "sent, loading") || !terminal && strings.Contains(got, "committing") {
				break
			}
		}
		if !terminal {
			time.Sleep(300 * time.Millisecond) // what might come after the last line
		}
		stop()
		got := out.String()
		if terminal && (!strings.Contains(got, "\rx.csv  [") || !strings.Contains(got, "sent, loading") || !strings.HasSuffix(got, "\r\x1b[K")) {
			t.Errorf("%q", got)
		}
		if !terminal && got != "x.csv: sending 3 B\nx.csv: sent, committing\n" {
			t.Errorf("%q", got)
		}
	}
}

// shown is what was shown so far.
type shown struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *shown) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *shown) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}
