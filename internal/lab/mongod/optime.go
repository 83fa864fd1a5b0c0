package mongod

import (
	"cmp"
	"encoding/binary"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// OpTime is a place in a set's history: an election's term, and a timestamp that
// no two oplog entries share. The zero value comes before everything.
type OpTime struct {
	TS bson.Timestamp `bson:"ts"`
	T  int64          `bson:"t"`
}

// Compare orders by term, then timestamp.
func (o OpTime) Compare(p OpTime) int {
	return cmp.Or(cmp.Compare(o.T, p.T), o.TS.Compare(p.TS))
}

// Before reports whether o comes before p.
func (o OpTime) Before(p OpTime) bool { return o.Compare(p) < 0 }

// readOpTime reads {ts, t}; zero if it's something else. Servers write -1 for
// the term of no optime.
func readOpTime(v bson.RawValue) OpTime {
	doc, ok := v.DocumentOK()
	if !ok {
		return OpTime{}
	}
	var o OpTime
	o.TS.T, o.TS.I, _ = doc.Lookup("ts").TimestampOK()
	if o.T, _ = doc.Lookup("t").AsInt64OK(); o.T < 0 {
		return OpTime{}
	}
	return o
}

// mark is an optime and when its entry was made, by the primary's clock.
type mark struct {
	OpTime
	wall time.Time
}

func (m mark) date() bson.DateTime { return bson.NewDateTimeFromTime(m.wall) }

// upTo moves a mark forward, never back.
func (m *mark) upTo(to mark) bool {
	if !m.Before(to.OpTime) {
		return false
	}
	*m = to
	return true
}

// position is how far a member has come (src/mongo/db/repl, lastWritten,
// lastDurable, lastApplied): the entry is in the oplog, on disk, in the data.
type position struct{ written, durable, applied mark }

func (p *position) upTo(to position) bool {
	w, d, a := p.written.upTo(to.written), p.durable.upTo(to.durable), p.applied.upTo(to.applied)
	return w || d || a
}

// electionID is 7fffffff and the term (src/mongo/bson/oid.cpp, OID::fromTerm).
func electionID(term int64) bson.ObjectID {
	var id bson.ObjectID
	binary.BigEndian.PutUint32(id[:], 0x7fffffff)
	binary.BigEndian.PutUint64(id[4:], uint64(term))
	return id
}
