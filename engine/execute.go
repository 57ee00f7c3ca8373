package engine

import (
	"context"
	"fmt"
	"strings"

	"sqe/engine/parse"
	"sqe/fault"
	"sqe/plan"
)

// execute dispatches one parsed statement.
func (s *Session) execute(ctx context.Context, stmt parse.Statement, fingerprint string, args []plan.Literal) (*Result, error) {
	kind := kindOf(stmt)
	switch stmt := stmt.(type) {
	case *parse.Prepare:
		return s.statement(ctx, kind, fingerprint, func(ctx context.Context, _ *statement) (*Result, error) {
			return s.prepareNamed(ctx, stmt)
		})
	case *parse.ExecuteStmt:
		// The statement that runs is the prepared one: it makes the audit event.
		p, values, err := s.namedArguments(stmt)
		if err != nil {
			return nil, s.refused(fingerprint, err)
		}
		return s.Execute(ctx, p, values)
	}
	return s.statement(ctx, kind, fingerprint, func(ctx context.Context, st *statement) (*Result, error) {
		switch stmt := stmt.(type) {
		case *parse.SQL:
			return st.sql(ctx, stmt, args)
		case *parse.Explain:
			return st.explain(ctx, stmt, args)
		case *parse.ExplainPolicy:
			return st.explainPolicy(ctx, stmt, args)
		case *parse.ShowPolicyStatus:
			return st.policyStatus()
		case *parse.ShowProcesslist:
			return st.processList()
		case *parse.ShowGrants:
			return st.grants(ctx, stmt)
		case *parse.Kill:
			return &Result{}, s.engine.processes.kill(stmt.ID, stmt.Query, s.principal)
		case *parse.Use:
			return st.use(ctx, stmt.Database)
		case *parse.Deallocate:
			if _, ok := s.prepared[stmt.Name]; !ok {
				return nil, noStatement(stmt.Name)
			}
			delete(s.prepared, stmt.Name)
			return &Result{}, nil
		case *parse.SetRole:
			return st.setRole(stmt)
		case *parse.CreatePolicy:
			return st.createPolicy(ctx, stmt)
		case *parse.AlterPolicy:
			return st.alterPolicy(ctx, stmt)
		case *parse.DropPolicy:
			return st.dropPolicy(ctx, stmt)
		case *parse.ShowPolicies:
			return st.showPolicies(ctx, stmt)
		case *parse.ShowCreatePolicy:
			return st.showCreatePolicy(ctx, stmt)
		case *parse.ShowMaskingPolicies:
			return st.showMaskingPolicies(ctx, stmt)
		case *parse.ShowEffectivePolicy:
			return st.effectivePolicy(ctx, stmt)
		case *parse.AlterTags:
			return st.alterTags(ctx, stmt)
		case *parse.AlterMaskingPolicy:
			return st.alterMaskingPolicy(ctx, stmt)
		case *parse.ReprojectTags:
			return st.reprojectTags(ctx, stmt)
		case *parse.ShowTags:
			return st.showTags(ctx, stmt)
		}
		if parse.IsWrite(stmt) {
			if err := st.writes(); err != nil {
				return nil, err
			}
		}
		if res, ok, err := st.access(ctx, stmt); ok {
			return res, err
		}
		switch {
		case isDDL(stmt):
			return st.ddl(ctx, stmt)
		case isMaintenance(stmt):
			return st.maintain(ctx, stmt.(*parse.Call))
		case isChange(stmt):
			return st.changeRows(ctx, stmt, args)
		case isLoad(stmt):
			return st.loadFile(ctx, stmt)
		case parse.IsWrite(stmt):
			return nil, unsupported("this procedure")
		}
		return nil, unsupported(fmt.Sprintf("this statement (%s)", kind))
	})
}

var sqlKinds = map[parse.Kind]string{
	parse.Query: "query", parse.Show: "show", parse.Set: "set", parse.Transaction: "transaction", parse.Write: "write", parse.Other: "other",
}

