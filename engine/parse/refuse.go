package parse

import (
	"strings"

	"sqe/fault"
)

// refused gives the error of a statement that is refused by name: what could read
// or write files of the server, run code in it, or wait on locks.
func (p *parser) refused() error {
	no := func(what, advice string) error {
		return fault.New(fault.Unsupported, "%s is not supported; %s", what, advice)
	}
	switch p.word(0) {
	case "load":
		return no("LOAD "+strings.ToUpper(p.word(1)), "LOAD DATA INFILE reads Parquet and CSV files")
	case "call":
		return no("CALL", "SQE has no stored procedures")
	case "handler":
		return no("HANDLER", "use SELECT")
	case "optimize", "analyze", "check", "repair", "checksum":
		if p.word(1) == "table" || p.word(2) == "table" {
			advice := "the files of a table carry their statistics and checksums"
			if p.word(0) == "optimize" {
				advice = "CALL system.rewrite_data_files(table => '...') merges small files"
			}
			return no(strings.ToUpper(p.word(0))+" TABLE", advice)
		}
	case "do":
		return no("DO", "use SELECT")
	case "xa":
		return no("XA", "every statement is its own transaction")
	case "install", "uninstall":
		return no("INSTALL", "SQE loads no plugins")
	case "create", "alter", "drop":
		for i := 1; i < 12; i++ {
			switch p.word(i) {
			case "procedure", "trigger", "event", "function":
				return no("CREATE, ALTER and DROP of procedures, functions, triggers and events", "SQE runs no stored code; use a view")
			case "table", "view", "database", "schema", "user", "role", "index":
				i = 12
			}
		}
	}
	return p.refusedParts()
}

// refusedParts gives the error of what is refused anywhere in a statement.
func (p *parser) refusedParts() error {
	no := func(what, advice string) error {
		return fault.New(fault.Unsupported, "%s is not supported; %s", what, advice)
	}
	for i := p.pos; i < len(p.tokens); i++ {
		if p.tokens[i].kind == punct && strings.ContainsAny(p.str(i), ":{}[]") && p.str(i) != ":=" {
			return syntaxAt(p.text, p.tokens[i].start, "a character that SQL does not have here")
		}
		if p.tokens[i].kind != word {
			continue
		}
		rel := i - p.pos
		switch p.word(rel) {
		case "into":
			if w := p.word(rel + 1); w == "outfile" || w == "dumpfile" {
				return no("SELECT ... INTO OUTFILE and DUMPFILE", "let the client write the file")
			}
			if i+1 < len(p.tokens) && p.tokens[i+1].kind == variable {
				return no("SELECT ... INTO @variable", "use SET @variable = (SELECT ...)")
			}
		case "load_file", "get_lock", "release_lock", "is_free_lock", "is_used_lock", "release_all_locks", "benchmark", "sleep", "master_pos_wait", "source_pos_wait":
			if i+1 < len(p.tokens) && p.tokens[i+1].kind == punct && p.str(i+1) == "(" {
				return no("the function "+p.str(i), "it would read files of the server, wait, or hold a lock")
			}
		}
	}
	return nil
}
