package parse

import "sqe/fault"

// refName reads the name of a branch or tag.
func (r *alterReader) refName(what string) (string, error) {
	name, err := r.looseName("the name of a " + what)
	if err == nil && len(name) > 255 {
		err = fault.New(fault.Limit, "the name of a %s has at most 255 bytes", what)
	}
	return name, err
}

// createRef reads CREATE [OR REPLACE] or REPLACE of a branch or tag.
func (r *alterReader) createRef() (AlterAction, error) {
	c := &CreateRef{Create: r.accept("create")}
	if c.Create {
		c.Replace = r.accept("or", "replace")
	} else {
		c.Replace = r.accept("replace")
	}
	kind := r.word(0)
	switch kind {
	case "branch":
	case "tag":
		c.Tag = true
	default:
		return nil, r.expected("BRANCH or TAG")
	}
	r.pos++
	if !c.Replace {
		c.IfNotExists = r.accept("if", "not", "exists")
	}
	var err error
	if c.Name, err = r.refName(kind); err != nil {
		return nil, err
	}
	if r.accept("as", "of") {
		if !r.accept("version") {
			return nil, r.expected("VERSION and the id of a snapshot")
		}
		id, err := r.integer("the id of a snapshot", 1<<63-1)
		if err != nil {
			return nil, err
		}
		c.Snapshot = &id
	}
	if r.accept("retain") {
		if c.MaxRefAge, err = r.age(); err != nil {
			return nil, err
		}
	}
	if !r.accept("with", "snapshot", "retention") {
		return c, nil
	}
	if c.Tag {
		return nil, r.expected("the end of the statement: WITH SNAPSHOT RETENTION is for branches")
	}
	if r.word(1) == "snapshots" {
		at := r.pos
		if c.MinSnapshots, err = r.integer("a number", 1<<31-1); err != nil {
			return nil, err
		}
		if c.MinSnapshots == 0 {
			return nil, syntaxAt(r.text, r.tokens[at].start, "expected a number of at least 1")
		}
		r.pos++
		if r.pos >= len(r.tokens) || r.tokens[r.pos].kind != number {
			return c, nil
		}
	}
	c.MaxSnapshotAge, err = r.age()
	return c, err
}

// age reads n {DAYS | HOURS | MINUTES}, in milliseconds.
func (r *alterReader) age() (int64, error) {
	at := r.pos
	n, err := r.integer("a number of DAYS, HOURS or MINUTES", 1<<31-1)
	if err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, syntaxAt(r.text, r.tokens[at].start, "expected a number of at least 1")
	}
	switch {
	case r.accept("days"), r.accept("day"):
		return n * 24 * 3600 * 1000, nil
	case r.accept("hours"), r.accept("hour"):
		return n * 3600 * 1000, nil
	case r.accept("minutes"), r.accept("minute"):
		return n * 60 * 1000, nil
	}
	return 0, r.expected("DAYS, HOURS or MINUTES")
}