// kindOf names the kind of a statement for metrics and audit.
func kindOf(stmt parse.Statement) string {
	switch stmt := stmt.(type) {
	case *parse.SQL:
		return sqlKinds[stmt.Kind]
	case *parse.Explain:
		return "explain"
	case *parse.ExplainPolicy:
		return "explain-policy"
	case *parse.Kill:
		return "kill"
	case *parse.Use:
		return "use"
	case *parse.ShowPolicyStatus, *parse.ShowProcesslist, *parse.ShowGrants, *parse.ShowPolicies, *parse.ShowCreatePolicy,
		*parse.ShowMaskingPolicies, *parse.ShowEffectivePolicy, *parse.ShowTags:
		return "show"
	case *parse.CreatePolicy, *parse.AlterPolicy, *parse.DropPolicy:
		return "policy"
	case *parse.AlterTags, *parse.AlterMaskingPolicy, *parse.ReprojectTags:
		return "tags"
	case *parse.Prepare, *parse.Deallocate:
		return "prepare"
	case *parse.SetRole:
		return "set"
	}
	if kind := accessKind(stmt); kind != "" {
		return kind
	}
	switch {
	case isDDL(stmt):
		return "ddl"
	case isMaintenance(stmt):
		return "maintenance"
	case parse.IsWrite(stmt):
		return sqlKinds[parse.Write]
	}
	return "other"
}

// sql runs a statement of the MySQL grammar.
func (st *statement) sql(ctx context.Context, sql *parse.SQL, args []plan.Literal) (*Result, error) {
	switch sql.Kind {
	case parse.Transaction:
		return st.step(sql.Step)
	case parse.Write:
		return nil, unsupported("this statement")
	case parse.Show:
		if ref, view, ok := parse.ShowCreate(sql); ok {
			if res, err := st.showCreate(ctx, ref, view); res != nil || err != nil {
				return res, err
			}
		}
	}
	governed, record, err := st.govern(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	st.record = record
	rows, err := st.run(ctx, governed)
	if err != nil {
		return nil, err
	}
	columns := governed.Columns()
	if len(columns) == 0 {
		return &Result{Warnings: st.session.vars.WarningCount()}, drain(rows)
	}
	return &Result{Columns: columns, Rows: rows, Warnings: st.session.vars.WarningCount()}, nil
}

// drain runs rows to their end, for statements that yield none.
func drain(rows Rows) error {
	defer func() { _ = rows.Close() }()
	for {
		b, err := rows.Next()
		if isEOF(err) {
			return nil
		}
		if err != nil {
			return err
		}
		b.Release()
	}
}

func (st *statement) use(ctx context.Context, database string) (*Result, error) {
	ok, err := strings.EqualFold(database, "information_schema"), error(nil)
	if !ok {
		ok, err = relations{st}.HasDatabase(ctx, database)
	}
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fault.New(fault.NoDatabase, "Unknown database '%s'", database)
	}
	st.session.setDatabase(database)
	return &Result{Database: &database}, nil
}

func noStatement(name string) error {
	return fault.New(fault.BadStatement, "Unknown prepared statement handler (%s); PREPARE it first in this session", name)
}

func (s *Session) prepareNamed(ctx context.Context, stmt *parse.Prepare) (*Result, error) {
	text := stmt.Text
	if stmt.Var != "" {
		v, ok := s.vars.UserVariable(stmt.Var)
		str, isText := v.Value.(string)
		if !ok || !isText {
			return nil, fault.New(fault.BadStatement, "the user variable @%s holds no statement text", stmt.Var)
		}
		text = str
	}
	inner, rest, err := parse.Parse(text)
	if err != nil {
		return nil, err
	}
	if rest != "" {
		return nil, fault.New(fault.Syntax, "a prepared statement holds one statement")
	}
	p := &Prepared{Text: text, Params: parse.Params(inner)}
	switch inner.(type) {
	case *parse.Prepare, *parse.ExecuteStmt:
		return nil, fault.New(fault.Unsupported, "PREPARE and EXECUTE cannot be prepared")
	}
	s.prepared[stmt.Name] = p
	return &Result{}, nil
}

func (s *Session) namedArguments(stmt *parse.ExecuteStmt) (*Prepared, []plan.Literal, error) {
	p, ok := s.prepared[stmt.Name]
	if !ok {
		return nil, nil, noStatement(stmt.Name)
	}
	args := make([]plan.Literal, len(stmt.Vars))
	for i, name := range stmt.Vars {
		v, ok := s.vars.UserVariable(name)
		if !ok {
			v = plan.Literal{Typ: plan.Null}
		}
		args[i] = v
	}
	return p, args, nil
}
