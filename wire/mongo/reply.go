package mongo

import (
	"encoding/binary"

	"github.com/wirewait/wirewait/wire"
)

// reply reads what a reply says and puts it into its exchange.
type reply struct {
	s    *session
	call *call
	x    *wire.Exchange

	opReply         bool // a legacy one: flags, and it may hold the user's documents
	failure         bool // by those flags, or $err
	hasOK, ok       bool
	hasCode         bool
	code            int64
	n, nModified    int64 // -1: none
	counted         int64 // sum of bulkWrite's counters; -1: none
	lastN           int64 // findAndModify's lastErrorObject.n; -1: none
	writeErrors     int
	writeErrCode    int64
	concernErr      int64
	opTime, logical wire.OpTime
	connection      int64

	oplog     bool // the request was for the oplog
	heartbeat bool
	positions
}

func (r *reply) begin(s *session, c *call) {
	*r = reply{s: s, call: c, x: c.x, n: -1, nModified: -1, counted: -1, lastN: -1}
	r.opTime.T = -1
	if s.between && s.open.WantsReports() {
		r.about.begin()
		r.oplog = c.x.Database == "local" && c.x.Collection == "oplog.rs"
		r.heartbeat = c.x.Operation == "replSetHeartbeat"
	}
}

// legacy takes OP_REPLY's flags. False: its documents are the user's and not
// to be read.
func (r *reply) legacy(flags int) bool {
	r.opReply = true
	r.failure = flags&(replyQueryFailure|replyCursorNotFound) != 0
	return r.failure || !r.call.plain
}

// element implements visitor.
func (r *reply) element(at node, nth int, key []byte, typ byte) (node, action) {
	if at >= inOptimes {
		return r.positions.element(at, key, typ)
	}
	switch at {
	case inReply:
		return r.field(key, typ)
	case inOpTime:
		switch string(key) {
		case "ts":
			return want(key, typ, "ts", typeTimestamp, atOpTimeTS)
		case "t":
			return atOpTimeT, collect
		}
	case inWriteErrors:
		r.writeErrors++
		if nth == 0 {
			return inWriteError, descend
		}
	case inWriteError:
		if string(key) == "code" {
			return atWriteErrorCode, collect
		}
	case inConcernError:
		if string(key) == "code" {
			return atConcernCode, collect
		}
	case inLastError:
		if string(key) == "n" {
			return atLastErrorN, collect
		}
	}
	return nowhere, skip
}

// field takes a field of the reply document.
func (r *reply) field(key []byte, typ byte) (node, action) {
	switch string(key) {
	case "ok":
		return atOK, collect
	case "code":
		return atCode, collect
	case "n":
		return atN, collect
	case "nModified":
		return atNModified, collect
	case "nInserted", "nMatched", "nUpserted", "nDeleted":
		return atNCounted, collect
	case "nErrors":
		return atNErrors, collect
	case "operationTime":
		return want(key, typ, "operationTime", typeTimestamp, atOperationTime)
	case "opTime":
		if typ == typeTimestamp {
			return atOpTimeOnly, collect
		}
		return inOpTime, descend
	case "writeErrors":
		return inWriteErrors, descend
	case "writeConcernError":
		return inConcernError, descend
	case "lastErrorObject":
		return inLastError, descend
	case "connectionId":
		return atConnectionID, collect
	case "maxWireVersion":
		return atMaxWire, collect
	case "setName":
		if r.s.options.ReplicaSet != nil && isHello(r.x.Operation) {
			return want(key, typ, "setName", typeString, atSetName)
		}
	case "$err":
		r.failure = r.failure || r.opReply
	default:
		if r.oplog || r.heartbeat {
			return r.standing(key, typ)
		}
	}
	return nowhere, skip
}

