package checks

import (
	"bytes"
	"go/scanner"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// banned are texts that no tracked file may hold. The patterns are written so
// that they do not match themselves.
var banned = []struct {
	what    string
	pattern *regexp.Regexp
	// except is how the names of the files end in which the text may stand.
	except string
}{
	{"a path of one machine", regexp.MustCompile(`(^|[^A-Za-z0-9_./$}-])/(work|root|farm|home/[a-z]+|Users/[a-z]+)/`), ""},
	{"a temporary path of one machine", regexp.MustCompile(`(^|[^A-Za-z0-9_./$}-])/tmp/[A-Za-z0-9_]`), "_test.go"},
	{"the host of a package registry", regexp.MustCompile(`(?i)(proxy[.]golang[.]org|registry[.]npmjs|files[.]pythonhosted|pypi[.]org/simple|repo1?[.]maven|deb[.]debian|static[.]crates)`), ""},
	{"a private key", regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE` + ` KEY-----`), ""},
	{"an access key", regexp.MustCompile(`\b(AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36}|xox[baprs]-[A-Za-z0-9-]{10,}|eyJhbGciOi[A-Za-z0-9_-]{20,})`), ""},
	{"a word about how the work is organised", regexp.MustCompile(`(?i)\b(issue #?[0-9]+\b|see the (brief|issue)|proto` + `type\b)`), ""},
}

func TestBannedText(t *testing.T) {
	for _, f := range tracked(t) {
		for _, b := range banned {
			if b.except != "" && strings.HasSuffix(f.path, b.except) {
				continue
			}
			if at := b.pattern.FindIndex(f.text); at != nil {
				t.Errorf("%s:%d holds %s: %q", f.path, lineOf(f.text, at[0]), b.what, f.text[at[0]:at[1]])
			}
		}
	}
}

// TestBannedTextFinds is the positive control: the patterns find what they name.
func TestBannedTextFinds(t *testing.T) {
	for i, text := range []string{
		"dir = /wo" + "rk/x", "see /tm" + "p/a", "https://proxy." + "golang.org", "-----BEGIN RSA PRIVATE" + " KEY-----",
		"AKIA" + "ABCDEFGHIJKLMNOP", "as is" + "sue 12 says",
	} {
		if !banned[i].pattern.MatchString(text) {
			t.Errorf("the pattern for %s does not find %q", banned[i].what, text)
		}
	}
}

// longFiles are the files that may be longer than maxLines, each with the reason.
// Tables of test cases may be long.
const maxLines = 600

var longFiles = map[string]string{}

func TestFileLength(t *testing.T) {
	for _, f := range tracked(t) {
		if !strings.HasSuffix(f.path, ".go") || strings.HasSuffix(f.path, "_test.go") {
			continue
		}
		n := bytes.Count(f.text, []byte("\n"))
		if _, listed := longFiles[f.path]; listed {
			if n <= maxLines {
				t.Errorf("%s has %d lines: take it out of longFiles", f.path, n)
			}
			continue
		}
		if n > maxLines {
			t.Errorf("%s has %d lines: split it by subject, or list it in longFiles with the reason", f.path, n)
		}
	}
}

func TestDocComments(t *testing.T) {
	for _, p := range ours(t) {
		if len(p.GoFiles)+len(p.CgoFiles) > 0 && p.Doc == "" {
			t.Errorf("package %s has no doc comment: say what it is for, what holds in it, and what it must never do", local(p.ImportPath))
		}
	}
}

// TestCommentRatio: the packages that decide about access are read more than
// they are written. Between 15 and 25 percent of their lines should be comments.
func TestCommentRatio(t *testing.T) {
	const least, low, high = 0.12, 0.15, 0.25
	lines := map[string][2]int{}
	for _, f := range tracked(t) {
		for _, dir := range []string{"rewrite", "masks", "policy"} {
			if under(f.path, dir) && strings.HasSuffix(f.path, ".go") && !strings.HasSuffix(f.path, "_test.go") {
				comments, code := countLines(f.text)
				n := lines[dir]
				lines[dir] = [2]int{n[0] + comments, n[1] + code}
			}
		}
	}
	for dir, n := range lines {
		ratio := float64(n[0]) / float64(n[0]+n[1])
		t.Logf("%s: %.0f %% of %d lines are comments", dir, 100*ratio, n[0]+n[1])
		switch {
		case ratio < least:
			t.Errorf("%s: %.0f %% of its lines are comments, at least %.0f %% should be: say why", dir, 100*ratio, 100*least)
		case ratio < low || ratio > high:
			t.Logf("%s: outside of %.0f to %.0f %%", dir, 100*low, 100*high)
		}
	}
}

// countLines counts the lines that hold a comment alone and those that hold code.
func countLines(src []byte) (comments, code int) {
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, scanner.ScanComments)
	kinds := map[int]bool{} // line -> holds code
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok == token.SEMICOLON && lit == "\n" {
			continue
		}
		line := file.Line(pos)
		for i := range 1 + strings.Count(lit, "\n") {
			kinds[line+i] = kinds[line+i] || tok != token.COMMENT
		}
	}
	for _, isCode := range kinds {
		if isCode {
			code++
		} else {
			comments++
		}
	}
	return comments, code
}
