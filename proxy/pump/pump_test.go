package pump

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

const ms = wire.Stamp(time.Millisecond)

// lineSession is a protocol for tests: a message is a line; each line to the
// server opens an exchange, each line to the client answers the oldest.
type lineSession struct {
	open    *wire.Open
	waiting []*wire.Exchange
	cur     [2]*wire.Exchange
	off     [2]int64
	decoded [2]bytes.Buffer
}

func newLineSession() *lineSession { return &lineSession{open: wire.NewOpen("line")} }

func (s *lineSession) Frame(dir wire.Direction, b []byte, now wire.Stamp, ps []wire.Piece) []wire.Piece {
	for len(b) > 0 {
		n, last := len(b), false
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			n, last = i+1, true
		}
		first := s.cur[dir] == nil
		if first && dir == wire.ToServer {
			s.cur[dir] = s.open.New()
			s.open.Hold(s.cur[dir])
			s.waiting = append(s.waiting, s.cur[dir])
		} else if first {
			s.cur[dir], s.waiting = s.waiting[0], s.waiting[1:]
			s.open.Hold(s.cur[dir])
		}
		x := s.cur[dir]
		s.open.Count(x, dir, n, now)
		s.off[dir] += int64(n)
		if last {
			s.open.Mark(x, dir, s.off[dir])
			s.cur[dir] = nil
			if dir == wire.ToClient {
				s.open.Complete(x)
			}
		}
		ps = append(ps, wire.Piece{Len: n, Exchange: x, First: first, Last: last, Draw: first, Urgent: b[0] == '!'})
		b = b[n:]
	}
	return ps
}

func (s *lineSession) Decode(dir wire.Direction, b []byte, ps []wire.Piece) {
	s.decoded[dir].Write(b)
	for _, p := range ps {
		if p.Last {
			s.open.Release(p.Exchange)
		}
	}
}

func (s *lineSession) Open() *wire.Open { return s.open }
func (s *lineSession) Opaque() error    { return nil }
func (s *lineSession) Quiet() bool      { return len(s.waiting) == 0 && s.cur[0] == nil && s.cur[1] == nil }
func (s *lineSession) End()             {}

func newConn(s wire.Session, budget wire.Budget) *Conn {
	return New(Config{Session: s, Budget: budget, Sources: [2]*inject.Source{
		inject.NewSource(1, "t", 1, wire.ToServer), inject.NewSource(1, "t", 1, wire.ToClient)}})
}

// read is what a driver does with the outcome of a read, with a socket that
// takes `takes` bytes at once.
func read(c *Conn, dir wire.Direction, b string, now wire.Stamp, set *inject.Settings, takes int) string {
	buf := []byte(b)
	r := c.Read(dir, buf, now, set)
	n := min(takes, r.Direct)
	if r.Direct > 0 {
		c.Sent(dir, buf[:r.Direct], n, now)
	}
	c.Decode(dir, buf)
	return b[:n]
}

func write(c *Conn, dir wire.Direction, now wire.Stamp) string {
	b := bytes.Join(c.Due(dir, now, 1<<30, nil), nil)
	if len(b) > 0 {
		c.Wrote(dir, len(b), now)
	}
	return string(b)
}

func TestConn_DelaysExactlyAndStampsBothWays(t *testing.T) {
	var done []*wire.Exchange
	s := newLineSession()
	s.open.Emit = func(x *wire.Exchange) bool { done = append(done, x); return true }
	c := newConn(s, nil)
	set := inject.Symmetric(80*time.Millisecond, 0)

	if got := read(c, wire.ToServer, "write\n", 10*ms, &set, 99); got != "" {
		t.Fatalf("written at once: %q", got)
	}
	if c.Next(wire.ToServer) != 50*ms {
		t.Fatalf("due at %d", c.Next(wire.ToServer))
	}
	if got := write(c, wire.ToServer, 50*ms-1); got != "" {
		t.Fatalf("written early: %q", got)
	}
	if got := write(c, wire.ToServer, 50*ms+5); got != "write\n" {
		t.Fatalf("at its due time: %q", got)
	}
	read(c, wire.ToClient, "o", 53*ms, &set, 99)
	read(c, wire.ToClient, "k\n", 54*ms, &set, 99)
	write(c, wire.ToClient, 93*ms)
	if len(done) != 0 {
		t.Fatal("finished before its last byte left")
	}
	write(c, wire.ToClient, 94*ms)
	if len(done) != 1 {
		t.Fatal("not finished")
	}
	q, r := done[0].Sides[wire.ToServer], done[0].Sides[wire.ToClient]
	if q.FirstIn != 10*ms || q.LastIn != 10*ms || q.LastOut != 50*ms+5 || q.Planned != 40*time.Millisecond || q.Bytes != 6 {
		t.Errorf("request %+v", q)
	}
	if r.FirstIn != 53*ms || r.LastIn != 54*ms || r.LastOut != 94*ms || r.Planned != 40*time.Millisecond || r.Bytes != 3 {
		t.Errorf("reply %+v", r)
	}
}

