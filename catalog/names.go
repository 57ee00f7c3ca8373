package catalog

import (
	"strings"

	"sqe/fault"
)

// SplitDatabase splits a dotted database name into its parts. Within a part, a
// dot and a backslash stand behind a backslash: `a\.b.c` is the part "a.b" and
// the part "c". An empty part, or a backslash before anything else, is
// fault.NoDatabase.
func SplitDatabase(database string) ([]string, error) {
	var parts []string
	var part strings.Builder
	for i := 0; i < len(database); i++ {
		switch c := database[i]; c {
		case '\\':
			i++
			if i == len(database) || (database[i] != '.' && database[i] != '\\') {
				return nil, badDatabase(database)
			}
			part.WriteByte(database[i])
		case '.':
			parts = append(parts, part.String())
			part.Reset()
		default:
			part.WriteByte(c)
		}
	}
	parts = append(parts, part.String())
	for _, p := range parts {
		if p == "" {
			return nil, badDatabase(database)
		}
	}
	return parts, nil
}

func badDatabase(database string) error {
	if database == "" {
		return fault.New(fault.NoDatabase, "No database selected")
	}
	return fault.New(fault.NoDatabase, "Unknown database '%s'", database)
}

// JoinDatabase is the inverse of SplitDatabase.
func JoinDatabase(parts ...string) string {
	escaped := make([]string, len(parts))
	for i, p := range parts {
		escaped[i] = strings.NewReplacer(`\`, `\\`, `.`, `\.`).Replace(p)
	}
	return strings.Join(escaped, ".")
}
