// Package mongo follows one MongoDB connection: it frames every opcode, pairs
// replies with requests, and reads what commands and replies say.
//
// # A message
//
// All integers are little-endian
// (https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/).
//
//	 0       4           8            12       16
//	 | length | requestID | responseTo | opCode | body ...
//	 length counts itself: 16 to 48,000,000
//
//	OP_MSG 2013      uint32 flags | sections ... | [uint32 CRC-32C if flag bit 0]
//	    kind 0       0x00 | one BSON document: the command or the reply
//	    kind 1       0x01 | int32 size (counts itself) | name NUL | documents ...
//	    kind 3       0x03 | {otel: {traceparent: "..."}}
//	OP_COMPRESSED    int32 opcode | int32 size of the body | byte compressor | bytes
//	OP_QUERY 2004    int32 flags | namespace NUL | int32 skip | int32 return | query | [fields]
//	OP_REPLY 1       int32 flags | int64 cursor | int32 from | int32 number | documents ...
//	OP_COMMAND 2010  database NUL | command NUL | arguments | metadata | documents ...
//	OP_INSERT 2002   int32 flags | namespace NUL | documents ...
//	OP_UPDATE 2001   int32 0 | namespace NUL | int32 flags | selector | update
//	OP_DELETE 2006   int32 0 | namespace NUL | int32 flags | selector
//	OP_GET_MORE 2005 int32 0 | namespace NUL | int32 number | int64 cursor
//
// # Two walks over the same bytes
//
//	Frame:  header -> pieces, and which exchange they belong to     (frame.go)
//	            |        requests by id, replies by responseTo      (pairing.go)
//	            v  queue of framed messages, one per direction
//	Decode: body -> sections -> BSON elements -> fields             (decode.go)
//	        (compressed.go) (body.go, sections.go, legacy.go) (scanner.go)
//	        what of it matters: request.go, judge.go, reply.go
//
// Decode reads a message in place where it lies whole in the bytes at hand.
// One that straddles reads is walked as it comes: values are stepped over by
// their length, only small ones are gathered, so that a write concern behind
// 48 MB of documents is found with the memory of a small message.
package mongo

import "github.com/wirewait/wirewait/wire"

const defaultMaxOpen = 65_536

type session struct {
	open     *wire.Open
	options  wire.Options
	maxOpen  int
	err      error
	ended    bool
	framers  [2]framer
	decoders [2]decoder

	// overtaken: a compressed reply that turned out to be the last had been
	// answered by another before it was decoded. No server does that, and whose
	// the second one is depends on the cuts; fuzzing must know.
	overtaken bool

	requests table // calls by the id of their request
	exhausts table // calls by the id of their last reply, more to come
	free     *call // for use again
	freed    int

	request request
	reply   reply
	strings interned
	peer    *wire.Peer
	lsid    lastLSID
	maxWire int64 // of the server, as hello said; 0: unknown
	between bool  // the client is a member of a set, or speaks as one
	following
	inspected
}

// New is the session of a MongoDB connection, in its initial state; a stream
// that starts in the middle is read if it starts at a message boundary.
func New(o wire.Options) wire.Session {
	s := &session{open: wire.NewOpen(wire.MongoDB), options: o, maxOpen: o.MaxOpen}
	if s.maxOpen <= 0 {
		s.maxOpen = defaultMaxOpen
	}
	return s
}

// Open implements wire.Session.
func (s *session) Open() *wire.Open { return s.open }

// Opaque implements wire.Session.
func (s *session) Opaque() error { return s.err }

// Quiet implements wire.Session. A compressed reply counts as awaited on until
// Decode has read whether more will follow. A stream of hello replies is none:
// drivers watch a server with it for as long as they live, and nothing is lost
// with the next (https://github.com/mongodb/specifications, Server Monitoring,
// streaming protocol).
func (s *session) Quiet() bool {
	if s.closed() {
		return true
	}
	for dir := range s.framers {
		if s.framers[dir].left > 0 || s.framers[dir].have > 0 {
			return false
		}
	}
	return s.requests.n == 0 && s.exhausts.monitorsOnly()
}

// End implements wire.Session. What was framed and not yet given to Decode is
// not decoded any more.
func (s *session) End() {
	if s.ended {
		return
	}
	s.ended = true
	s.finishAll()
	for dir := range s.decoders {
		s.abandon(wire.Direction(dir))
	}
}

// closed reports whether framing is over.
func (s *session) closed() bool { return s.err != nil || s.ended }

// giveUp ends framing in both directions for good.
func (s *session) giveUp(err error) {
	s.err = err
	s.finishAll()
}
