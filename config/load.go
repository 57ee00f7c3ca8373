package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/BurntSushi/toml"

	"sqe/fault"
)

// Problem is one mistake in the configuration.
type Problem struct {
	// Key is its path ("server.port", "users[1].name"), "" for the file as a whole.
	Key string
	// From is where the value comes from: "line 12", "environment variable
	// SQE_SERVER__PORT", or "" when it is missing.
	From string
	// Text says what is wrong and what to do. It holds no value of a secret.
	Text string
}

// String is one line.
func (p Problem) String() string {
	s := p.Text
	if p.Key != "" {
		s = p.Key + " " + s
	}
	if p.From != "" {
		s = p.From + ": " + s
	}
	return s
}

// Problems is the error of Load: everything that is wrong.
type Problems struct {
	Path string
	List []Problem
}

// Error lists every problem, one a line.
func (p *Problems) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d problems in the configuration:", p.Path, len(p.List))
	if len(p.List) == 1 {
		b.Reset()
		fmt.Fprintf(&b, "%s: a problem in the configuration:", p.Path)
	}
	for _, x := range p.List {
		b.WriteString("\n  " + x.String())
	}
	return b.String()
}

// Load reads the file at path and the environment. Its error lists every
// problem; its kind is fault.Config.
func Load(path string) (*Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		why := "cannot be read (" + reason(err) + ")"
		if errors.Is(err, fs.ErrNotExist) {
			why = "does not exist; write one (docs/configuration.md) or name it with -c"
		}
		return nil, fault.Wrap(fault.Config, err, "the configuration %s %s", path, why)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "the folder of the configuration cannot be found")
	}
	c, problems := read(string(text), filepath.Dir(absolute), os.Environ())
	if len(problems) > 0 {
		list := &Problems{Path: path, List: problems}
		return nil, fault.Wrap(fault.Config, list, "%s", list.Error())
	}
	return c, nil
}

func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// read is Load without files.
func read(text, dir string, environment []string) (*Config, []Problem) {
	l := &loader{dir: dir, lines: keyLines(text)}
	tree := map[string]any{}
	if _, err := toml.Decode(text, &tree); err != nil {
		p := Problem{Text: "is not TOML: " + err.Error()}
		if e := (toml.ParseError{}); errors.As(err, &e) {
			// The message of the library may quote the line, and the line may hold a
			// secret: only what it expected is kept.
			p = Problem{From: fmt.Sprintf("line %d", e.Position.Line), Key: e.LastKey, Text: "cannot be read: it is not TOML here (" + unquoted(e.Message) + ")"}
		}
		return nil, []Problem{p}
	}
	l.environment(tree, environment)
	c := &Config{Dir: dir}
	l.decode(c, tree)
	if len(l.problems) == 0 {
		l.check(c)
	}
	sort.SliceStable(l.problems, func(i, j int) bool { return l.order(l.problems[i]) < l.order(l.problems[j]) })
	return c, l.problems
}

// unquoted drops quoted parts of a message.
func unquoted(s string) string {
	var b strings.Builder
	quote := rune(0)
	for _, r := range s {
		switch {
		case quote == 0 && (r == '\'' || r == '"' || r == '`'):
			quote = r
			b.WriteString("...")
		case r == quote:
			quote = 0
		case quote == 0:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// order sorts problems by line; those without one come last.
func (l *loader) order(p Problem) int {
	if n, ok := l.lines[p.Key]; ok {
		return n
	}
	return 1 << 30
}

// keyLines finds the line of each key: a small reading of TOML for messages
// alone. What it does not find has no line.
func keyLines(text string) map[string]int {
	lines := map[string]int{}
	count := map[string]int{}
	section, multi := "", ""
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if multi != "" {
			if strings.Contains(line, multi) {
				multi = ""
			}
			continue
		}
		switch {
		case strings.HasPrefix(line, "[["):
			name, _, _ := strings.Cut(line[2:], "]]")
			name = bare(name)
			section = fmt.Sprintf("%s[%d]", name, count[name])
			count[name]++
			lines[section] = i + 1
			if _, ok := lines[name]; !ok {
				lines[name] = i + 1
			}
		case strings.HasPrefix(line, "["):
			name, _, _ := strings.Cut(line[1:], "]")
			name = bare(name)
			// [users.attributes] belongs to the last of [[users]].
			if first, rest, ok := strings.Cut(name, "."); ok && count[first] > 0 {
				name = fmt.Sprintf("%s[%d].%s", first, count[first]-1, rest)
			}
			section = name
			lines[section] = i + 1
		case line != "" && line[0] != '#':
			key, value, ok := strings.Cut(line, "=")
			if !ok {
				continue
			}
			name := bare(key)
			if section != "" {
				name = section + "." + name
			}
			lines[name] = i + 1
			for _, q := range []string{`"""`, `'''`} {
				if strings.Count(value, q) == 1 {
					multi = q
				}
			}
		}
	}
	return lines
}

// bare is a dotted key without blanks and quotes.
func bare(key string) string {
	parts := strings.Split(key, ".")
	for i, p := range parts {
		parts[i] = strings.Trim(strings.TrimSpace(p), `"'`)
	}
	return strings.Join(parts, ".")
}