func TestConn_NothingDelayedIsWrittenAtOnce(t *testing.T) {
	c := newConn(newLineSession(), nil)
	set := inject.Settings{}
	if got := read(c, wire.ToServer, "a\nb\nc", 1, &set, 99); got != "a\nb\nc" {
		t.Fatalf("direct: %q", got)
	}
	if c.Next(wire.ToServer) != 0 {
		t.Fatal("nothing waits")
	}
}

func TestConn_WhatTheSocketRefusesGoesFirst(t *testing.T) {
	c := newConn(newLineSession(), nil)
	set := inject.Settings{}
	if got := read(c, wire.ToServer, "abcdef\n", 1, &set, 2); got != "ab" {
		t.Fatal(got)
	}
	if got := read(c, wire.ToServer, "gh\n", 2, &set, 99); got != "" {
		t.Fatalf("overtook: %q", got)
	}
	if got := write(c, wire.ToServer, 2); got != "cdef\ngh\n" {
		t.Fatalf("%q", got)
	}
}

func TestConn_LineWaitsForTheDirectBytesOfTheSameRead(t *testing.T) {
	c := newConn(newLineSession(), nil)
	none, slow := inject.Settings{}, inject.Symmetric(10*time.Millisecond, 0)
	_ = read(c, wire.ToServer, "a\n", 1, &none, 99)
	b := []byte("b\nc\n")
	if r := c.Read(wire.ToServer, b, 5, &none); r.Direct != 4 {
		t.Fatalf("%+v", r)
	}
	if c.Next(wire.ToServer) != 0 || len(c.Due(wire.ToServer, 99, 99, nil)) != 0 {
		t.Fatal("the line must hold while a direct write is under way")
	}
	c.Sent(wire.ToServer, b, 1, 6)
	c.Decode(wire.ToServer, b)
	read(c, wire.ToServer, "d\n", 7, &slow, 99)
	if got := write(c, wire.ToServer, 99*ms); got != "\nc\nd\n" {
		t.Fatalf("%q", got)
	}
}

func TestConn_ConnectCostHoldsTheFirstBytesOnly(t *testing.T) {
	set := inject.Symmetric(80*time.Millisecond, 0)
	c := New(Config{Session: newLineSession(), NotBefore: [2]wire.Stamp{120 * ms, 160 * ms},
		Sources: [2]*inject.Source{inject.NewSource(1, "t", 1, 0), inject.NewSource(1, "t", 1, 1)}})
	read(c, wire.ToServer, "a\n", 2*ms, &set, 99)
	if c.Next(wire.ToServer) != 120*ms {
		t.Fatalf("first bytes due at %v", c.Next(wire.ToServer))
	}
	write(c, wire.ToServer, 120*ms)
	read(c, wire.ToServer, "b\n", 200*ms, &set, 99)
	if c.Next(wire.ToServer) != 240*ms {
		t.Fatalf("later bytes due at %v", c.Next(wire.ToServer))
	}
}

func TestConn_UrgentBytesPayNothing(t *testing.T) {
	set := inject.Symmetric(80*time.Millisecond, 0)
	c := New(Config{Session: newLineSession(), NotBefore: [2]wire.Stamp{120 * ms, 160 * ms},
		Sources: [2]*inject.Source{inject.NewSource(1, "t", 1, 0), inject.NewSource(1, "t", 1, 1)}})
	if got := read(c, wire.ToServer, "!cancel\n", 2*ms, &set, 99); got != "!cancel\n" {
		t.Fatalf("%q", got)
	}
	c.ReadEnd(wire.ToClient, inject.EndEOF, 3*ms, &set)
	if c.Ended(wire.ToClient, 3*ms) != inject.EndEOF {
		t.Fatal("the answer to a cancel request is its end, and not delayed either")
	}
}

func TestConn_EndComesLastAndOnce(t *testing.T) {
	set := inject.Symmetric(10*time.Millisecond, 0)
	c := newConn(newLineSession(), nil)
	read(c, wire.ToServer, "a\n", 1*ms, &set, 99)
	c.ReadEnd(wire.ToServer, inject.EndEOF, 2*ms, &set)
	c.ReadEnd(wire.ToServer, inject.EndReset, 2*ms, &set)
	if c.Ended(wire.ToServer, 7*ms) != inject.EndNone {
		t.Fatal("bytes before it have not left")
	}
	write(c, wire.ToServer, 7*ms)
	if c.Ended(wire.ToServer, 6*ms) != inject.EndNone || c.Ended(wire.ToServer, 7*ms) != inject.EndEOF {
		t.Fatal("end not at its time")
	}
	if c.Ended(wire.ToServer, 8*ms) != inject.EndNone || c.Next(wire.ToServer) != 0 {
		t.Fatal("end told twice")
	}
}

