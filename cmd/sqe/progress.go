package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// progress shows how much of a file was sent: a bar on a terminal, else a line at the
// beginning and at the end.
type progress struct {
	to       io.Writer
	name     string
	total    int64
	terminal bool
	sent     atomic.Int64
	started  time.Time
	// stage, when not nil, asks the server how far it is after the file was sent.
	stage func() string
}

func newProgress(to io.Writer, name string, total int64, terminal bool) *progress {
	return &progress{to: to, name: name, total: total, terminal: terminal, started: time.Now()}
}

// reading counts what is read.
func (p *progress) reading(r io.Reader) io.Reader { return &countedReader{r, p} }

type countedReader struct {
	io.Reader
	p *progress
}

// Read implements io.Reader.
func (c *countedReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.p.sent.Add(int64(n))
	return n, err
}

// show shows the progress until stop is called.
func (p *progress) show() (stop func()) {
	done := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		told, stage := 0, ""
		var asked time.Time
		for {
			select {
			case <-done:
				if p.terminal {
					fmt.Fprint(p.to, "\r\x1b[K")
				}
				return
			case <-tick.C:
			}
			sent := p.sent.Load()
			switch {
			case p.terminal:
				if sent >= p.total && p.stage != nil && time.Since(asked) > time.Second/2 {
					stage, asked = p.stage(), time.Now()
				}
				fmt.Fprint(p.to, "\r"+p.line(sent, time.Since(p.started), stage)+"\x1b[K")
			case told == 0:
				told = 1
				fmt.Fprintf(p.to, "%s: sending %s\n", p.name, bytesText(p.total))
			case told == 1 && sent >= p.total:
				told = 2
				fmt.Fprintf(p.to, "%s: sent, committing\n", p.name)
			}
		}
	})
	return func() {
		close(done)
		shown.Wait()
	}
}

// barWidth is how many characters a full bar has.
const barWidth = 30

// line is the bar after some time; stage is what the server said last.
func (p *progress) line(sent int64, elapsed time.Duration, stage string) string {
	if sent >= p.total {
		if stage == "" {
			stage = "committing"
		}
		return fmt.Sprintf("%s  [%s] %s sent, %s", p.name, strings.Repeat("=", barWidth), bytesText(p.total), stage)
	}
	full := int(sent * barWidth / p.total)
	rate := int64(float64(sent) / max(elapsed.Seconds(), 0.001))
	return fmt.Sprintf("%s  [%s%s] %3d %%  %s of %s  %s/s", p.name, strings.Repeat("=", full), strings.Repeat(" ", barWidth-full),
		sent*100/p.total, bytesText(sent), bytesText(p.total), bytesText(rate))
}

// bytesText is a number of bytes for people.
func bytesText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}
