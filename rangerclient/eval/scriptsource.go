package eval

import (
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/parser"
	"github.com/dop251/goja/token"
	"github.com/dop251/goja/unistring"
)

// measured parses source and changes it: results of + and templates are measured.
// plain is a script that cannot repeat anything or call what makes much of little.
func measured(source string) (p *ast.Program, plain bool, err error) {
	// The parser takes long over deep nesting, and much of the stack.
	if nesting(source) > maxNesting || strings.Count(source, "=>") > maxArrows {
		return nil, false, errLimit
	}
	// Without the option the parser would open the file that a comment names.
	if p, err = parser.ParseFile(nil, "policy", source, 0, parser.WithDisableSourceMaps); err != nil {
		return nil, false, err
	}
	m := &measurer{plain: true, seen: map[any]bool{}}
	m.walk(reflect.ValueOf(p).Elem(), 0)
	return p, m.plain, m.err
}

const (
	maxNesting = 100
	maxArrows  = 200
)

// nesting is how deep brackets are in one another, at most; those in texts count.
func nesting(source string) (deepest int) {
	depth := 0
	for _, c := range []byte(source) {
		switch c {
		case '(', '[', '{':
			depth++
			deepest = max(deepest, depth)
		case ')', ']', '}':
			depth--
		}
	}
	return deepest
}

type measurer struct {
	plain bool
	err   error
	seen  map[any]bool // the tree has two ways to a declaration
}

// harmless are the members of texts and lists that make nothing larger.
var harmless = map[string]bool{
	"length": true, "includes": true, "indexOf": true, "startsWith": true, "endsWith": true, "toLowerCase": true, "toUpperCase": true,
	"trim": true, "split": true, "charAt": true, "substring": true, "slice": true, "at": true, "lastIndexOf": true, "intersects": true,
}

var (
	fileType       = reflect.TypeFor[*file.File]()
	expressionType = reflect.TypeFor[ast.Expression]()
)

