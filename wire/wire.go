// Package wire turns the bytes of one client connection into messages and
// exchanges, and does nothing else: no I/O, no clock, no goroutine, no lock.
// Whoever reads the sockets tells it the bytes and the time.
//
//	        read                 forward                after the bytes left
//	socket ------> Session.Frame --------> socket ... ------> Session.Decode
//	                  |                                             |
//	                  v  pieces: where messages begin and end       v  what they say
//	               +--------------------- Open -----------------------+
//	               | exchanges that are not finished yet, by ordinal  |
//	               +--------------------------+-----------------------+
//	                                          v  Emit
//	                                       *Exchange
//
// # Words
//
//   - message: a unit of the protocol (an OP_MSG, a PostgreSQL message).
//   - piece: a stretch of the bytes of one read that belongs to one message.
//   - exchange: a request and its reply (or replies, or none). In PostgreSQL
//     there is one exchange per statement result.
//   - side: one direction of an exchange, with its stamps.
//   - session: the protocol state of one connection, both directions.
//
// # Frame before, decode after
//
// Frame reads lengths and types only. It runs before the bytes are forwarded,
// so that a reply can never be seen before its request. Decode reads contents.
// It runs after the bytes are on their way, so that looking costs no latency.
// Both directions share a session; the caller serialises all calls.
package wire

import (
	"errors"
	"time"
)

// Direction is the way that bytes flow.
type Direction uint8

// The two directions of a connection.
const (
	ToServer Direction = iota
	ToClient
)

// Other is the opposite direction.
func (d Direction) Other() Direction { return 1 - d }

// String is "to_server" or "to_client", as in configuration and on spans.
func (d Direction) String() string {
	if d == ToServer {
		return "to_server"
	}
	return "to_client"
}

// Protocol names what a connection speaks.
type Protocol string

// The protocols that wirewait knows. TCP is anything: bytes without messages.
const (
	MongoDB  Protocol = "mongodb"
	Postgres Protocol = "postgres"
	TCP      Protocol = "tcp"
)

// Stamp is a moment: nanoseconds on the monotonic clock of whoever drives the
// session, counted from a start of its choosing. Zero means never.
type Stamp int64

// Sub is the time from u to s; zero if either never happened.
func (s Stamp) Sub(u Stamp) time.Duration {
	if s == 0 || u == 0 {
		return 0
	}
	return time.Duration(s - u)
}

// Add moves a stamp by d.
func (s Stamp) Add(d time.Duration) Stamp { return s + Stamp(d) }

var (
	// ErrMalformed is wrapped by the error with which a session gives up
	// framing. The bytes of the connection keep flowing.
	ErrMalformed = errors.New("malformed")
	// ErrEncrypted is wrapped when a session sees encryption begin that it is
	// not the one to undo.
	ErrEncrypted = errors.New("encrypted")
)

// Piece is a stretch of the bytes given to Frame: a whole message, or the part
// of one that these bytes hold. Pieces lie end to end and cover the bytes.
type Piece struct {
	// Len is the number of bytes, at least 1.
	Len int
	// Kind is the protocol's own: an opcode, or a type byte.
	Kind int32
	// Exchange is the one that these bytes belong to; nil if to none (yet).
	Exchange *Exchange
	// First and Last say whether the message begins and ends in this piece.
	First, Last bool
	// Draw asks for a new draw of the jitter: it is set once per exchange and
	// direction, and per message on replication streams.
	Draw bool
	// Urgent bytes take neither delay nor connect cost (a CancelRequest).
	Urgent bool
	// Remove: the message answers what Inspector.Refuse put in. The client must
	// not see it.
	Remove bool
	// Opaque bytes are outside any message: malformed, encrypted, or unknown.
	// The drawing of jitter is then left to the caller (per read).
	Opaque bool
}

// Session follows one connection. It never fails: a session that cannot go on
// is opaque for ever, in both directions, and says why by Opaque. It is not
// safe for concurrent use.
type Session interface {
	// Frame walks b, the next bytes read in direction dir at time now, before
	// they are forwarded, and appends the pieces that tile it. It may be given
	// any cut of the stream; the outcome doesn't depend on the cuts. It keeps
	// no reference to b.
	Frame(dir Direction, b []byte, now Stamp, pieces []Piece) []Piece
	// Decode reads what the bytes say, after they are on their way. It must be
	// given the same bytes and pieces, in the same order, as Frame was, once
	// for every Frame of that direction; the two directions may interleave in
	// any way. It keeps no reference to b or pieces.
	Decode(dir Direction, b []byte, pieces []Piece)
	// Open is the session's table of unfinished exchanges.
	Open() *Open
	// Opaque is nil while messages are read, and else wraps ErrMalformed or
	// ErrEncrypted. Once set it stays.
	Opaque() error
	// Quiet reports that both directions stand between messages and no reply
	// is awaited: a good moment to stop.
	Quiet() bool
	// End says that the connection is over: what waits is finished unanswered.
	End()
}

// Budget bounds what many connections use together. It is safe for concurrent
// use. A nil Budget allows everything.
type Budget interface {
	// Take reports whether n more bytes may be used, and counts them if so.
	Take(n int) bool
	// Give returns what Take allowed.
	Give(n int)
}

// TextMode says what becomes of statement text.
type TextMode uint8

// TextNone keeps none, TextSanitised replaces literals by placeholders (text
// that came with parameters is kept as it is), TextRaw keeps what was sent.
const (
	TextNone TextMode = iota
	TextSanitised
	TextRaw
)

// Options are what a session is told at its start. The zero value is usable.
type Options struct {
	// Text says whether PostgreSQL statements (their first 64 KiB) are kept in
	// Exchange.Statement. Off by default: literals are data.
	Text TextMode
	// Inflate bounds the memory for decompression over all sessions.
	Inflate Budget
	// Trouble is called for each message that could not be decoded, with a
	// short constant reason ("bson", "compressed_bomb", ...); nil: nobody
	// counts. It must not call back into the session.
	Trouble func(reason string)
	// ChannelBinding is called when a PostgreSQL server offers SCRAM that is
	// bound to its TLS channel (SCRAM-SHA-256-PLUS); nil: nobody asks. It must
	// not call back into the session.
	ChannelBinding func()
	// Member is called when a MongoDB client says which member of its set it is:
	// host and port, from its first message ("host_info") or from a heartbeat
	// ("heartbeat"); nil: nobody asks. It must not call back into the session.
	Member func(name, basis string)
	// Rename gives the address that clients are to dial for a member of a MongoDB
	// set, by the name that hello replies have for it; the name itself if there
	// is none. Nil: hello replies pass as they are. It must not call back into
	// the session.
	Rename func(member string) string
	// ReplicaSet is called with the set's name when a hello reply has one for the
	// first time; nil: nobody asks. It must not call back into the session.
	ReplicaSet func(name string)
	// Ledger holds each PostgreSQL exchange back until the next one has begun, so
	// that what comes between (a driver that prepares, a bare Sync) is counted
	// to it: for captures, where nobody waits.
	Ledger bool
	// MaxOpen bounds the MongoDB requests that wait for a reply; 0 means
	// 65,536. A session that exceeds it becomes opaque.
	MaxOpen int
	// MaxMemory bounds, in bytes, what a PostgreSQL session remembers of
	// statements that are not finished; 0 means 256 MiB, which is enough for
	// 150,000 in one pipeline. A session that exceeds it becomes opaque.
	MaxMemory int
}
