package mongod

import (
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// entry is one line of the oplog (src/mongo/db/repl/oplog_entry.idl): a change
// to one document, a command, or nothing but an optime.
type entry struct {
	mark
	raw       bson.Raw
	kind      string // i, u, d, c, n
	namespace string
	ui        bson.Binary // the collection's; no Data: none
	o, o2     bson.Raw
	session   string // lsid.id; empty: not a retryable write
	txnNumber int64
	stmtIDs   []int32
	image     string // "preImage" or "postImage" of what findAndModify answered
	end       int64  // where it ends in the journal
}

// userDigest stands for the user in an entry's lsid: of nobody, without access
// control (src/mongo/db/session/logical_session_id.idl, uid).
var userDigest = sha256.Sum256(nil)

// encode makes the entry's document. Its fields are set but for raw.
func (e *entry) encode() error {
	d := bson.D{{Key: "op", Value: e.kind}, {Key: "ns", Value: e.namespace}}
	add := func(key string, value any) { d = append(d, bson.E{Key: key, Value: value}) }
	if e.ui.Data != nil {
		add("ui", e.ui)
	}
	add("o", e.o)
	if e.o2 != nil {
		add("o2", e.o2)
	}
	add("ts", e.TS)
	add("t", e.T)
	add("v", int64(2))
	add("wall", e.date())
	if e.session != "" {
		add("lsid", bson.D{
			{Key: "id", Value: bson.Binary{Subtype: 4, Data: []byte(e.session)}},
			{Key: "uid", Value: bson.Binary{Data: userDigest[:]}},
		})
		add("txnNumber", e.txnNumber)
		if len(e.stmtIDs) == 1 {
			add("stmtId", e.stmtIDs[0])
		} else {
			add("stmtId", e.stmtIDs)
		}
	}
	if e.image != "" {
		add("needsRetryImage", e.image)
	}
	var err error
	e.raw, err = bson.Marshal(d)
	return err
}

var errEntry = errors.New("not an oplog entry")

// parseEntry reads what another member, or the journal, says.
func parseEntry(raw bson.Raw) (*entry, error) {
	if !wellFormed(raw, maxNesting) {
		return nil, errEntry
	}
	e := &entry{raw: slices.Clone(raw)}
	var t, i uint32
	var ok bool
	if t, i, ok = e.raw.Lookup("ts").TimestampOK(); !ok {
		return nil, errEntry
	}
	e.TS = bson.Timestamp{T: t, I: i}
	e.T, _ = e.raw.Lookup("t").AsInt64OK()
	wall, _ := e.raw.Lookup("wall").DateTimeOK()
	e.wall = time.UnixMilli(wall)
	if e.kind, ok = e.raw.Lookup("op").StringValueOK(); !ok {
		return nil, errEntry
	}
	e.namespace, _ = e.raw.Lookup("ns").StringValueOK()
	e.ui.Subtype, e.ui.Data, _ = e.raw.Lookup("ui").BinaryOK()
	e.o, _ = e.raw.Lookup("o").DocumentOK()
	e.o2, _ = e.raw.Lookup("o2").DocumentOK()
	if e.session = sessionID(e.raw.Lookup("lsid")); e.session != "" {
		e.txnNumber, _ = e.raw.Lookup("txnNumber").AsInt64OK()
		e.stmtIDs = int32s(e.raw.Lookup("stmtId"))
	}
	e.image, _ = e.raw.Lookup("needsRetryImage").StringValueOK()
	return e, nil
}

// maxNesting is how deep documents may lie in each other: BSONDepth's default
// (src/mongo/bson/bson_depth.h) and what an entry puts around them.
const maxNesting = 220

// wellFormed reports whether a document is one, with all that are in it:
// Validate looks at the outermost alone.
func wellFormed(d bson.Raw, depth int) bool {
	elements, err := d.Elements()
	if err != nil || depth == 0 || d.Validate() != nil {
		return false
	}
	for _, e := range elements {
		inner, ok := e.Value().DocumentOK()
		if list, isList := e.Value().ArrayOK(); isList {
			inner, ok = bson.Raw(list), true
		}
		if ok && !wellFormed(inner, depth-1) {
			return false
		}
	}
	return true
}

// int32s reads a number or an array of them.
func int32s(v bson.RawValue) []int32 {
	if n, ok := v.AsInt64OK(); ok {
		return []int32{int32(n)}
	}
	array, _ := v.ArrayOK()
	values, _ := array.Values()
	var out []int32
	for _, v := range values {
		n, _ := v.AsInt64OK()
		out = append(out, int32(n))
	}
	return out
}

// oplog is a member's whole history: it's never shortened at its old end, so
// that a member that comes back, however late, finds what it missed.
type oplog []*entry

// last is the newest entry's mark.
func (l oplog) last() mark {
	if len(l) == 0 {
		return mark{}
	}
	return l[len(l)-1].mark
}

// from is the place of the first entry that isn't older than ts.
func (l oplog) from(ts bson.Timestamp) int {
	at, _ := slices.BinarySearchFunc(l, ts, func(e *entry, ts bson.Timestamp) int { return e.TS.Compare(ts) })
	return at
}

// has reports whether the oplog holds just this entry.
func (l oplog) has(o OpTime) bool {
	at := l.from(o.TS)
	return at < len(l) && l[at].OpTime == o
}