func (m *measurer) walk(v reflect.Value, depth int) {
	if depth > 10_000 || m.err != nil {
		m.fail()
		return
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() || v.Type() == fileType {
			return
		}
		if v.Kind() == reflect.Pointer {
			if m.seen[v.Interface()] {
				return
			}
			m.seen[v.Interface()] = true
			m.look(v.Interface())
		}
		m.walk(v.Elem(), depth+1)
		if v.Type() == expressionType && v.CanSet() {
			if e := v.Interface().(ast.Expression); grows(e) {
				v.Set(reflect.ValueOf(ast.Expression(&ast.CallExpression{
					Callee: &ast.Identifier{Name: measureName, Idx: e.Idx0()}, LeftParenthesis: e.Idx0(), ArgumentList: []ast.Expression{e}, RightParenthesis: e.Idx0(),
				})))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				m.walk(v.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			m.walk(v.Index(i), depth+1)
		}
	}
}

func (m *measurer) fail() {
	if m.err == nil {
		m.err = errLimit
	}
}

func grows(e ast.Expression) bool {
	switch x := e.(type) {
	case *ast.BinaryExpression:
		return x.Operator == token.PLUS
	case *ast.AssignExpression:
		return x.Operator == token.PLUS
	case *ast.TemplateLiteral:
		return true
	}
	return false
}

// look says what a node means for the script as a whole.
func (m *measurer) look(node any) {
	switch x := node.(type) {
	case *ast.DoWhileStatement, *ast.ForInStatement, *ast.ForOfStatement, *ast.ForStatement, *ast.WhileStatement,
		*ast.FunctionLiteral, *ast.ArrowFunctionLiteral, *ast.ClassLiteral, *ast.SpreadElement, *ast.NewExpression, *ast.WithStatement,
		*ast.AssignExpression, *ast.ObjectPattern, *ast.ArrayPattern:
		m.plain = false
	case *ast.RegExpLiteral:
		if weight(x.Pattern) > maxWeight {
			m.fail()
		}
	case *ast.TemplateLiteral:
		m.plain = false
		if len(x.Expressions) > 32 {
			m.fail()
		}
	case *ast.NumberLiteral:
		switch x.Value.(type) {
		case int64, float64:
		default: // a big integer
			m.fail()
		}
	case *ast.PropertyKeyed:
		m.accessor(x.Kind)
	case *ast.MethodDefinition:
		m.accessor(x.Kind)
	case *ast.BracketExpression:
		if _, ok := x.Member.(*ast.StringLiteral); !ok {
			m.plain = false
		}
		m.member(memberName(x.Member))
	case *ast.DotExpression:
		m.member(x.Identifier.Name)
	case *ast.Identifier:
		m.member(x.Name)
	}
}

// accessor refuses a property that may be another one at each look.
func (m *measurer) accessor(kind ast.PropertyKind) {
	if kind == ast.PropertyKindGet || kind == ast.PropertyKindSet {
		m.fail()
	}
}

func memberName(e ast.Expression) unistring.String {
	if s, ok := e.(*ast.StringLiteral); ok {
		return s.Value
	}
	return ""
}

// guarded are the names of what guard replaces, beside the methods of texts and
// lists.
var guarded = map[string]bool{
	"Array": true, "Object": true, "String": true, "RegExp": true, "JSON": true, "J": true, "Symbol": true, "constructor": true, "apply": true, "call": true,
	"bind": true, "globalThis": true, "parse": true, "stringify": true, "toString": true, "eval": true, "Function": true, "Proxy": true, "__proto__": true,
	"defineProperty": true, "defineProperties": true, "create": true, "BigInt": true, "ArrayBuffer": true, "getPrototypeOf": true, "escape": true, "encodeURIComponent": true, "encodeURI": true,
}

func (m *measurer) member(name unistring.String) {
	s := name.String()
	if !harmless[s] && (guarded[s] || textMethods[s] || listMethods[s] || strings.HasSuffix(s, "Array")) {
		m.plain = false
	}
}

func names(s string) map[string]bool {
	m := map[string]bool{}
	for _, name := range strings.Fields(s) {
		m[name] = true
	}
	return m
}

var (
	textMethods = names(`charAt charCodeAt codePointAt concat endsWith includes indexOf lastIndexOf localeCompare match matchAll normalize padEnd padStart
		repeat replace replaceAll search slice split startsWith substring substr toLocaleLowerCase toLocaleUpperCase toLowerCase toUpperCase trim trimEnd trimStart
		trimLeft trimRight at isWellFormed toWellFormed anchor big blink bold fixed fontcolor fontsize italics link small strike sub sup`)
	listMethods = names(`at concat copyWithin entries every fill filter find findIndex findLast findLastIndex flat flatMap forEach includes indexOf join keys
		lastIndexOf map pop push reduce reduceRight reverse shift slice some sort splice toLocaleString toReversed toSorted toSpliced toString unshift values with`)
)

// weight is about the number of steps that a regular expression takes at one
// position.
func weight(pattern string) int {
	type level struct{ sum, last int }
	stack := []level{{}}
	top := func() *level { return &stack[len(stack)-1] }
	atom := func(n int) { t := top(); t.sum = min(t.sum+n, math.MaxInt32); t.last = n }
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; c {
		case '\\':
			i++
			atom(1)
		case '[':
			start := i
			for i++; i < len(pattern) && pattern[i] != ']'; i++ {
				if pattern[i] == '\\' {
					i++
				}
			}
			atom(1 + (i-start)/16)
		case '(':
			stack = append(stack, level{})
		case ')':
			if len(stack) == 1 {
				continue
			}
			n := top().sum + 2
			stack = stack[:len(stack)-1]
			atom(n)
		case '{':
			end := strings.IndexByte(pattern[i:], '}')
			times := 1
			if end > 0 {
				for _, s := range strings.Split(pattern[i+1:i+end], ",") {
					if n, err := strconv.Atoi(s); err == nil {
						times = max(times, n)
					} else if s != "" {
						times = math.MaxInt16
						if strings.Trim(s, "0123456789") != "" {
							times = 1 // no count
						}
					}
				}
			}
			t := top()
			last := min(t.last*min(times, math.MaxInt16), math.MaxInt16)
			t.sum, t.last = min(t.sum-t.last+last, math.MaxInt32), last
		default:
			atom(1)
		}
	}
	n := 0
	for _, l := range stack {
		n = min(n+l.sum, math.MaxInt32)
	}
	return n
}
