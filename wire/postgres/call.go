package postgres

import "github.com/wirewait/wirewait/wire"

// kind is what a call is made by.
type kind uint8

const (
	kindPrepare  kind = iota // Parse, Bind, Describe, Close; no Execute (yet)
	kindExecute              // ... with one
	kindQuery                // a simple Query, one call per result
	kindFunction             // FunctionCall
	kindStartup              // StartupMessage up to ReadyForQuery
	kindCancel               // CancelRequest
	kindLone                 // a result without a request: mid-stream, or a FATAL while idle
	kindSync                 // an error that Sync brought: the commit failed
)

// call is an exchange in the making and what the session must remember of it.
type call struct {
	x    *wire.Exchange
	kind kind
	// result is the type of the message that ended it: C, I, s, E, V, or Z for
	// a start-up; 0 while there is none.
	result byte
	// finished: on its way to be settled.
	finished bool
	// refused: the server was given something else to run, which fails.
	refused bool
	// skipped: the server threw it away after an error.
	skipped bool
	// cut: the capture or the connection ended within its first message.
	cut bool
	// further: the second or a later result of its Query.
	further bool
	// grouped: a write that the end of its round commits; late: it ends with
	// the round's Sync and ReadyForQuery.
	grouped, late bool
	tail          *wire.Tail // that end, once it's settled
	// copyIn, copyBoth: its reply began so.
	copyIn, copyBoth bool
	// expected is how many of its Parse, Bind, Describe and Close await an
	// answer; parsed and bound count those that succeeded.
	expected, parsed, bound int
	// copied is the COPY data sent: whose it is depends on copyBoth.
	copied int64
	// reqEnd and repEnd are where its bytes end in the two streams; what was
	// decoded before them and not used by an earlier call is its own.
	reqEnd, repEnd int64
}

// extended reports whether it's of the extended query protocol.
func (c *call) extended() bool { return c.kind == kindPrepare || c.kind == kindExecute }

// item is a step of settling: a call, or, without one, the end of a round.
type item struct {
	c              *call
	tail           *wire.Tail // of the Sync that ended the round
	reqEnd, repEnd int64
	// looseSync, looseReady: the Sync and the ReadyForQuery that ended the
	// round are counted to no exchange.
	looseSync, looseReady bool
}

func (s *session) newCall(k kind) *call {
	var c *call
	if n := len(s.freed); n > 0 {
		c = s.freed[n-1]
		s.freed = s.freed[:n-1]
		*c = call{}
	} else {
		c = &call{}
	}
	c.x, c.kind = s.open.New(), k
	return c
}

// keepCalls is how many calls without an exchange are kept for use again.
const keepCalls = 32

// free takes back a call whose exchange was completed.
func (s *session) free(c *call) {
	if len(s.freed) < keepCalls {
		*c = call{}
		s.freed = append(s.freed, c)
	}
}

// finish hands a call over to be settled. Bytes may still be counted to its
// exchange until the round ends.
func (s *session) finish(c *call) {
	c.finished = true
	if c.refused {
		c.refused = false
		s.refusing--
	}
	s.ready.Push(item{c: c})
}