func TestConn_NewSettingsNeverReorder(t *testing.T) {
	c := newConn(newLineSession(), nil)
	slow, fast := inject.Symmetric(100*time.Millisecond, 0), inject.Settings{}
	read(c, wire.ToServer, "a\n", 1*ms, &slow, 99)
	if got := read(c, wire.ToServer, "b\n", 2*ms, &fast, 99); got != "" {
		t.Fatalf("overtook: %q", got)
	}
	if got := write(c, wire.ToServer, 51*ms); got != "a\nb\n" {
		t.Fatalf("%q", got)
	}
	if got := read(c, wire.ToServer, "c\n", 60*ms, &fast, 99); got != "c\n" {
		t.Fatalf("the new delay: %q", got)
	}
	read(c, wire.ToServer, "half", 70*ms, &fast, 99)
	read(c, wire.ToServer, "\n", 71*ms, &slow, 99)
	if c.Next(wire.ToServer) != 121*ms {
		t.Fatalf("a change must be felt within an exchange: %v", c.Next(wire.ToServer))
	}
}

type budget struct{ left int }

func (b *budget) Take(n int) bool {
	if n > b.left {
		return false
	}
	b.left -= n
	return true
}
func (b *budget) Give(n int) { b.left += n }

func TestConn_StopsReadingWhenFullAndSaysHowLong(t *testing.T) {
	var done *wire.Exchange
	s := newLineSession()
	s.open.Emit = func(x *wire.Exchange) bool { done = x; return true }
	bud := &budget{left: 2 * grain}
	c := newConn(s, bud)
	set := inject.Symmetric(20*time.Millisecond, 0)
	read(c, wire.ToServer, "q\n", 1*ms, &set, 99)
	write(c, wire.ToServer, 11*ms)

	buf := make([]byte, 64<<10)
	var in int
	for !c.Paused(wire.ToClient) {
		b := bytes.Clone(buf)
		r := c.Read(wire.ToClient, b, 12*ms, &set)
		c.Decode(wire.ToClient, b)
		if in += len(b); in > 4<<20 || !r.Kept {
			t.Fatalf("%d bytes in and not full (kept %v)", in, r.Kept)
		}
	}
	if want := Assured + 2*grain; in != want || bud.left != 0 {
		t.Fatalf("full at %d, want %d; budget left %d", in, want, bud.left)
	}
	vec := c.Due(wire.ToClient, 22*ms, 64<<10, nil)
	if resume := c.Wrote(wire.ToClient, len(vec[0]), 22*ms); !resume {
		t.Fatal("there is room again")
	}
	c.Resume(wire.ToClient, 22*ms)
	read(c, wire.ToClient, "\n", 23*ms, &set, 99)
	write(c, wire.ToClient, 99*ms)
	if done == nil || done.Sides[wire.ToClient].Stalled != 10*time.Millisecond {
		t.Fatalf("stalled %v, want 10ms", done.Sides[wire.ToClient].Stalled)
	}
	if c.Close(); bud.left != 2*grain {
		t.Fatalf("budget not given back: %d", bud.left)
	}
}

// A peer that reads nothing must not make the line swallow what the other one
// sends, whatever the budget allows.
func TestConn_StopsReadingWhenThePeerDoes(t *testing.T) {
	for _, set := range []inject.Settings{{}, inject.Symmetric(20*time.Millisecond, 0)} {
		c := newConn(newLineSession(), nil)
		now, in := 1*ms, 0
		for !c.Paused(wire.ToServer) {
			b := make([]byte, 64<<10)
			b[len(b)-1] = '\n'
			if r := c.Read(wire.ToServer, b, now, &set); r.Direct > 0 {
				c.Sent(wire.ToServer, b[:r.Direct], 0, now)
			}
			c.Decode(wire.ToServer, b)
			now += ms / 4 // 256 MB a second: 2.5 MiB are on their way
			if in += len(b); in > 8<<20 {
				t.Fatalf("%v: %d bytes in and still reading", set.RTT(), in)
			}
		}
		onTheirWay := int(set.RTT()/2/time.Millisecond) * 4 * (64 << 10)
		if want := backlog + onTheirWay; in != want {
			t.Errorf("%v: stopped at %d bytes, want %d", set.RTT(), in, want)
		}
		if !c.Wrote(wire.ToServer, onTheirWay+64<<10, now) {
			t.Errorf("%v: there is room again", set.RTT())
		}
		if ok, _ := c.Resume(wire.ToServer, now); !ok {
			t.Errorf("%v: reading does not go on", set.RTT())
		}
	}
}

