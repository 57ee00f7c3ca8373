package admin

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"sqe/policy"
)

// ledger keeps in a file, one line for each, what statements said of the members of
// roles, so that a server that starts again still knows.
type ledger struct {
	path  string
	lines int
}

// line is one thing that a ledger keeps.
type line struct {
	Role string             `json:"role"`
	Kind policy.GranteeKind `json:"kind,omitempty"`
	Name string             `json:"name,omitempty"`
	In   bool               `json:"in,omitempty"` // made a member, or taken out
	// Gone: it is not known any more; without a name, all of the role is not.
	Gone bool `json:"gone,omitempty"`
	// Told: it was undone, and that was told.
	Told *Loss `json:"told,omitempty"`
}

// add appends lines. A nil ledger keeps nothing.
func (l *ledger) add(lines ...line) error {
	if l == nil || len(lines) == 0 {
		return nil
	}
	var b bytes.Buffer
	for _, x := range lines {
		if err := json.NewEncoder(&b).Encode(x); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b.Bytes())
	l.lines += len(lines)
	return errors.Join(err, f.Close())
}

// open reads what an earlier run kept, and shortens it.
func (m *memberships) open(file string, now time.Time) error {
	if file == "" {
		return nil
	}
	body, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("what is remembered of roles cannot be read: %w", err)
	}
	m.ledger = &ledger{path: file}
	for s := bufio.NewScanner(bytes.NewReader(body)); s.Scan(); m.ledger.lines++ {
		var x line
		if json.Unmarshal(s.Bytes(), &x) != nil {
			continue // a line that a crash cut off
		}
		m.recall(x, now)
	}
	if m.ledger.lines <= 2*len(m.wrote)+100 {
		if len(body) > 0 && body[len(body)-1] != '\n' {
			return m.ledger.newline()
		}
		return nil
	}
	return m.shorten()
}

func (l *ledger) newline() error {
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString("\n")
	return errors.Join(err, f.Close())
}

func (m *memberships) recall(x line, now time.Time) {
	key := membership{x.Role, policy.Grantee{Kind: x.Kind, Name: x.Name}}
	switch {
	case x.Gone && x.Name == "":
		for k := range m.wrote {
			if k.role == x.Role {
				delete(m.wrote, k)
				delete(m.losses, k)
			}
		}
	case x.Gone:
		delete(m.wrote, key)
		delete(m.losses, key)
	case x.Told != nil && now.Sub(x.Told.Noticed) > kept:
		delete(m.wrote, key)
	case len(m.wrote) < maxMemberships:
		if x.Told == nil || m.wrote[key].n == 0 {
			m.n++
			m.wrote[key] = gave{x.In, m.n}
		}
		if delete(m.losses, key); x.Told != nil {
			m.losses[key] = *x.Told
		}
	}
}

// shorten writes the file anew, with what is still of use.
func (m *memberships) shorten() error {
	next := &ledger{path: m.ledger.path + ".new"}
	if err := os.Remove(next.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var lines []line
	for _, key := range m.inOrder() {
		x := line{Role: key.role, Kind: key.grantee.Kind, Name: key.grantee.Name, In: m.wrote[key].in}
		if l, ok := m.losses[key]; ok {
			x.Told = &l
		}
		lines = append(lines, x)
	}
	if len(lines) == 0 {
		m.ledger.lines = 0
		return os.Truncate(m.ledger.path, 0)
	}
	if err := next.add(lines...); err != nil {
		return err
	}
	if err := os.Rename(next.path, m.ledger.path); err != nil {
		return err
	}
	m.ledger.lines = len(lines)
	return nil
}
