package server

import (
	"math"

	"sqe/engine"
	"sqe/fault"
	"sqe/server/wire"
)

// maxStatements bounds the prepared statements of a connection (MySQL's
// max_prepared_stmt_count has this default for the whole server).
const maxStatements = 16_382

// statement is a prepared statement of this connection.
type statement struct {
	prepared *engine.Prepared
	types    []wire.ParamType // of the last execution
	// long holds what COM_STMT_SEND_LONG_DATA brought for the next execution.
	long      map[int][]byte
	longBytes int
	// longErr is told at the next execution: long data has no answer.
	longErr error
}

func (c *conn) prepare(text string) error {
	if len(c.statements) >= maxStatements {
		return c.out.Error(errTooManyStatements, c.caps)
	}
	p, err := c.session.Prepare(c.ctx, text)
	if err != nil {
		return c.fail(err)
	}
	if p.Params > math.MaxUint16 {
		return c.out.Error(errTooManyParameters, c.caps)
	}
	defs, err := wire.Definitions(p.Columns)
	if err != nil {
		return c.fail(err)
	}
	c.lastID++
	c.statements[c.lastID] = &statement{prepared: p}
	return c.out.Prepared(c.lastID, p.Params, defs, wire.StatusAutocommit, 0, c.caps)
}

func (c *conn) execute(body []byte) error {
	x, err := wire.ParseExecution(body)
	if err != nil {
		return c.fail(err)
	}
	s, ok := c.statements[x.ID]
	if !ok {
		return c.out.Error(errUnknownStatement, c.caps)
	}
	long, longErr := s.long, s.longErr
	s.forget()
	if longErr != nil {
		return c.fail(longErr)
	}
	args, types, err := x.Arguments(s.prepared.Params, s.types, long)
	if err != nil {
		return c.fail(err)
	}
	s.types = types
	res, err := c.session.Execute(c.ctx, s.prepared, args)
	if err != nil {
		return c.fail(err)
	}
	_, err = c.result(res, wire.StatusAutocommit, wire.BinaryProtocol)
	return err
}

// forget drops the long data.
func (s *statement) forget() { s.long, s.longBytes, s.longErr = nil, 0, nil }

// longData collects a part of a parameter. It has no answer; what is wrong is
// told when the statement is executed.
func (c *conn) longData(body []byte) error {
	id, param, chunk, err := wire.LongData(body)
	if err != nil {
		return c.refuse(errMalformed)
	}
	s, ok := c.statements[id]
	switch {
	case !ok || s.longErr != nil:
		return nil
	case param >= s.prepared.Params:
		s.forget()
		s.longErr = fault.New(fault.BadStatement, "data was sent for parameter %d, the statement has %d", param+1, s.prepared.Params)
		return nil
	case s.longBytes+len(chunk) > c.server.o.MaxPacket:
		s.forget()
		s.longErr = fault.New(fault.Limit, "the parameters are larger than server.max-packet (%d bytes)", c.server.o.MaxPacket)
		return nil
	}
	if s.long == nil {
		s.long = map[int][]byte{}
	}
	s.long[param] = append(s.long[param], chunk...)
	s.longBytes += len(chunk)
	return nil
}

func (c *conn) resetStatement(body []byte) error {
	id, err := wire.StatementID(body)
	if err != nil {
		return c.fail(err)
	}
	s, ok := c.statements[id]
	if !ok {
		return c.out.Error(errUnknownStatement, c.caps)
	}
	s.forget()
	return c.out.OK(wire.OK{Status: wire.StatusAutocommit}, c.caps)
}