// value implements visitor.
func (r *reply) value(n node, typ byte, v []byte) {
	if n >= inOptimes {
		r.positions.value(n, typ, v, &r.s.strings)
		return
	}
	switch n {
	case atOpTimeOnly, atOpTimeTS:
		r.opTime.TS = binary.LittleEndian.Uint64(v)
		return
	case atSetName:
		r.s.options.ReplicaSet(metadataText(v))
		r.s.options.ReplicaSet = nil // once
		return
	case atOperationTime:
		r.logical = wire.OpTime{T: -1, TS: binary.LittleEndian.Uint64(v)}
		return
	}
	i, ok := number(typ, v)
	if !ok {
		return
	}
	switch n {
	case atOK:
		r.hasOK, r.ok = true, isOne(typ, v, i)
	case atCode:
		r.hasCode, r.code = true, i
	case atN:
		r.n = i
	case atNModified:
		r.nModified = i
	case atNCounted:
		r.counted = max(r.counted, 0) + i
	case atNErrors:
		r.writeErrors = int(min(max(i, 0), 1<<30))
	case atOpTimeT:
		r.opTime.T = i
	case atWriteErrorCode:
		r.writeErrCode = i
	case atConcernCode:
		r.concernErr = i
	case atLastErrorN:
		r.lastN = i
	case atConnectionID:
		r.connection = i
	case atMaxWire:
		r.s.maxWire = i
	}
}

// isOne reads ok: a reply's is 1.0, 1, true, or zero of any of these.
func isOne(typ byte, v []byte, i int64) bool {
	return i == 1 && (typ != typeDouble || binary.LittleEndian.Uint64(v) == oneAsDouble)
}

const oneAsDouble = 0x3ff0000000000000

// end puts what was read into the exchange. In an exhaust stream the last
// reply's word stands.
func (r *reply) end(b *body) {
	c := r.call
	c.replied = true
	c.queryFailed = r.failure
	r.success(b)
	r.counts()
	if c.plain || r.opReply && !r.hasOK && !r.failure {
		c.plainReply()
	}
	if r.connection > 0 && (r.s.peer == nil || r.s.peer.ServerConnectionID != r.connection) {
		var p wire.Peer
		if r.s.peer != nil {
			p = *r.s.peer
		}
		p.ServerConnectionID = r.connection
		r.s.peer = &p
	}
}

func (r *reply) success(b *body) {
	x := r.x
	x.OK = r.ok && !r.failure
	// A reply that could not be inflated, or not to its end, is not an error:
	// those are short.
	if !r.hasOK && !r.hasCode && (b.op == 0 || b.cut && !b.whole) {
		x.OK = true
	}
	switch {
	case r.hasCode:
		x.ErrorCode = r.s.strings.code(r.code)
	case r.writeErrCode != 0:
		x.ErrorCode = r.s.strings.code(r.writeErrCode)
	default:
		x.ErrorCode = ""
	}
}

func (r *reply) counts() {
	m := &r.x.Mongo
	switch {
	case r.n >= 0:
		m.N = r.n
	case r.counted >= 0:
		m.N = r.counted
	default:
		m.N = r.lastN
	}
	m.NModified = r.nModified
	m.WriteErrors, m.WriteErrCode = r.writeErrors, int32(r.writeErrCode)
	m.ConcernError = int32(r.concernErr)
	if r.opTime.TS != 0 {
		m.OpTime = r.opTime
	}
	if r.logical.TS != 0 {
		m.OperationTime = r.logical
	}
}

// plainReply corrects a reply that holds the user's documents: what looked
// like a command's reply in them was not one.
func (c *call) plainReply() {
	x := c.x
	x.OK = !c.queryFailed
	if c.queryFailed {
		return
	}
	m := &x.Mongo
	x.ErrorCode = ""
	m.N, m.NModified = -1, -1
	m.WriteErrors, m.WriteErrCode, m.ConcernError = 0, 0, 0
	m.OpTime, m.OperationTime = wire.OpTime{}, wire.OpTime{}
}
