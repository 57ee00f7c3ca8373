package server

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"sqe/fault"
	"sqe/server/wire"
)

// code is how MySQL names an error.
type code struct {
	number uint16
	state  string // SQLSTATE
}

// codes says which MySQL error each kind of fault is. Numbers of MySQL itself are
// used where it has the same error; 9001 and above are SQE's own. They are part
// of the interface: a number is never given another meaning.
var codes = map[fault.Kind]code{
	fault.Internal:     {1105, "HY000"}, // ER_UNKNOWN_ERROR
	fault.Syntax:       {1064, "42000"}, // ER_PARSE_ERROR
	fault.BadStatement: {1210, "HY000"}, // ER_WRONG_ARGUMENTS
	fault.NotFound:     {1146, "42S02"}, // ER_NO_SUCH_TABLE
	fault.NoColumn:     {1054, "42S22"}, // ER_BAD_FIELD_ERROR
	fault.NoDatabase:   {1049, "42000"}, // ER_BAD_DB_ERROR; see mysqlError for 1046
	fault.NoFunction:   {1305, "42000"}, // ER_SP_DOES_NOT_EXIST
	fault.Denied:       {1142, "42000"}, // ER_TABLEACCESS_DENIED_ERROR
	fault.Withheld:     {1143, "42000"}, // ER_COLUMNACCESS_DENIED_ERROR
	fault.PolicyStale:  {9001, "HY000"},
	fault.PolicyBroken: {9002, "HY000"},
	fault.Unsupported:  {1235, "42000"}, // ER_NOT_SUPPORTED_YET
	fault.Limit:        {1041, "HY000"}, // ER_OUT_OF_RESOURCES
	fault.Timeout:      {3024, "HY000"}, // ER_QUERY_TIMEOUT
	fault.Cancelled:    {1317, "70100"}, // ER_QUERY_INTERRUPTED
	fault.Unavailable:  {1429, "HY000"}, // ER_CONNECT_TO_FOREIGN_DATA_SOURCE
	fault.Corrupt:      {1194, "HY000"}, // ER_CRASHED_ON_USAGE
	fault.Conflict:     {1213, "40001"}, // ER_LOCK_DEADLOCK: try the transaction again
	fault.OutOfRange:   {1690, "22003"}, // ER_DATA_OUT_OF_RANGE
	fault.Auth:         {1045, "28000"}, // ER_ACCESS_DENIED_ERROR
	fault.Config:       {9003, "HY000"},
	fault.NoThread:     {1094, "HY000"}, // ER_NO_SUCH_THREAD
	fault.Exists:       {1050, "42S01"}, // ER_TABLE_EXISTS_ERROR
	fault.ReadOnly:     {1792, "25006"}, // ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION
	fault.NullValue:    {1048, "23000"}, // ER_BAD_NULL_ERROR
	fault.NoPrincipal:  {3523, "HY000"}, // ER_UNKNOWN_AUTHID
	fault.BadPrincipal: {1396, "HY000"}, // ER_CANNOT_USER
}

// Errors of the protocol itself.
var (
	errTooManyConnections = wire.Error{Number: 1040, State: "08004", Text: "Too many connections; raise server.max-connections or close some"}
	errNeedTLS            = wire.Error{Number: 3159, State: "HY000", Text: "Connections without TLS are refused. Turn on TLS in the client: mysql --ssl-mode=REQUIRED, mariadb --ssl, JDBC sslMode=REQUIRED"}
	errOldClient          = wire.Error{Number: 1251, State: "08004", Text: "The client cannot authenticate with caching_sha2_password; use a client of MySQL 8.0 or newer"}
	errBadHandshake       = wire.Error{Number: 1043, State: "08S01", Text: "Bad handshake"}
	errPacketTooLarge     = wire.Error{Number: 1153, State: "08S01", Text: "Got a packet bigger than server.max-packet"}
	errOutOfOrder         = wire.Error{Number: 1156, State: "08S01", Text: "Got packets out of order"}
	errMalformed          = wire.Error{Number: 1835, State: "HY000", Text: "Malformed communication packet"}
	errUnknownCommand     = wire.Error{Number: 1047, State: "08S01", Text: "This command of the MySQL protocol is not supported"}
	errIdle               = wire.Error{Number: 4031, State: "HY000", Text: "The connection was idle for longer than server.idle-timeout"}
	errUnknownStatement   = wire.Error{Number: 1243, State: "HY000", Text: "Unknown prepared statement; prepare it in this connection first"}
	errNoCursor           = wire.Error{Number: 1421, State: "HY000", Text: "The statement has no open cursor"}
	errTooManyStatements  = wire.Error{Number: 1461, State: "42000", Text: "Too many prepared statements in this connection; close some"}
	errTooManyParameters  = wire.Error{Number: 1390, State: "HY000", Text: "Prepared statement contains too many placeholders"}
)

