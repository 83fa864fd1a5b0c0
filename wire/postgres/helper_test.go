package postgres

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/wirewait/wirewait/wire"
)

// step is bytes that one side sends.
type step struct {
	dir wire.Direction
	b   []byte
}

// c and s are messages of the client and of the server, end to end.
func c(msgs ...[]byte) step { return step{wire.ToServer, join(msgs)} }
func s(msgs ...[]byte) step { return step{wire.ToClient, join(msgs)} }

func join(msgs [][]byte) (b []byte) {
	for _, m := range msgs {
		b = append(b, m...)
	}
	return b
}

// msg is a message of type t.
func msg(t byte, body ...byte) []byte {
	b := binary.BigEndian.AppendUint32([]byte{t}, uint32(len(body)+4))
	return append(b, body...)
}

// z is strings, each with a NUL behind it.
func z(parts ...string) (b []byte) {
	for _, p := range parts {
		b = append(append(b, p...), 0)
	}
	return b
}

func packet(code uint32, body ...byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(body)+8))
	return append(binary.BigEndian.AppendUint32(b, code), body...)
}

const version30 = 3 << 16

func startupPacket(version uint32, pairs ...string) []byte {
	return packet(version, append(z(pairs...), 0)...)
}

func query(sql string) []byte           { return msg('Q', z(sql)...) }
func parse(name, sql string) []byte     { return msg('P', append(z(name, sql), 0, 0)...) }
func bind(portal, name string) []byte   { return msg('B', append(z(portal, name), 0, 0, 0, 0, 0, 0)...) }
func describe(what, name string) []byte { return msg('D', append([]byte(what), z(name)...)...) }
func closeMsg(what, name string) []byte { return msg('C', append([]byte(what), z(name)...)...) }
func execute(portal string) []byte      { return msg('E', append(z(portal), 0, 0, 0, 0)...) }
func sync() []byte                      { return msg('S') }
func flush() []byte                     { return msg('H') }
func tag(t string) []byte               { return msg('C', z(t)...) }
func ready(status byte) []byte          { return msg('Z', status) }
func parameter(name, v string) []byte   { return msg('S', z(name, v)...) }
func datum() []byte                     { return msg('D', 0, 1, 0, 0, 0, 1, '7') }
func columns() []byte {
	return msg('T', append(append([]byte{0, 1}, z("a")...), make([]byte, 18)...)...)
}
func authOK() []byte             { return msg('R', 0, 0, 0, 0) }
func keyData(pid byte) []byte    { return msg('K', 0, 0, 0, pid, 1, 2, 3, 4) }
func pbe(sql string) []byte      { return join([][]byte{parse("", sql), bind("", ""), execute("")}) }
func parsedBound() []byte        { return join([][]byte{msg('1'), msg('2')}) }
func refused(code string) []byte { return EncodeError("ERROR", code, "no") }
func fatal(code string) []byte   { return EncodeError("FATAL", code, "no") }
func notice(v, code, routine string) []byte {
	return msg('N', append(z("S"+v, "V"+v, "C"+code, "Mtext", "R"+routine), 0)...)
}

// hello is a start-up without a password.
func hello(pairs ...string) []step {
	if len(pairs) == 0 {
		pairs = []string{"user", "ann", "database", "shop"}
	}
	return []step{
		c(startupPacket(version30, pairs...)),
		s(authOK(), parameter("standard_conforming_strings", "on"), keyData(77), ready('I')),
	}
}

// player gives a session the bytes of steps and collects what comes out.
type player struct {
	t      testing.TB
	s      wire.Session
	got    []*wire.Exchange
	first  []wire.Exchange // as they were when emitted
	off    [2]int64
	counts [2]map[int32]int // whole messages by kind
	pieces [2][]wire.Piece
	text   []string // reasons of trouble
	now    wire.Stamp
}

func newPlayer(t testing.TB, o wire.Options) *player {
	p := &player{t: t, counts: [2]map[int32]int{{}, {}}}
	if o.Trouble == nil {
		o.Trouble = func(reason string) { p.text = append(p.text, reason) }
	}
	p.s = New(o)
	p.s.Open().Emit = func(x *wire.Exchange) bool {
		p.got = append(p.got, x)
		p.first = append(p.first, *x)
		return true
	}
	return p
}

