package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"sqe/engine"
	"sqe/fault"
	"sqe/plan"
	"sqe/server/wire"
)

// dispatch executes one command.
func (c *conn) dispatch(command wire.Command, body []byte) error {
	ok := wire.OK{Status: wire.StatusAutocommit}
	switch command {
	case wire.ComPing:
		if err := c.session.Ping(c.ctx); err != nil {
			return err
		}
		return c.out.OK(ok, c.caps)
	case wire.ComInitDB:
		name := string(body)
		if err := c.session.Use(c.ctx, name); err != nil {
			return c.fail(err)
		}
		ok.Database = &name
		return c.out.OK(ok, c.caps)
	case wire.ComQuery:
		c.questions++
		return c.query(string(body))
	case wire.ComFieldList:
		return c.fieldList(body)
	case wire.ComStatistics:
		// What is true of this session alone: no numbers of other people.
		return c.out.Text(fmt.Sprintf("Uptime: %d  Threads: 1  Questions: %d", int(time.Since(c.server.started).Seconds()), c.questions))
	case wire.ComProcessKill:
		id, err := wire.StatementID(body)
		if err != nil {
			return c.fail(err)
		}
		return c.query(fmt.Sprintf("KILL %d", id))
	case wire.ComSetOption:
		option, err := wire.Uint16(body)
		switch {
		case err != nil:
			return c.fail(err)
		case option == 0:
			c.caps |= wire.ClientMultiStatements
		case option == 1:
			c.caps &^= wire.ClientMultiStatements
		default:
			return c.out.Error(errUnknownCommand, c.caps)
		}
		ok.EOF = true
		return c.out.OK(ok, c.caps)
	case wire.ComResetConnection:
		if err := c.session.Ping(c.ctx); err != nil {
			return err
		}
		clear(c.statements)
		c.session.Reset()
		return c.out.OK(ok, c.caps)
	case wire.ComStmtPrepare:
		return c.prepare(string(body))
	case wire.ComStmtExecute:
		c.questions++
		return c.execute(body)
	case wire.ComStmtSendLongData:
		return c.longData(body)
	case wire.ComStmtClose:
		if id, err := wire.StatementID(body); err == nil {
			delete(c.statements, id)
		}
		return nil // has no answer
	case wire.ComStmtReset:
		return c.resetStatement(body)
	case wire.ComStmtFetch:
		return c.out.Error(errNoCursor, c.caps)
	case wire.ComChangeUser:
		return c.changeUser(body)
	}
	return c.out.Error(errUnknownCommand, c.caps)
}

// query runs the statements of text.
func (c *conn) query(text string) error {
	for {
		c.asked = true
		res, rest, err := c.session.Query(c.ctx, text)
		c.asked = false
		if broken := c.endUpload(); broken != nil {
			closeRows(res)
			return broken
		}
		if err != nil {
			return c.fail(err)
		}
		if rest != "" && c.caps&wire.ClientMultiStatements == 0 {
			closeRows(res)
			return c.fail(fault.New(fault.Syntax, "You have an error in your SQL syntax: the text holds several statements; turn on multi statements in the client to send more than one at once"))
		}
		status := wire.StatusAutocommit
		if rest != "" {
			status |= wire.StatusMoreResults
		}
		complete, err := c.result(res, status, wire.TextProtocol)
		if err != nil || !complete || rest == "" {
			return err
		}
		text = rest
	}
}

func closeRows(res *engine.Result) {
	if res != nil && res.Rows != nil {
		_ = res.Rows.Close()
	}
}

// result sends what a statement gave. complete is false when the client was told
// an error in place of the end of the rows.
func (c *conn) result(res *engine.Result, status uint16, p wire.Protocol) (complete bool, err error) {
	if res == nil {
		return false, c.fail(errors.New("a statement gave neither a result nor an error"))
	}
	if len(res.Columns) == 0 {
		closeRows(res)
		return true, c.out.OK(wire.OK{Affected: res.Affected, Status: status, Warnings: res.Warnings, Database: res.Database}, c.caps)
	}
	if res.Rows == nil {
		return false, c.fail(errors.New("a result has columns and no rows"))
	}
	closed := false
	defer func() {
		if !closed {
			_ = res.Rows.Close()
		}
	}()
	defs, err := wire.Definitions(res.Columns)
	if err != nil {
		return false, c.fail(err)
	}
	if err := c.out.Columns(defs, status, c.caps); err != nil {
		return false, err
	}
	if failed, err := c.rows(res.Columns, res.Rows, p); failed != nil || err != nil {
		if err != nil {
			return false, err
		}
		return false, c.fail(failed)
	}
	// Closing may fail the statement (its audit event cannot be written): the
	// client must not be told that it succeeded before.
	closed = true
	if err := res.Rows.Close(); err != nil {
		return false, c.fail(err)
	}
	return true, c.out.OK(wire.OK{EOF: true, Status: status, Warnings: res.Warnings}, c.caps)
}

// rows sends rows to their end. failed is why the statement failed, err why the
// connection did.
func (c *conn) rows(columns []plan.Column, rows engine.Rows, p wire.Protocol) (failed, err error) {
	encoder := wire.NewEncoder(columns, p)
	for {
		batch, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return err, nil
		}
		err = encoder.Write(c.out, batch)
		batch.Release()
		if err != nil {
			if broken := c.out.Err(); broken != nil {
				return nil, broken
			}
			return err, nil
		}
		if cause := context.Cause(c.ctx); cause != nil {
			return cause, nil
		}
	}
}

// fieldList answers COM_FIELD_LIST: the columns of a table that the principal may
// see, which the engine decides as for any other statement.
func (c *conn) fieldList(body []byte) error {
	table, err := wire.FieldListTable(body)
	if err != nil {
		return c.fail(err)
	}
	res, _, err := c.session.Query(c.ctx, "SELECT * FROM `"+strings.ReplaceAll(table, "`", "``")+"` LIMIT 0")
	if err != nil {
		return c.fail(err)
	}
	defer closeRows(res)
	defs, err := wire.Definitions(res.Columns)
	if err != nil {
		return c.fail(err)
	}
	for _, d := range defs {
		if err := c.out.Column(d, true); err != nil {
			return err
		}
	}
	return c.out.OK(wire.OK{EOF: true, Status: wire.StatusAutocommit}, c.caps)
}