// mysqlError is what the client is told about err. An internal error is logged
// with an id, and the client is told the id alone.
func (c *conn) mysqlError(err error) wire.Error {
	if errors.Is(err, wire.ErrMalformed) {
		return errMalformed
	}
	var f *fault.Fault
	if !errors.As(err, &f) || f.Kind == fault.Internal {
		return c.internal(err)
	}
	if f == errShutdown {
		return wire.Error{Number: 1053, State: "08S01", Text: f.Text}
	}
	known, ok := codes[f.Kind]
	if !ok {
		return c.internal(err)
	}
	if f.Kind == fault.NoDatabase && strings.HasPrefix(f.Text, "No database selected") {
		known = code{1046, "3D000"} // ER_NO_DB_ERROR
	}
	if cause := f.Unwrap(); cause != nil {
		c.log.Info("statement failed", "kind", f.Kind.String(), "cause", causes(err))
	}
	return wire.Error{Number: known.number, State: known.state, Text: f.Text}
}

func (c *conn) internal(err error) wire.Error {
	id := make([]byte, 6)
	_, _ = rand.Read(id) // never fails (crypto/rand)
	name := hex.EncodeToString(id)
	c.log.Error("internal error", "id", name, "cause", causes(err))
	known := codes[fault.Internal]
	return wire.Error{Number: known.number, State: known.state, Text: "internal error (id " + name + "); the log of the server has the cause under this id"}
}

// class is how the text of a library's error begins: what kind of error it is. The
// rest of it may quote a value, in whatever way.
func class(text string) string {
	end := strings.IndexFunc(text, func(r rune) bool {
		return strings.ContainsRune(":'\"`‘’“”«»\\\n", r) || unicode.IsDigit(r)
	})
	if end >= 0 {
		text = text[:end]
	}
	const longest = 80
	return strings.TrimRight(text[:min(len(text), longest)], " :")
}

// causes describes an error and all that is below it for the log: the types, our own
// texts, what the operating system says, and the class of a library's error.
func causes(err error) string {
	types, texts := causesOf(err)
	text := strings.Join(texts, ": ")
	const longest = 2000
	if len(text) > longest {
		text = text[:longest] + "..."
	}
	return strings.Join(types, " < ") + ": " + text
}

// Cause is what the log would say is below the text of an error, for an operator to
// whom that is shown without a log; "" when there is nothing more.
func Cause(err error) string {
	_, texts := causesOf(err)
	if f := (*fault.Fault)(nil); errors.As(err, &f) {
		texts = slices.DeleteFunc(texts, func(t string) bool { return t == f.Text })
	}
	return strings.Join(texts, ": ")
}

func causesOf(err error) (types, texts []string) {
	say := func(text string) {
		if len(texts) < 16 && text != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	var walk func(error)
	walk = func(err error) {
		if len(types) == 16 {
			return
		}
		types = append(types, fmt.Sprintf("%T", err))
		switch e := err.(type) {
		case *fault.Fault:
			say(e.Text)
		case *fs.PathError:
			say(e.Op)
		case syscall.Errno:
			say(e.Error())
			return
		case interface{ Detail() string }: // made for a log
			say(e.Detail())
		}
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			if below := e.Unwrap(); below != nil {
				walk(below)
			} else if !errors.As(err, new(*fault.Fault)) {
				say(class(err.Error()))
			}
		case interface{ Unwrap() []error }:
			for _, below := range e.Unwrap() {
				if below != nil {
					walk(below)
				}
			}
		default:
			say(class(err.Error()))
		}
	}
	if err != nil {
		walk(err)
	}
	return types, texts
}
