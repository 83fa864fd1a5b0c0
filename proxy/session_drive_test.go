package proxy

import (
	"bytes"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy/pump"
	"github.com/wirewait/wirewait/wire"
)

// play is a driver of a pump whose sockets, clock and turns are dice: reads of
// any size, sockets that take any part of a write, and the other direction's
// steps between any two calls.
type play struct {
	t *testing.T
	*dice
	pump *pump.Conn
	now  wire.Stamp
	set  *inject.Settings
	slow int // a socket takes something at one in so many turns
	ways [2]playWay
	got  []wire.Exchange
}

// playWay is one direction.
type playWay struct {
	dir    wire.Direction
	stage  func()  // what must follow the last call: Sent, then Decode
	chunks []chunk // not read yet
	out    []byte
	ended  bool // the pump was told
	over   bool // the pump has told
}

// poison overwrites memory that nobody may read any more.
func poison(b []byte) {
	for i := range b {
		b[i] = 0xee
	}
}

func newPlay(t *testing.T, d *dice, k *talk, session wire.Session, lines *budget) *play {
	p := &play{t: t, dice: d, now: 1, set: &inject.Settings{}, slow: []int{1, 1, 8}[d.n(3)]}
	session.Open().Emit = func(x *wire.Exchange) bool {
		p.got = append(p.got, *x)
		return false // so that records are used again
	}
	c := pump.Config{Session: session, Budget: lines, Free: poison}
	for dir := range p.ways {
		p.ways[dir] = playWay{dir: wire.Direction(dir), chunks: k.chunks[dir]}
		c.Sources[dir] = inject.NewSource(1, "play", 1, wire.Direction(dir))
		c.NotBefore[dir] = wire.Stamp(d.n(200))
	}
	p.pump = pump.New(c)
	return p
}

// run goes on until both directions have ended.
func (p *play) run() {
	for range 3_000_000 {
		w := &p.ways[p.n(2)]
		switch p.n(8) {
		case 0, 1, 2:
			p.advance(w)
		case 3, 4, 5:
			if p.one(p.slow) {
				p.write(w)
			}
		case 6:
			p.now += wire.Stamp(1 + p.n(40))
		case 7:
			if p.one(16) {
				s := inject.Symmetric(time.Duration(p.n(100)), time.Duration(p.n(20)))
				p.set = &s
			}
		}
		if p.ways[0].over && p.ways[1].over {
			return
		}
	}
	p.t.Fatalf("it hangs: %d and %d messages are not read, %d and %d bytes wait",
		len(p.ways[0].chunks), len(p.ways[1].chunks), p.pump.Live(wire.ToServer), p.pump.Live(wire.ToClient))
}

// advance makes the next call of the reading side.
func (p *play) advance(w *playWay) {
	if next := w.stage; next != nil {
		w.stage = nil
		next()
		return
	}
	if w.ended {
		return
	}
	if ok, _ := p.pump.Resume(w.dir, p.now); !ok {
		return
	}
	if len(w.chunks) == 0 {
		w.ended = true
		p.pump.ReadEnd(w.dir, inject.EndEOF, p.now, p.set)
		return
	}
	if b := p.arrived(w); len(b) > 0 {
		p.read(w, b)
	}
}

// arrived takes what the sender has said by now, up to any size, into a buffer
// that is small enough to be copied or full enough to be kept.
func (p *play) arrived(w *playWay) []byte {
	limit := 1 + p.n(1<<(1+p.n(16)))
	if p.one(3) {
		limit = bufferSize
	}
	b := make([]byte, 0, limit<<p.n(3))
	heard := len(p.ways[w.dir.Other()].out)
	for len(w.chunks) > 0 && w.chunks[0].after <= heard && len(b) < limit {
		c := &w.chunks[0]
		n := min(len(c.b), limit-len(b))
		b = append(b, c.b[:n]...)
		if c.b = c.b[n:]; len(c.b) == 0 {
			w.chunks = w.chunks[1:]
		}
	}
	return b
}

func (p *play) read(w *playWay, b []byte) {
	r := p.pump.Read(w.dir, b, p.now, p.set)
	decode := func() {
		p.pump.Decode(w.dir, b)
		if !r.Kept {
			poison(b[:cap(b)])
		}
	}
	w.stage = decode
	if r.Direct == 0 {
		return
	}
	at, n := p.now, p.part(r.Direct)
	w.out = append(w.out, b[:n]...)
	w.stage = func() {
		p.pump.Sent(w.dir, b[:r.Direct], n, at)
		w.stage = decode
	}
}

// part is how many of n bytes a socket takes: often all.
func (p *play) part(n int) int {
	if p.one(2) {
		return n
	}
	return p.n(n + 1)
}

// write makes one write of what is due, or tells the end.
func (p *play) write(w *playWay) {
	p.now++
	vec := p.pump.Due(w.dir, p.now, 1+p.n(1<<(1+p.n(18))), nil)
	if len(vec) == 0 {
		w.over = w.over || p.pump.Ended(w.dir, p.now) != inject.EndNone
		return
	}
	b := bytes.Join(vec, nil)
	n := p.part(len(b))
	w.out = append(w.out, b[:n]...)
	p.pump.Wrote(w.dir, n, p.now)
}