func TestConn_DeadSocketSwallowsAndLosesNothingOfTheOtherWay(t *testing.T) {
	c := newConn(newLineSession(), nil)
	set := inject.Symmetric(20*time.Millisecond, 0)
	read(c, wire.ToServer, "a\nb\n", 1*ms, &set, 99)
	if lost := c.Fail(wire.ToServer); lost != 4 {
		t.Fatalf("lost %d", lost)
	}
	if got := read(c, wire.ToServer, "c\n", 2*ms, &set, 99); got != "" || c.Next(wire.ToServer) != 0 {
		t.Fatal("a dead direction must take bytes and drop them")
	}
	read(c, wire.ToClient, "ok\n", 3*ms, &set, 99)
	if got := write(c, wire.ToClient, 13*ms); got != "ok\n" {
		t.Fatalf("%q", got)
	}
}

// Any cut of the stream, any partial write, any jitter: the same bytes in the
// same order, none before its time, and the exchanges keep their stamps in
// order.
func TestConn_AnyTrafficAnyCuts(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		var in bytes.Buffer
		for i := range 60 {
			fmt.Fprintf(&in, "%d%s\n", i, bytes.Repeat([]byte("x"), rnd.IntN(2000)))
		}
		s := newLineSession()
		var n int
		s.open.Emit = func(x *wire.Exchange) bool {
			n++
			q, r := x.Sides[0], x.Sides[1]
			if x.Ordinal != uint64(n) || q.FirstIn > q.LastIn || q.LastIn > q.LastOut || q.LastOut > r.LastIn || r.LastIn > r.LastOut {
				t.Fatalf("seed %d: exchange %d %+v", seed, x.Ordinal, x.Sides)
			}
			return false
		}
		c := newConn(s, nil)
		set := inject.Settings{Delay: [2]inject.Delay{{Base: 3e6, Jitter: 3e6}, {Base: 2e6, Jitter: 2e6}}}
		rest, echo := bytes.Clone(in.Bytes()), []byte(nil)
		var atServer, atClient bytes.Buffer
		for now := 1 * ms; atClient.Len() < in.Len(); now += ms / 4 {
			if now > 10000*ms {
				t.Fatalf("seed %d: stuck", seed)
			}
			if k := rnd.IntN(3000); k < len(rest) && rnd.IntN(2) == 0 {
				atServer.WriteString(read(c, wire.ToServer, string(rest[:k]), now, &set, rnd.IntN(4000)))
				rest = rest[k:]
			} else if rnd.IntN(4) == 0 {
				atServer.WriteString(read(c, wire.ToServer, string(rest), now, &set, rnd.IntN(4000)))
				rest = nil
			}
			atServer.WriteString(write(c, wire.ToServer, now))
			if have := atServer.Bytes()[len(echo):]; len(have) > 0 {
				have = have[:rnd.IntN(len(have)+1)]
				if i := bytes.LastIndexByte(have, '\n'); i >= 0 {
					have = have[:i+1]
					echo = append(echo, have...)
					atClient.WriteString(read(c, wire.ToClient, string(have), now, &set, rnd.IntN(4000)))
				}
			}
			atClient.WriteString(write(c, wire.ToClient, now))
		}
		if !bytes.Equal(atServer.Bytes(), in.Bytes()) || !bytes.Equal(atClient.Bytes(), in.Bytes()) {
			t.Fatalf("seed %d: bytes changed", seed)
		}
		if n != 60 || !c.Quiet() {
			t.Fatalf("seed %d: %d exchanges, quiet %v", seed, n, c.Quiet())
		}
		for d := range 2 {
			if !bytes.Equal(s.decoded[d].Bytes(), in.Bytes()) {
				t.Fatalf("seed %d: decode saw other bytes", seed)
			}
		}
	}
}

func TestConn_UndelayedReadAllocatesNothing(t *testing.T) {
	c := newConn(wire.NewOpaque(), nil)
	set := inject.Settings{}
	b := make([]byte, 128)
	now := wire.Stamp(1)
	if n := testing.AllocsPerRun(100, func() {
		now++
		r := c.Read(wire.ToServer, b, now, &set)
		c.Sent(wire.ToServer, b[:r.Direct], r.Direct, now)
		c.Decode(wire.ToServer, b)
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}
