// Package pump is one direction of one connection as a state machine without
// I/O: bytes that were read and the time go in; what may be written now, when
// to look again, and whether to go on reading come out.
//
//	driver: read --> Conn.Read ----------------------------------> direct: write it now
//	                   | Session.Frame: pieces, exchanges               |
//	                   | inject.Path: due times                         |
//	                   +--> inject.Line --> Conn.Due --> write it --> Conn.Wrote: stamps
//	                                                                    |
//	                                   Conn.Decode: what it said <------+
//
// A Conn holds both directions, since they share a session and its open
// exchanges. Whoever drives it locks it once for each filled buffer and once
// for each departure, and never across I/O. Two drivers exist: goroutines over
// net.Conn, and event loops; both make the same calls.
package pump

import (
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// Config is what a Conn is made of.
type Config struct {
	Session wire.Session
	// Sources draw what is left to chance, indexed by direction.
	Sources [2]*inject.Source
	// Pipes are what bandwidth is shared in, indexed by direction; nil: nothing
	// is shared.
	Pipes [2]inject.Booker
	// Budget bounds the bytes in all lines beyond what is Assured; nil: no bound.
	Budget wire.Budget
	// Free gets back buffers that Read took over; nil leaves them to the
	// garbage collector.
	Free func([]byte)
	// NotBefore is the earliest due time of each direction's bytes: what
	// connecting costs. Zero: none.
	NotBefore [2]wire.Stamp
	// From is the end that dialled, for rules.
	From string
}

// Conn is both directions of one connection. It's not safe for concurrent use.
type Conn struct {
	session wire.Session
	budget  wire.Budget
	urgent  bool // a cancel request: no delay in either direction
	dirs    [2]pump
	ruled
}

// pump is one direction.
type pump struct {
	dir       wire.Direction
	line      inject.Line
	path      inject.Path
	notBefore wire.Stamp
	src       *inject.Source

	in       int64 // bytes read
	out      int64 // bytes written: an offset in the stream
	direct   bool  // direct bytes of the last Read are being written
	granted  int   // taken from the budget
	paused   wire.Stamp
	stalls   uint64 // pauses that ended
	stalled  time.Duration
	again    wire.Stamp // when there may be room whatever is written
	ended    bool       // the end is in the line
	finished bool       // and was told
	dead     bool       // the socket it writes to is gone: bytes are thrown away

	// Of the last Read, for Decode.
	pieces  []wire.Piece
	adopted inject.Adoption
	held    bool

	mid   bool // what was framed ends within a message
	deaf  bool // the connection is to end: what is still read is thrown away
	edits edits
	judged
	acting
}

// New makes a Conn.
func New(c Config) *Conn {
	p := &Conn{session: c.Session, budget: c.Budget, ruled: newRuled(&c)}
	for d := range p.dirs {
		p.dirs[d].src = c.Sources[d]
		p.dirs[d].dir = wire.Direction(d)
		p.dirs[d].path = inject.NewPath(wire.Direction(d), c.Sources[d], c.Pipes[d])
		p.dirs[d].notBefore = c.NotBefore[d]
		p.dirs[d].line.Free = c.Free
	}
	return p
}

// Session is the connection's session.
func (c *Conn) Session() wire.Session { return c.session }

// Sent says what became of the direct bytes b of the last Read: the socket took
// n of them, by a write that began at at. The rest goes to the front of the
// line. Until then nothing of the line is due.
func (c *Conn) Sent(dir wire.Direction, b []byte, n int, at wire.Stamp) {
	p := &c.dirs[dir]
	p.direct = false
	if n < len(b) && !p.dead {
		p.line.PushFront(at, b[n:])
	}
	c.departed(p, n, at)
}

// Decode reads what the bytes of the last Read say.
func (c *Conn) Decode(dir wire.Direction, b []byte) {
	p := &c.dirs[dir]
	c.session.Decode(dir, b, p.pieces)
	if p.held {
		p.held = false
		p.line.Done(p.adopted)
	}
}

// Due appends to vec what may be written at now, at most limit bytes. It stays
// valid until Wrote.
func (c *Conn) Due(dir wire.Direction, now wire.Stamp, limit int, vec [][]byte) [][]byte {
	if c.expire(now); c.dirs[dir].direct || c.endAt != 0 && now >= c.endAt {
		return vec
	}
	return c.dirs[dir].line.Due(now, limit, vec)
}

// Wrote says that the socket took n bytes of what Due gave, by a write that
// began at at. The stamp is taken before the write, since what the bytes cause
// can come back before the write returns. It reports whether a paused reader
// should try Resume.
func (c *Conn) Wrote(dir wire.Direction, n int, at wire.Stamp) (resume bool) {
	p := &c.dirs[dir]
	if p.dead {
		return false
	}
	p.line.Wrote(n, at)
	c.departed(p, n, at)
	return c.room(p, at) && p.paused != 0
}

func (c *Conn) departed(p *pump, n int, at wire.Stamp) {
	p.out += int64(n)
	c.session.Open().Departed(p.dir, p.edits.input(p.out), at)
}

// Resume ends a pause if there is room, and reports whether reading may go on
// and how long it stood still.
func (c *Conn) Resume(dir wire.Direction, now wire.Stamp) (ok bool, stalled time.Duration) {
	p := &c.dirs[dir]
	if p.paused == 0 {
		return true, 0
	}
	if !c.room(p, now) {
		return false, 0
	}
	stalled = time.Duration(now - p.paused)
	p.stalls++
	p.stalled += stalled
	c.session.Open().Stalled(dir, stalled)
	p.paused = 0
	return true, stalled
}

// Paused reports whether the direction waits for room in its line.
func (c *Conn) Paused(dir wire.Direction) bool { return c.dirs[dir].paused != 0 }

// LookAgain is when a paused direction should try Resume although Wrote did not
// say so: when there is a place in its pipe again. 0: only then.
func (c *Conn) LookAgain(dir wire.Direction) wire.Stamp { return c.dirs[dir].again }

// ReadEnd says that no more bytes will come in this direction: an EOF or a
// reset. It takes its place in the line.
func (c *Conn) ReadEnd(dir wire.Direction, e inject.End, now wire.Stamp, set *inject.Settings) {
	p := &c.dirs[dir]
	if p.ended {
		return
	}
	p.ended, p.paused = true, 0
	if dir == wire.ToClient { // the server has given the connection up
		c.session.Open().Over(now)
	}
	p.set = set
	p.path.Use(p.overlay(set))
	p.line.Arrived(now)
	c.letGo(p, now)
	_, due := c.due(p, &wire.Piece{Draw: true}, 0, now)
	p.line.Close(p.slowly(due), e)
}

// Ended is the direction's end, once it is due and all bytes before it left.
// It is told once.
func (c *Conn) Ended(dir wire.Direction, now wire.Stamp) inject.End {
	p := &c.dirs[dir]
	if p.direct || p.finished {
		return inject.EndNone
	}
	e := p.line.Ended(now)
	if c.endAt != 0 && now >= c.endAt {
		e = c.endHow
	}
	p.finished = e != inject.EndNone
	if p.finished {
		c.session.Open().Over(now)
	}
	return e
}

// Next is when the direction has something to write or to end; 0: never, as
// things stand.
func (c *Conn) Next(dir wire.Direction) wire.Stamp {
	p := &c.dirs[dir]
	if p.direct || p.finished {
		return 0
	}
	return sooner(sooner(p.line.Next(), c.endAt), c.wakeAt)
}

// sooner is the earlier of two moments, of which 0 is never.
func sooner(a, b wire.Stamp) wire.Stamp {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Live is the number of bytes in the direction's line.
func (c *Conn) Live(dir wire.Direction) int { return c.dirs[dir].line.Bytes() }

// Fail says that the socket which the direction writes to is gone. What waits
// is thrown away, and so is what is still read. It returns the bytes lost.
func (c *Conn) Fail(dir wire.Direction) (lost int) {
	p := &c.dirs[dir]
	lost = p.line.Drop()
	p.dead, p.paused = true, 0
	c.session.Open().Abandon(dir)
	c.giveBack(p)
	return lost
}

// Quiet reports that nothing is under way: both lines are empty, nothing is
// being written or waits to be told, both streams stand between messages and no
// reply is awaited.
func (c *Conn) Quiet() bool {
	return c.dirs[0].idle() && c.dirs[1].idle() && c.answers.Len() == 0 && c.session.Quiet()
}

func (p *pump) idle() bool {
	return p.line.Empty() && !p.direct && (!p.ended || p.finished || p.dead)
}

// Close ends everything: exchanges that wait are emitted unanswered, and what
// was taken from the budget is given back. It returns the bytes that were still
// in the lines.
func (c *Conn) Close() (lost int) {
	c.session.Open().Over(0)
	c.forget()
	c.session.End()
	for d := range c.dirs {
		lost += c.Fail(wire.Direction(d))
	}
	return lost
}
