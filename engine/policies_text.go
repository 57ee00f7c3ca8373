package engine

import (
	"reflect"
	"slices"
	"strings"

	"sqe/engine/parse"
	"sqe/plan"
	"sqe/policy"
)

// createText is the statement that makes a policy again. What SQL has no words
// for stands in comments; a policy that SQL cannot make is comments alone.
func (e *Engine) createText(s policy.Stored) string {
	var notes []string
	if len(s.Beyond) > 0 {
		notes = append(notes, "SQL has no words for: "+strings.Join(s.Beyond, ", "))
	}
	if s.Kind == policy.AccessDefinition {
		return comments(append(notes, "the policy gives access on "+objectOf(s)+", which is no statement of its own: "+accessAdvice+":", itemsText(s)))
	}
	text := createStatement(s.Definition)
	if s.Table.Name != "" && s.Table.Catalog == "" && len(e.catalogs.All()) > 1 {
		notes = append(notes, "the policy is on this table in every catalog")
	}
	if !e.recreates(text, s.Definition) {
		return comments(append(notes, "SQL cannot write this policy on "+objectOf(s)+":", text))
	}
	if len(notes) == 0 {
		return text
	}
	return comments(notes) + "\n" + text
}

// comments are lines that a statement may hold without meaning.
func comments(lines []string) string {
	return "-- " + strings.ReplaceAll(strings.ReplaceAll(strings.Join(lines, "\n"), "\r", "\n"), "\n", "\n-- ")
}

func createStatement(d policy.Definition) string {
	var b strings.Builder
	b.WriteString("CREATE POLICY " + backquoted(d.Name) + " ON ")
	if d.Tag != "" {
		b.WriteString("TAG " + backquoted(d.Tag))
	} else {
		b.WriteString("TABLE ")
		for _, part := range levels(d.Table) {
			b.WriteString(backquoted(part) + ".")
		}
		b.WriteString(backquoted(d.Table.Name))
	}
	for n, i := range d.Items {
		if n > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n  " + itemStatement(d, i, n == 0))
	}
	if d.Description != "" {
		b.WriteString("\n  COMMENT " + quotedText(d.Description))
	}
	if d.Override {
		b.WriteString("\n  PRIORITY OVERRIDE")
	}
	if !d.ValidFrom.IsZero() || !d.ValidUntil.IsZero() {
		b.WriteString("\n  VALID")
		if !d.ValidFrom.IsZero() {
			b.WriteString(" FROM " + quotedText(d.ValidFrom.UTC().Format(timeFormat)))
		}
		if !d.ValidUntil.IsZero() {
			b.WriteString(" UNTIL " + quotedText(d.ValidUntil.UTC().Format(timeFormat)))
		}
	}
	if d.Disabled {
		b.WriteString("\n  DISABLED")
	}
	return b.String()
}

// levels are the catalog, if one is named, and the namespace of a table.
func levels(n plan.TableName) []string {
	if n.Catalog == "" {
		return n.Namespace
	}
	return append([]string{n.Catalog}, n.Namespace...)
}

func itemStatement(d policy.Definition, i policy.Item, first bool) string {
	var b strings.Builder
	if d.Kind == policy.FilterDefinition {
		b.WriteString("ROW FILTER ")
		if i.Exempt {
			b.WriteString("NONE ")
		}
		b.WriteString("TO ")
	} else {
		mask := i.Mask
		if strings.Trim(mask, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") != "" || mask == "" {
			mask = backquoted(mask)
		}
		b.WriteString("COLUMN MASK " + mask + " TO ")
	}
	for k, g := range i.Grantees {
		if k > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strings.ToUpper(string(g.Kind)) + " " + backquoted(g.Name))
	}
	if first && len(d.Columns) > 0 {
		b.WriteString(" ON COLUMN ")
		for k, c := range d.Columns {
			if k > 0 {
				b.WriteString(", ")
			}
			b.WriteString(backquoted(c))
		}
	}
	if i.SQL != "" {
		b.WriteString(" USING (" + i.SQL + ")")
	}
	return b.String()
}

func quotedText(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", "''", "\x00", `\0`).Replace(s) + "'"
}

// recreates reports whether the statement, read back, is exactly the policy:
// names may hold patterns and texts anything that was written elsewhere.
func (e *Engine) recreates(text string, d policy.Definition) bool {
	stmt, rest, err := parse.Parse(text)
	x, ok := stmt.(*parse.CreatePolicy)
	if err != nil || !ok || rest != "" {
		return false
	}
	if patterns(d) {
		return false
	}
	if x.Table != nil {
		n, _, err := e.catalogs.Resolve(x.Table.Database, x.Table.Name)
		if err != nil || !means(d.Table, n) {
			return false
		}
	}
	got := definitionOf(x)
	got.Table = d.Table
	return reflect.DeepEqual(plainDefinition(got), plainDefinition(d))
}

// means reports whether a table in a policy, whose catalog may be missing or be the
// first level of a namespace, is that one.
func means(t, n plan.TableName) bool {
	same := t.Catalog == n.Catalog && slices.Equal(t.Namespace, n.Namespace)
	return t.Name == n.Name && (same || slices.Equal(levels(t), n.Namespace))
}

// plainDefinition has one form for what means the same.
func plainDefinition(d policy.Definition) policy.Definition {
	d.ValidFrom, d.ValidUntil = d.ValidFrom.UTC(), d.ValidUntil.UTC()
	d.Columns = append([]string{}, d.Columns...)
	items := make([]policy.Item, len(d.Items))
	for n, i := range d.Items {
		items[n] = policy.Item{Grantees: append([]policy.Grantee{}, i.Grantees...), Mask: i.Mask, SQL: i.SQL}
	}
	d.Items = items
	return d
}