// frame is the first half of a read: pieces that tile b.
func (p *player) frame(dir wire.Direction, b []byte) []wire.Piece {
	p.t.Helper()
	pieces := p.s.Frame(dir, b, p.now, nil)
	n := 0
	for _, pc := range pieces {
		if pc.Len < 1 {
			p.t.Fatalf("a piece of %d bytes", pc.Len)
		}
		n += pc.Len
		if pc.Last {
			p.counts[dir][pc.Kind]++
		}
	}
	if n != len(b) {
		p.t.Fatalf("pieces of %d bytes for %d", n, len(b))
	}
	p.pieces[dir] = append(p.pieces[dir], pieces...)
	p.off[dir] += int64(len(b))
	p.s.Open().Departed(dir, p.off[dir], p.now+1)
	return pieces
}

// unchanged wants that nothing was added to an exchange after it was emitted.
func (p *player) unchanged() {
	p.t.Helper()
	for i := range p.first {
		if a, b := full(&p.first[i]), full(p.got[i]); a != b || p.first[i].Sides != p.got[i].Sides {
			p.t.Errorf("emitted as\n%s %+v\nand then\n%s %+v", a, p.first[i].Sides, b, p.got[i].Sides)
		}
	}
}

func (p *player) read(dir wire.Direction, b []byte) {
	p.t.Helper()
	p.s.Decode(dir, b, p.frame(dir, b))
}

// play gives each step whole, at the times 100, 200, ...
func (p *player) play(steps ...step) *player {
	p.t.Helper()
	for _, st := range steps {
		p.now += 100
		p.read(st.dir, st.b)
	}
	return p
}

// run plays a whole connection and returns its exchanges.
func run(t testing.TB, steps ...step) []*wire.Exchange {
	t.Helper()
	return runWith(t, wire.Options{Text: wire.TextRaw}, steps...)
}

func runWith(t testing.TB, o wire.Options, steps ...step) []*wire.Exchange {
	t.Helper()
	p := newPlayer(t, o).play(steps...)
	if err := p.s.Opaque(); err != nil {
		t.Fatalf("opaque: %v", err)
	}
	p.s.End()
	if n := p.s.Open().Len(); n != 0 {
		t.Fatalf("%d exchanges were never emitted", n)
	}
	return p.got
}

// brief is an exchange in a line, for comparison: what the decode command
// prints and what spans are made of, without stamps.
func brief(x *wire.Exchange) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", orDash(x.Operation))
	switch {
	case x.NoReply:
		b.WriteString(" noreply")
	case !x.Answered:
		b.WriteString(" unanswered")
	case x.OK:
		b.WriteString(" ok")
	default:
		fmt.Fprintf(&b, " error=%s", x.ErrorCode)
	}
	p := &x.Postgres
	if x.Write {
		fmt.Fprintf(&b, " write=%s level=%s/%s", x.WriteBasis, p.SynchronousCommit, p.SyncSource)
		if p.Shared > 1 {
			fmt.Fprintf(&b, " shared=%d", p.Shared)
		}
	}
	if p.InBlock {
		b.WriteString(" inblock")
	}
	if p.NotReplicated {
		b.WriteString(" notreplicated")
	}
	if p.RolledBack {
		b.WriteString(" rolledback")
	}
	if p.Unconfirmed {
		b.WriteString(" unconfirmed")
	}
	return b.String()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func briefs(xs []*wire.Exchange) []string {
	out := make([]string, len(xs))
	for i, x := range xs {
		out[i] = brief(x)
	}
	return out
}

func wantBriefs(t testing.TB, got []*wire.Exchange, want ...string) {
	t.Helper()
	g, w := strings.Join(briefs(got), "\n"), strings.Join(want, "\n")
	if g != w {
		t.Errorf("exchanges:\n%s\nwant:\n%s", g, w)
	}
}
