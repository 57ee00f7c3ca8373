package parity

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sqe/tests/sqetest"
)

// Case is a statement and what a peer answered.
type Case struct {
	Case     string   `json:"case"` // group and number
	User     string   `json:"user"`
	SQL      string   `json:"sql"`
	Error    string   `json:"error,omitempty"`    // the peer's name of the error
	Answered bool     `json:"answered,omitempty"` // with a text of its own form, such as a plan
	Types    []string `json:"types,omitempty"`
	Rows     [][]any  `json:"rows,omitempty"`
	names    bool     // only the first column counts
}

// Cases are the captured answers of a peer.
func (peer *Peer) Cases() ([]Case, error) {
	text, err := os.ReadFile(filepath.Join("testdata", peer.Name+".json"))
	if err != nil {
		return nil, err
	}
	var out []Case
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&out); err != nil {
		return nil, err
	}
	for i := range out {
		out[i].listing()
	}
	return out, nil
}

// listing keeps of a list of tables or columns the names: everything else in it is
// notation.
func (c *Case) listing() {
	column := 0
	switch {
	case !strings.HasPrefix(c.SQL, "SHOW TABLES") && !strings.HasPrefix(c.SQL, "SHOW COLUMNS") && !strings.HasPrefix(c.SQL, "DESCRIBE"):
		return
	case len(c.Types) == 3: // Spark's database, name, is temporary
		if strings.HasPrefix(c.SQL, "SHOW TABLES") {
			column = 1
		}
	}
	c.names = true
	if len(c.Types) > 0 {
		c.Types = c.Types[column : column+1]
	}
	for i, r := range c.Rows {
		c.Rows[i] = r[column : column+1]
	}
}

// Users are the users of the cases.
func Users(cases []Case) (out []string) {
	for _, c := range cases {
		if !slices.Contains(out, c.User) {
			out = append(out, c.User)
		}
	}
	return out
}

// refusals are the MySQL errors with which SQE refuses: no database or table for
// this user, no such column for this user, no right, a table with a broken policy.
var refusals = []uint16{1044, 1049, 1054, 1109, 1142, 1143, 1146, 9002}

// refused reports whether the peer refused for the same kind of reasons.
func (c Case) refused() bool {
	switch name, _, _ := strings.Cut(c.Error, " "); name {
	case "AccessControlException", "PERMISSION_DENIED", "TABLE_NOT_FOUND", "SCHEMA_NOT_FOUND", "CATALOG_NOT_FOUND", "COLUMN_NOT_FOUND",
		"FUNCTION_NOT_FOUND", "TYPE_MISMATCH", "AnalysisException", "ExtendedAnalysisException":
		return true
	case "NOT_SUPPORTED": // to change a table with a row filter or a mask
		return changesRowsRE.MatchString(c.SQL)
	}
	return false
}

// Outcome is an answer of SQE as one text.
func Outcome(c Case, a sqetest.Answer) string {
	switch {
	case a.Err != nil && a.Number() == 0:
		return "broken: " + a.Err.Error()
	case a.Err != nil:
		return fmt.Sprintf("error %d", a.Number())
	case c.Answered:
		return "answered"
	}
	rows := make([]string, len(a.Rows))
	for i, r := range a.Rows {
		if c.names {
			r = r[:1]
		}
		cells := make([]string, len(r))
		for j, v := range r {
			typ := ""
			if j < len(c.Types) {
				typ = c.Types[j]
			}
			cells[j] = ours(v, typ)
		}
		rows[i] = strings.Join(cells, " | ")
	}
	return c.ordered(rows)
}

// Expected is the outcome of the peer in the same form. An error is compared by
// Equal only.
func Expected(c Case) string {
	switch {
	case c.Error != "":
		return "error " + c.Error
	case c.Answered:
		return "answered"
	}
	rows := make([]string, len(c.Rows))
	for i, r := range c.Rows {
		cells := make([]string, len(r))
		for j, v := range r {
			cells[j] = theirs(v, c.Types[j])
		}
		rows[i] = strings.Join(cells, " | ")
	}
	return c.ordered(rows)
}

// ordered puts rows in an order of their own where the statement asks for none.
func (c Case) ordered(rows []string) string {
	if !strings.Contains(c.SQL, "ORDER BY") {
		slices.Sort(rows)
	}
	return fmt.Sprintf("%d rows\n", len(rows)) + strings.Join(rows, "\n")
}

// failures are errors of the peer about values, and that of MySQL.
var failures = map[string]uint16{"INVALID_CAST_ARGUMENT": 1690}

// Equal reports whether SQE answered as the peer did: the same rows, a refusal where
// the peer refused, or the same error.
func Equal(c Case, a sqetest.Answer) bool {
	if n, ok := failures[c.Error]; ok {
		return a.Number() == n
	}
	if c.Error != "" || a.Err != nil {
		return c.refused() && slices.Contains(refusals, a.Number())
	}
	return Expected(c) == Outcome(c, a)
}

var fraction = regexp.MustCompile(`\.(\d*?)0*( UTC)?$`)

// instant drops the zeros and the zone of a timestamp.
func instant(s string) string {
	if m := fraction.FindStringSubmatch(s); m != nil {
		s = s[:len(s)-len(m[0])]
		if m[1] != "" {
			s += "." + m[1]
		}
	}
	return strings.TrimSuffix(s, " UTC")
}

func float(s string, bits int) string {
	f, err := strconv.ParseFloat(s, bits)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return strings.ToLower(s)
	}
	return strconv.FormatFloat(f, 'g', -1, bits)
}

// scalar is a value of a type as both sides write it.
func scalar(s, typ string) string {
	switch {
	case typ == "double":
		return float(s, 64)
	case typ == "float" || typ == "real":
		return float(s, 32)
	case strings.HasPrefix(typ, "timestamp"):
		return instant(s)
	}
	return s
}

func nested(typ string) bool {
	for _, p := range []string{"array", "struct", "row", "map"} {
		if strings.HasPrefix(typ, p) {
			return true
		}
	}
	return false
}

// theirs is a value of the peer.
func theirs(v any, typ string) string {
	switch v := v.(type) {
	case nil:
		return sqetest.Null
	case bool:
		if v {
			return "1"
		}
		return "0"
	case json.Number:
		return scalar(v.String(), typ)
	case string:
		return scalar(v, typ)
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// ours is a value of SQE where the peer has this type.
func ours(s, typ string) string {
	switch {
	case s == sqetest.Null:
		return s
	case typ == "binary" || typ == "varbinary":
		return "0x" + hex.EncodeToString([]byte(s))
	case nested(typ):
		return flat(s, strings.HasPrefix(typ, "map"))
	}
	return scalar(s, typ)
}

// flat writes JSON as the peers do: a struct is the list of its values.
func flat(s string, isMap bool) string {
	var v any
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return s
	}
	if o, ok := v.(map[string]any); ok && !isMap {
		var list []any
		for _, k := range slices.Sorted(maps.Keys(o)) {
			list = append(list, o[k])
		}
		v = list
	}
	text, err := json.Marshal(v)
	if err != nil {
		return s
	}
	return string(text)
}
