package mongod

import (
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/wire"
)

// Command is a command that reached a server.
type Command struct {
	Name       string // as sent: "insert"
	Database   string
	Collection string // empty if the command has none
	// WriteConcern has W, J and WTimeout as sent; zero if none was.
	WriteConcern wire.WriteConcern
	NoReply      bool   // the client wants no reply (w: 0)
	Compressor   string // of the request; empty: not compressed
	Checksum     bool   // the request carried one, and it was right
}

// request is a command, who sent it, and what it did.
type request struct {
	Command
	*message
	connection *connection
	arrived    time.Time
	wrote      OpTime // of its last oplog entry; zero: it changed nothing
	awaits     awaiting
}

// newRequest reads what a command says of itself.
func newRequest(m *message, c *connection) (*request, error) {
	first, err := m.body.IndexErr(0)
	if err != nil {
		return nil, fmt.Errorf("%w: a command without a name", errProtocol)
	}
	q := &request{message: m, connection: c, arrived: time.Now()}
	q.Name = first.Key()
	q.Collection, _ = first.Value().StringValueOK()
	if q.Name == "getMore" {
		q.Collection, _ = m.body.Lookup("collection").StringValueOK()
	}
	if q.Database = m.database; !m.legacy {
		q.Database, _ = m.body.Lookup("$db").StringValueOK()
	}
	q.WriteConcern = readWriteConcern(m.body)
	q.NoReply = m.flags&flagMoreToCome != 0
	q.Compressor = compressorNames[m.compressor]
	q.Checksum = m.checksum
	return q, nil
}

func (q *request) namespace() string { return q.Database + "." + q.Collection }

// exhaust reports whether the client takes several replies.
func (q *request) exhaust() bool { return q.flags&flagExhaust != 0 }

// int64 reads a number from the request's body; 0: it isn't there.
func (q *request) int64(field ...string) int64 {
	n, _ := q.body.Lookup(field...).AsInt64OK()
	return n
}

// bool takes a number for a truth value as servers do.
func (q *request) bool(field ...string) bool { return truth(q.body.Lookup(field...)) }

func truth(v bson.RawValue) bool {
	if b, ok := v.BooleanOK(); ok {
		return b
	}
	f, ok := v.AsFloat64OK()
	return ok && f != 0
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
