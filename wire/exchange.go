package wire

import (
	"encoding/hex"
	"strconv"
	"time"
)

// Exchange is a request and its reply: the record that everything above this
// package works on. It holds values, never a view of the wire's bytes.
type Exchange struct {
	// Ordinal counts the exchanges of a connection from 1, in request order.
	Ordinal  uint64
	Protocol Protocol

	// Operation is MongoDB's command name or PostgreSQL's command tag without
	// its numbers; "startup", "cancel", "function_call"; a legacy opcode's name
	// ("OP_INSERT"). Empty if it could not be read.
	Operation  string
	Database   string
	Collection string // MongoDB
	Batch      int    // documents or statements in one write; 0 unknown
	Statement  string // PostgreSQL, see Options.Text

	// Write: it may change data, so that a span is due. WriteBasis says how
	// that is known ("command", "write_concern", "tag", "block", ...).
	Write      bool
	WriteBasis string

	// NoReply: none is expected (w: 0, a cancel). Answered: the reply is whole.
	NoReply, Answered bool
	// OK is false for an error reply (MongoDB ok: 0, an ErrorResponse) and for
	// one that is missing.
	OK bool
	// ErrorCode is a number or a SQLSTATE; empty if there was none.
	ErrorCode  string
	Compressor string // of the request, else of the reply: "snappy", "zlib", "zstd", "noop"

	// Traceparent is the W3C header found in the request; TraceparentReused
	// says that an earlier exchange had it already (a prepared statement's
	// comment), so that it is a link and not a parent.
	Traceparent       string
	TraceparentReused bool

	// Peer is what is known of the connection; shared and never changed once
	// set, replaced as a whole when something new is learned.
	Peer *Peer

	// Sides are indexed by Direction: the request is Sides[ToServer].
	Sides [2]Side

	// Faults are what rules did to it, in their order; nil: nothing.
	Faults []Fault
	// Extra is what rules delay it by, by Direction, on top of the link's delay.
	Extra [2]time.Duration

	Mongo    MongoFields
	Postgres PostgresFields

	// Bookkeeping of Open.
	marks, holds int
	complete     bool
	emitted      bool
	discarded    bool
}

// Side is one direction of an exchange. Stamps: first and last byte in, last
// byte out; the last is taken immediately before the write.
type Side struct {
	Bytes                    int64
	FirstIn, LastIn, LastOut Stamp
	// Planned is how long the last byte was to be held: due time less arrival.
	Planned time.Duration
	// Stalled is how long reading stood still because the line was full,
	// while this side was under way.
	Stalled time.Duration

	stallBase time.Duration
}

// Peer is what a connection said of itself. Immutable.
type Peer struct {
	User        string
	Database    string // PostgreSQL: of the start-up
	Application string
	Driver      string // MongoDB: client.driver.name and version
	BackendPID  int32  // PostgreSQL: BackendKeyData
	// ServerConnectionID is connectionId of MongoDB's hello reply; 0 unknown.
	ServerConnectionID int64
	// Replication is "", "physical" or "logical" (PostgreSQL).
	Replication string
}

// OpTime is a position in MongoDB's oplog: term and timestamp. The zero value
// is unknown. T is -1 where only a timestamp (operationTime) was given.
type OpTime struct {
	T  int64
	TS uint64 // seconds << 32 | increment
}

// MongoFields are what only MongoDB exchanges have.
type MongoFields struct {
	OpCode       int32 // the inner one of OP_COMPRESSED
	RequestID    int32
	WriteConcern WriteConcern

	LSID          string // hex of the session's UUID
	TxnNumber     int64
	HasTxnNumber  bool
	InTransaction bool // autocommit: false
	Exhaust       bool // the reply came in several messages (moreToCome)
	// Monitor marks hello and its like, which make no spans.
	Monitor bool

	N, NModified  int64 // -1: not in the reply
	WriteErrors   int
	WriteErrCode  int32 // of the first write error
	ConcernError  int32 // writeConcernError.code; 0 none
	OpTime        OpTime
	OperationTime OpTime
}

// WriteConcern is MongoDB's, as the request or the transaction states it.
type WriteConcern struct {
	// Raw is the BSON document as sent, at most 1 KiB; empty if none was sent.
	Raw []byte
	// W is "majority", a number in decimal, a mode's name, "{...}" for an object
	// of tags, or "" if the document has none.
	W string
	// Tags is that object: members with so many values of each tag are waited for.
	// It's never changed.
	Tags map[string]int
	// J is "true", "false", or "" if not stated.
	J string
	// WTimeout is zero if not stated.
	WTimeout time.Duration
	// Source is "command", "transaction", "assumed" if none was stated, or
	// UnknownConcern. A tracer that knows the set's default makes AssumedConcern a
	// DefaultConcern.
	Source string
}

// Sources of a write concern that the request doesn't state: the server's default,
// whatever it is, and one that the server itself was asked for.
const (
	AssumedConcern = "assumed"
	DefaultConcern = "default"
)

// UnknownConcern is the Source of a write whose command could not be read to
// its end (compressed and too large, or malformed): it may have stated one.
const UnknownConcern = "unknown"

// Label is the write concern in one word or two, for tables and metrics:
// "majority", "w:1", "w:1 j", "w:tag", "default", "unknown".
func (w WriteConcern) Label() string {
	s := w.W
	switch {
	case w.Source == UnknownConcern:
		return UnknownConcern
	case s == "" && w.J == "":
		return "default"
	case s == "":
		s = "w:default"
	case s == "majority":
	default:
		if _, err := strconv.Atoi(s); err != nil {
			s = "tag"
		}
		s = "w:" + s
	}
	if w.J == "true" {
		s += " j"
	}
	return s
}

// PostgresFields are what only PostgreSQL exchanges have.
type PostgresFields struct {
	Tag     string // the command tag as sent: "INSERT 0 1"
	Keyword string // first keyword of the statement, upper case: "INSERT"
	// Summary is "{operation} {target}" if the tokenizer found a target.
	Summary string
	// Parameterised: the text came with parameters, so it holds no literals of
	// theirs and may be collected as it is.
	Parameterised bool
	// TxStatus is ReadyForQuery's byte after this exchange: I, T, E or 0.
	TxStatus byte
	// SynchronousCommit is the level believed to be in force at the commit, ""
	// if unknown; Source is "default", "startup", "set", "set_local", "unknown".
	SynchronousCommit string
	SyncSource        string
	// Shared is the number of writes that one Sync or Query committed together.
	Shared int
	// InBlock: the statement ran inside an explicit transaction block, so it
	// didn't wait for its commit.
	InBlock bool
	// NotReplicated: a warning said that the wait for the standbys was
	// cancelled (01000) or ended by termination (57P01): committed here only.
	NotReplicated bool
	// RolledBack: the statement's own reply was no error, but what it wrote is
	// undone: a later statement that one Sync or Query was to commit it with
	// failed, or the commit itself did.
	RolledBack bool
	// Unconfirmed: the statement's own reply came, but the connection ended
	// before the ReadyForQuery that says it was committed.
	Unconfirmed bool
}

// HexLSID renders a session id as drivers print it in traces: lower-case hex.
func HexLSID(uuid []byte) string { return hex.EncodeToString(uuid) }
