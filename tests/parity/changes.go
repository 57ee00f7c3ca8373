package parity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Held is what a table holds after a statement that changed it in the peer. Where the
// capture reads the table next, it is that answer; between two reads it follows from
// the rows before and from what the peer makes of policies.
type Held struct {
	// Columns are those of a table that the statement made, as in CREATE TABLE.
	Columns string  `json:"columns,omitempty"`
	Rows    [][]any `json:"rows"`
}

// Held is what the peer's tables held after each captured statement that changed
// one, by case.
func (peer *Peer) Held() (map[string]Held, error) {
	text, err := os.ReadFile(filepath.Join("testdata", peer.Name+"-rows.json"))
	if err != nil {
		return nil, err
	}
	out := map[string]Held{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return out, d.Decode(&out)
}

// text is the rows in the form in which holds reads them.
func (h Held) text() string {
	c := Case{Types: []string{}, Rows: h.Rows}
	for len(h.Rows) > 0 && len(c.Types) < len(h.Rows[0]) {
		c.Types = append(c.Types, "")
	}
	return Expected(c)
}

// values are the rows as a list of rows in SQL, as an administrator writes them.
func (h Held) values() string {
	rows := make([]string, len(h.Rows))
	for i, r := range h.Rows {
		cells := make([]string, len(r))
		for j, v := range r {
			switch v := v.(type) {
			case nil:
				cells[j] = "NULL"
			case json.Number:
				cells[j] = v.String()
			default:
				cells[j] = "'" + strings.ReplaceAll(fmt.Sprint(v), "'", "''") + "'"
			}
		}
		rows[i] = "(" + strings.Join(cells, ", ") + ")"
	}
	return strings.Join(rows, ", ")
}

var (
	changesRowsRE = regexp.MustCompile(`^(INSERT|UPDATE|DELETE|MERGE|TRUNCATE|CREATE TABLE \S+ (USING \w+ )?AS|DROP TABLE|ALTER TABLE \S+ EXECUTE)\b`)
	changedRE     = regexp.MustCompile(`\b(?:INTO|FROM|UPDATE|TABLE) (\w+\.\w+)`)
)

// changes is the table whose rows a statement is about, if it is to change any.
func (c Case) changes() (table string, ok bool) {
	if !changesRowsRE.MatchString(c.SQL) {
		return "", false
	}
	m := changedRE.FindStringSubmatch(c.SQL)
	return m[1], true
}
