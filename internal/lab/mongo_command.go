package lab

import (
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/wire"
)

// commandError is an error reply: numbers and names as in the server's
// src/mongo/base/error_codes.yml.
type commandError struct {
	code    int32
	name    string
	message string
	details bson.D // further fields: keyPattern, keyValue
}

func (e *commandError) Error() string { return e.message }

func badValue(format string, args ...any) error {
	return &commandError{code: 2, name: "BadValue", message: fmt.Sprintf(format, args...)}
}

func failedToParse(format string, args ...any) error {
	return &commandError{code: 9, name: "FailedToParse", message: fmt.Sprintf(format, args...)}
}

// notImplemented refuses what a server could do and this peer can't, so that
// nobody takes a wrong answer for a server's.
func notImplemented(what string) error {
	return &commandError{code: 238, name: "NotImplemented", message: what + " isn't part of this lab peer"}
}

func asCommandError(err error) *commandError {
	var c *commandError
	if errors.As(err, &c) {
		return c
	}
	return &commandError{code: 1, name: "InternalError", message: err.Error()}
}

func errorReply(err error) bson.D {
	c := asCommandError(err)
	d := bson.D{{Key: "ok", Value: 0.0}, {Key: "errmsg", Value: c.message}, {Key: "code", Value: c.code}, {Key: "codeName", Value: c.name}}
	return append(d, c.details...)
}

// handler is the method behind a command's name; nil: the peer doesn't know it.
func handler(name string) func(*Mongo, *request) (bson.D, error) {
	switch name {
	case "hello", "isMaster", "ismaster":
		return (*Mongo).hello
	case "ping":
		return func(*Mongo, *request) (bson.D, error) { return bson.D{}, nil }
	case "buildInfo", "buildinfo":
		return (*Mongo).buildInfo
	case "endSessions":
		return (*Mongo).endSessions
	case "insert":
		return writing((*Mongo).insert)
	case "update":
		return writing((*Mongo).update)
	case "delete":
		return writing((*Mongo).delete)
	case "findAndModify", "findandmodify":
		return writing((*Mongo).findAndModify)
	case "find":
		return (*Mongo).find
	case "getMore":
		return (*Mongo).getMore
	case "killCursors":
		return (*Mongo).killCursors
	case "aggregate":
		return (*Mongo).aggregate
	case "count":
		return (*Mongo).count
	}
	return nil
}

// readCommand fills in what a command says of itself.
func (q *request) readCommand() error {
	first, err := q.body.IndexErr(0)
	if err != nil {
		return fmt.Errorf("%w: a command without a name", errProtocol)
	}
	q.Name = first.Key()
	q.Collection, _ = first.Value().StringValueOK()
	if q.Name == "getMore" {
		q.Collection, _ = q.body.Lookup("collection").StringValueOK()
	}
	if !q.legacy {
		q.Database, _ = q.body.Lookup("$db").StringValueOK()
	}
	q.WriteConcern = readWriteConcern(q.body)
	return nil
}

func readWriteConcern(body bson.Raw) wire.WriteConcern {
	doc, ok := body.Lookup("writeConcern").DocumentOK()
	if !ok {
		return wire.WriteConcern{Source: "assumed"}
	}
	wc := wire.WriteConcern{Raw: doc, Source: "command"}
	w := doc.Lookup("w")
	if n, ok := w.AsInt64OK(); ok {
		wc.W = fmt.Sprint(n)
	} else if s, ok := w.StringValueOK(); ok {
		wc.W = s
	} else if _, ok := w.DocumentOK(); ok {
		wc.W = "{...}"
	}
	if j, ok := doc.Lookup("j").BooleanOK(); ok {
		wc.J = fmt.Sprint(j)
	}
	if ms, ok := doc.Lookup("wtimeout").AsInt64OK(); ok {
		wc.WTimeout = time.Duration(ms) * time.Millisecond
	}
	return wc
}

// dispatch checks what holds for every command and runs it.
func (m *Mongo) dispatch(q *request) (bson.D, error) {
	h := handler(q.Name)
	if h == nil {
		return nil, &commandError{code: 59, name: "CommandNotFound", message: fmt.Sprintf("no such command: '%s'", q.Name)}
	}
	if q.Database == "" {
		return nil, &commandError{code: 40571, name: "Location40571", message: "OP_MSG requests require a $db argument"}
	}
	// Since 5.1 a server takes nothing else this way (src/mongo/rpc/check_allowed_op_query_cmd.cpp).
	switch q.Name {
	case "hello", "isMaster", "ismaster", "buildInfo", "buildinfo":
	default:
		if q.legacy {
			return nil, &commandError{code: 352, name: "UnsupportedOpQueryCommand",
				message: fmt.Sprintf("Unsupported OP_QUERY command: %s", q.Name)}
		}
	}
	if _, err := q.body.LookupErr("autocommit"); err == nil {
		return nil, notImplemented("a transaction")
	}
	return h(m, q)
}

// hello omits topologyVersion unless asked for, so that drivers poll instead of
// waiting for a change that would never come.
func (m *Mongo) hello(q *request) (bson.D, error) {
	var d bson.D
	add := func(key string, value any) { d = append(d, bson.E{Key: key, Value: value}) }
	if names := m.negotiate(q.body); len(names) > 0 {
		add("compression", names)
	}
	if ok, _ := q.body.Lookup("helloOk").BooleanOK(); ok {
		add("helloOk", true)
	}
	if m.options.StreamHello {
		add("topologyVersion", bson.D{{Key: "processId", Value: m.process}, {Key: "counter", Value: int64(0)}})
	}
	if m.clock != nil {
		add("hosts", bson.A{m.Addr()})
		add("setName", m.options.SetName)
		add("setVersion", int32(1))
	}
	if q.Name == "hello" {
		add("isWritablePrimary", true)
	} else {
		add("ismaster", true)
	}
	if m.clock != nil {
		add("secondary", false)
		add("primary", m.Addr())
		add("me", m.Addr())
		add("electionId", electionID())
		add("lastWrite", m.clock.lastWrite())
	}
	add("maxBsonObjectSize", int32(maxBSON))
	add("maxMessageSizeBytes", int32(maxMessage))
	add("maxWriteBatchSize", int32(100_000))
	add("localTime", bson.NewDateTimeFromTime(time.Now()))
	add("logicalSessionTimeoutMinutes", int32(30))
	add("connectionId", int32(q.connection))
	add("minWireVersion", int32(0))
	add("maxWireVersion", m.options.MaxWireVersion)
	add("readOnly", false)
	return d, nil
}

// negotiate is the client's list of compressors, in its order, without those
// that the peer doesn't accept.
func (m *Mongo) negotiate(body bson.Raw) bson.A {
	offered, _ := body.Lookup("compression").ArrayOK()
	values, _ := offered.Values()
	var common bson.A
	for _, v := range values {
		name, _ := v.StringValueOK()
		for _, ours := range m.options.Compressors {
			if name == ours {
				common = append(common, name)
			}
		}
	}
	return common
}

func (m *Mongo) buildInfo(*request) (bson.D, error) {
	return bson.D{
		{Key: "version", Value: "7.0.0"},
		{Key: "versionArray", Value: bson.A{int32(7), int32(0), int32(0), int32(0)}},
		{Key: "modules", Value: bson.A{"wirewait lab peer"}},
		{Key: "bits", Value: int32(64)},
		{Key: "maxBsonObjectSize", Value: int32(maxBSON)},
	}, nil
}
