package main

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/wire"
)

// record is one line of decode's output. docs/decode.md describes the fields.
type record struct {
	Protocol     wire.Protocol   `json:"protocol"`
	Operation    string          `json:"operation,omitempty"`
	Database     string          `json:"database,omitempty"`
	Collection   string          `json:"collection,omitempty"`
	WriteConcern json.RawMessage `json:"write_concern,omitempty"`
	Statement    string          `json:"statement,omitempty"`
	OK           *bool           `json:"ok,omitempty"`
	ErrorCode    any             `json:"error_code,omitempty"`
	Compressor   string          `json:"compressor,omitempty"`
	// Reply is false if none is expected, null if it isn't in the capture, and
	// absent where OK tells of it.
	Reply         json.RawMessage `json:"reply,omitempty"`
	BytesToServer int64           `json:"bytes_to_server"`
	BytesToClient int64           `json:"bytes_to_client"`
}

// summary is the last line's.
type summary struct {
	MessagesToServer int   `json:"messages_to_server"`
	MessagesToClient int   `json:"messages_to_client"`
	Exchanges        int   `json:"exchanges"`
	Undecoded        int   `json:"undecoded"`
	TrailingBytes    int64 `json:"trailing_bytes"`
}

func newRecord(x *wire.Exchange) *record {
	r := &record{
		Protocol:  x.Protocol,
		Operation: x.Operation, Database: x.Database, Collection: x.Collection,
		Statement:     x.Statement,
		Compressor:    x.Compressor,
		BytesToServer: x.Sides[wire.ToServer].Bytes,
		BytesToClient: x.Sides[wire.ToClient].Bytes,
	}
	switch {
	case x.Answered:
		ok := x.OK
		r.OK = &ok
	case x.NoReply:
		r.Reply = json.RawMessage("false")
	default:
		r.Reply = json.RawMessage("null")
	}
	if raw := x.Mongo.WriteConcern.Raw; len(raw) > 0 {
		if text, err := bson.MarshalExtJSON(bson.Raw(raw), false, false); err == nil {
			r.WriteConcern = text
		}
	}
	if x.ErrorCode != "" {
		r.ErrorCode = x.ErrorCode
		if x.Protocol == wire.MongoDB {
			r.ErrorCode = json.Number(x.ErrorCode)
		}
	}
	return r
}

// list prints exchanges in the order in which a person would tell them.
//
//	MongoDB     in the order of the requests: held until those before have ended
//	PostgreSQL  in the order of the results; those without one, at the end
type list struct {
	protocol wire.Protocol
	out      *json.Encoder
	err      error // the first failure to write
	count    int
	next     uint64
	held     map[uint64]*record
}

func newList(p wire.Protocol, w io.Writer) *list {
	l := &list{protocol: p, out: json.NewEncoder(w), next: 1, held: map[uint64]*record{}}
	l.out.SetEscapeHTML(false)
	return l
}

// add is a wire.Open's Emit: it keeps nothing of x.
func (l *list) add(x *wire.Exchange) (keep bool) {
	l.count++
	r := newRecord(x)
	if l.protocol == wire.Postgres && x.Answered {
		l.print(r)
		return false
	}
	l.held[x.Ordinal] = r
	if l.protocol == wire.Postgres {
		return false
	}
	for r := l.held[l.next]; r != nil; r = l.held[l.next] {
		l.print(r)
		delete(l.held, l.next)
		l.next++
	}
	return false
}

// end prints what is held and the summary.
func (l *list) end(s summary) error {
	ordinals := make([]uint64, 0, len(l.held))
	for n := range l.held {
		ordinals = append(ordinals, n)
	}
	slices.SortFunc(ordinals, cmp.Compare)
	for _, n := range ordinals {
		l.print(l.held[n])
	}
	s.Exchanges = l.count
	l.print(map[string]summary{"summary": s})
	return l.err
}

func (l *list) print(v any) {
	if err := l.out.Encode(v); err != nil && l.err == nil {
		l.err = err
	}
}
