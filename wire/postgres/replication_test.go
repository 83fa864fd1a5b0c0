package postgres

import (
	"encoding/binary"
	"testing"

	"github.com/wirewait/wirewait/wire"
)

// standbyStream is a session in the middle of a replication stream, and what it told.
type standbyStream struct {
	t    *testing.T
	s    *session
	offs [2]int64
	told []*wire.Report
	now  wire.Stamp
}

// newStream plays a standby's session up to its stream. Stamps are whole
// thousands when bytes come in, and one more when they leave.
func newStream(t *testing.T, o wire.Options) *standbyStream {
	x := &standbyStream{t: t, s: New(o).(*session)}
	x.s.open.Report = func(r *wire.Report) { x.told = append(x.told, r) }
	begin := "user\x00rep\x00replication\x00true\x00application_name\x00s1\x00\x00"
	x.pass(c(packet(3<<16, []byte(begin)...)))
	x.pass(s(authOK(), ready('I')))
	x.pass(c(query("START_REPLICATION 0/1000000 TIMELINE 1")))
	x.pass(s(msg('W', 0, 0, 0)))
	return x
}

func (x *standbyStream) pass(st step) {
	x.now += 1000
	pieces := x.s.Frame(st.dir, st.b, x.now, nil)
	x.offs[st.dir] += int64(len(st.b))
	x.s.open.Departed(st.dir, x.offs[st.dir], x.now+1)
	x.s.Decode(st.dir, st.b, pieces)
}

func (x *standbyStream) log(lsn uint64, b []byte) {
	body := binary.BigEndian.AppendUint64([]byte{'w'}, lsn)
	x.pass(s(msg('d', append(append(body, make([]byte, 16)...), b...)...)))
}

func (x *standbyStream) status(write, flush, apply uint64) {
	x.pass(c(statusMessage(write, flush, apply)))
}

func statusMessage(write, flush, apply uint64) []byte {
	body := []byte{'r'}
	for _, lsn := range []uint64{write, flush, apply, 0} {
		body = binary.BigEndian.AppendUint64(body, lsn)
	}
	return msg('d', append(body, 0)...)
}

func TestReplication_TellsWhatTheStreamSays(t *testing.T) {
	x := newStream(t, wire.Options{})
	l := &logAt{lsn: 0x1000000, magic: 0xD110}
	l.put(commitRecord(5, 0))
	l.put(walRecord(rmXact, xactAbort, 6, make([]byte, 8))) // nobody waits for it
	l.put(commitRecord(7, xinfoApply))
	x.log(l.lsn, l.b)
	x.pass(s(msg('d', append([]byte{'k'}, make([]byte, 17)...)...)))
	x.pass(c(msg('d', append([]byte{'h'}, make([]byte, 24)...)...)))
	x.status(30, 20, 10)
	x.pass(c(msg('X')))
	x.s.open.Over(99)

	kinds := []wire.ReportKind{wire.ReportJoined, wire.ReportSent, wire.ReportReached, wire.ReportLeft, wire.ReportLeft}
	if len(x.told) != len(kinds) {
		t.Fatalf("told %d reports: %+v", len(x.told), x.told)
	}
	for i, k := range kinds {
		if r := x.told[i]; r.Kind != k || r.Member != "s1" {
			t.Errorf("report %d is %+v, want kind %d of s1", i, r, k)
		}
	}
	sent := x.told[1]
	if sent.In != 5000 || sent.Out != 5001 || sent.Sent != wire.LSN(l.end()) || sent.Blind || len(sent.Commits) != 2 {
		t.Fatalf("the log was told as %+v", sent)
	}
	first, second := sent.Commits[0], sent.Commits[1]
	if first.XID != 5 || first.Apply || second.XID != 7 || !second.Apply || second.End.Lo != (l.end()+7)&^7 {
		t.Errorf("commits %+v, %+v", first, second)
	}
	if !sent.CaughtUp || x.told[0].CaughtUp {
		t.Errorf("caught up %v, when it joined %v", sent.CaughtUp, x.told[0].CaughtUp)
	}
	reached := x.told[2]
	want := wire.Progress{Member: "s1", Reached: [wire.Levels]wire.Position{wire.LSN(30), wire.LSN(20), wire.LSN(10)}}
	if reached.In != 8000 || reached.Out != 8001 || len(reached.Reached) != 1 || reached.Reached[0] != want {
		t.Errorf("the acknowledgement was told as %+v", reached)
	}
	if x.told[3].Out != 9001 || x.told[4].Out != 99 {
		t.Errorf("left at %d and %d", x.told[3].Out, x.told[4].Out)
	}
}

// Nobody who isn't asked looks at a stream.
func TestReplication_CostsNothingUnasked(t *testing.T) {
	x := newStream(t, wire.Options{})
	x.s.open.Report = nil
	b := statusMessage(1, 2, 3)
	pieces := make([]wire.Piece, 0, 4)
	if n := testing.AllocsPerRun(100, func() {
		pieces = x.s.Frame(wire.ToServer, b, 1, pieces[:0])
		x.s.Decode(wire.ToServer, b, pieces)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if len(x.told) != 1 { // that it joined, before
		t.Errorf("told %+v", x.told)
	}
}

func TestReplication_LogicalStreamsTellAcknowledgementsOnly(t *testing.T) {
	x := newStream(t, wire.Options{})
	x.pass(c(msg('c')))
	x.pass(s(msg('c'), tag("COPY 0"), ready('I')))
	x.pass(c(query(`START_REPLICATION SLOT "s" logical 0/0 (proto_version '1')`)))
	x.pass(s(msg('W', 0, 0, 0)))
	n := len(x.told)
	x.log(0x1000000, []byte("B whatever a plugin writes"))
	x.status(3, 3, 3)
	if len(x.told) != n+1 || x.told[n].Kind != wire.ReportReached || !x.told[n-1].CaughtUp {
		t.Errorf("told %+v", x.told[n:])
	}
}

// What is told doesn't depend on the cuts.
func TestReplication_InAnyCut(t *testing.T) {
	l := &logAt{lsn: 0x1000000, magic: 0xD110}
	for xid := uint32(1); xid < 500; xid++ {
		l.put(commitRecord(xid, 0))
	}
	body := append(binary.BigEndian.AppendUint64([]byte{'w'}, l.lsn), make([]byte, 16)...)
	toClient := append(msg('d', append(body, l.b...)...), msg('d', append([]byte{'k'}, make([]byte, 17)...)...)...)
	toServer := append(statusMessage(1, 2, 3), statusMessage(4, 5, 6)...)
	for _, cut := range []int{1, 3, 5, 30, 31, 4096} {
		x := newStream(t, wire.Options{})
		for _, st := range []step{s(toClient), c(toServer)} {
			for b := st.b; len(b) > 0; b = b[min(cut, len(b)):] {
				x.pass(step{st.dir, b[:min(cut, len(b))]})
			}
		}
		if len(x.told) != 4 || len(x.told[1].Commits) != 499 || x.told[1].Sent != wire.LSN(l.end()) ||
			x.told[3].Reached[0].Reached[wire.Applied] != wire.LSN(6) {
			t.Errorf("cut in %d: told %+v", cut, x.told)
		}
	}
}
