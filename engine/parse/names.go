package parse

import "strings"

// A database name is the path of a namespace: its levels with dots between them,
// and a catalog in front when it is not the default one. A dot or a backslash
// inside a level is written \. and \\. So a name of any depth is one MySQL
// database name, as SHOW DATABASES prints it and as `quoted`.table may name it.

// JoinDatabase makes a database name of the levels.
func JoinDatabase(levels ...string) string {
	var b strings.Builder
	for i, l := range levels {
		if i > 0 {
			b.WriteByte('.')
		}
		for j := 0; j < len(l); j++ {
			if l[j] == '.' || l[j] == '\\' {
				b.WriteByte('\\')
			}
			b.WriteByte(l[j])
		}
	}
	return b.String()
}

// SplitDatabase is the inverse of JoinDatabase. Empty levels are kept.
func SplitDatabase(name string) []string {
	var out []string
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		switch {
		case name[i] == '\\' && i+1 < len(name):
			i++
			b.WriteByte(name[i])
		case name[i] == '.':
			out = append(out, b.String())
			b.Reset()
		default:
			b.WriteByte(name[i])
		}
	}
	return append(out, b.String())
}
