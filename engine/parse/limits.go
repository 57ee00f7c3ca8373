package parse

import "sqe/fault"

// Limits of a statement. They protect the parser and everything after it, which
// recurse over the syntax tree.
const (
	// MaxBytes is the size of a statement.
	MaxBytes = 16 << 20
	// MaxNesting is how deep brackets may nest.
	MaxNesting = 500
	// MaxChain bounds how deep operators and joins may make the syntax tree, on
	// the way from the statement to any of its leaves. The binder's work grows with
	// the square of it and cannot be interrupted.
	MaxChain = 4000
	// MaxLiterals bounds the values in a statement.
	MaxLiterals = 250_000
)

// deepening are the keywords that make the tree deeper.
var deepening = map[string]bool{
	"and": true, "or": true, "xor": true, "not": true, "div": true, "mod": true, "like": true, "between": true,
	"is": true, "regexp": true, "rlike": true, "in": true, "case": true, "when": true, "collate": true, "binary": true,
	"interval": true, "union": true, "intersect": true, "except": true, "join": true, "straight_join": true,
	"explain": true, "describe": true, "desc": true,
}

// checkDepth refuses a statement whose syntax tree would be too deep.
func checkDepth(text string, tokens []token) error {
	f := folder{text: text, tokens: tokens}
	type depth struct {
		operators, links int
		from             bool
	}
	stack := []depth{{}}
	total := 0 // of all open levels
	for i, tok := range tokens {
		top := &stack[len(stack)-1]
		switch tok.kind {
		case punct:
			switch s := text[tok.start:tok.end]; s {
			case "(":
				stack = append(stack, depth{})
				if len(stack) > MaxNesting {
					return fault.New(fault.Limit, "the statement nests more than %d brackets; write the inner parts as WITH queries or views", MaxNesting)
				}
				continue
			case ")":
				if len(stack) > 1 {
					total -= top.operators + top.links
					stack = stack[:len(stack)-1]
				}
				continue
			case ",":
				total -= top.operators
				top.operators = 0
				// A list of tables is a chain of joins; other lists are flat.
				if top.from {
					top.links++
					total++
				}
				continue
			case ".", ";":
				continue
			}
			top.operators++
			total++
		case word:
			w := f.lower(i)
			switch {
			case w == "union" || w == "intersect" || w == "except" || w == "join" || w == "straight_join":
				top.links++
				total++
			case w == "from":
				top.from = true
			case exprWords[w] && w != "on" && w != "using":
				top.from = false
				total -= top.operators
				top.operators = 0
			case deepening[w]:
				top.operators++
				total++
			}
		}
		if total > MaxChain {
			return fault.New(fault.Limit, "the statement chains more than %d operators; use IN (...) in place of many ORs, or VALUES and a join", MaxChain)
		}
	}
	return nil
}
