package postgres

import (
	"encoding/binary"
	"testing"

	"github.com/wirewait/wirewait/wire"
)

// packSteps packs steps for the fuzzer: direction and length, then the bytes.
func packSteps(steps []step) (b []byte) {
	for _, st := range steps {
		b = binary.BigEndian.AppendUint16(b, uint16(st.dir)<<15|uint16(len(st.b)))
		b = append(b, st.b...)
	}
	return b
}

func unpackSteps(b []byte) (steps []step) {
	for len(b) > 2 {
		h := binary.BigEndian.Uint16(b)
		n := min(int(h&0x7fff), len(b)-2)
		steps = append(steps, step{wire.Direction(h >> 15), b[2 : 2+n]})
		b = b[2+n:]
	}
	return steps
}

// FuzzSession feeds both streams of a connection: nothing panics, the pieces
// tile the bytes, all that was opened is emitted, and the cuts don't matter.
func FuzzSession(f *testing.F) {
	write := c(pbe("INSERT INTO t VALUES ('x')"), sync())
	done := s(parsedBound(), tag("INSERT 0 1"), ready('I'))
	for _, steps := range [][]step{
		append(hello(), write, done),
		append(hello(), c(pbe("nope"), query("SELECT 1"), sync()), s(refused("42601"), ready('I'))),
		append(hello(), c(query("COPY t FROM STDIN")), s(msg('G', 0, 0, 0)), c(msg('d', 'x'), sync(), msg('c')), s(tag("COPY 1"), ready('I'))),
		append(hello(), c(query("START_REPLICATION 0/0")), s(msg('W', 0, 0, 0), msg('d', 'k')), c(msg('d', 'r'), msg('c')), s(msg('c'), tag("X"), ready('I'))),
		append(hello(), c(query("BEGIN; SET LOCAL synchronous_commit = off; SAVEPOINT a")), s(tag("BEGIN"), tag("SET"), tag("SAVEPOINT"), ready('T'))),
		append(hello(), c(parse("a", "SELECT 1"), describe("S", "a"), flush()), s(msg('1'), msg('t', 0, 0), msg('n')), c(bind("", "a"), execute(""), closeMsg("S", "a"), sync()),
			s(msg('2'), msg('s'), msg('3'), notice("WARNING", "01000", "SyncRepWaitForLSN"), ready('I'))),
		append([]step{c(packet(codeSSL)), s([]byte{'N'}), c(packet(codeGSS)), s([]byte{'N'})}, hello()...),
		{c(packet(codeSSL)), s([]byte{'S'}), c([]byte{0x16, 3, 1})},
		{c(packet(codeCancel, 0, 0, 0, 1, 0, 0, 0, 2))},
		{s([]byte{'N'}, authOK(), ready('I'), fatal("57P01"))},
		{c([]byte{'Q', 0, 0, 0, 3})},
		{c(msg('F', 1)), s(msg('V'), ready('I'), ready('T'), msg('I'), msg('A'))},
	} {
		f.Add(packSteps(steps))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		steps := unpackSteps(data)
		if len(steps) > 64 || len(data) > 8<<10 {
			return
		}
		var want string
		for i, o := range orders()[:3] {
			p := newPlayer(t, wire.Options{Text: wire.TextSanitised, MaxOpen: 64})
			o.feed(p, steps)
			err := p.s.Opaque()
			p.s.End()
			p.s.End()
			if n := p.s.Open().Len(); n != 0 {
				t.Fatalf("%s: %d exchanges were never emitted", o.name, n)
			}
			got := fulls(p.got)
			if err != nil {
				got += err.Error()
			}
			if i == 0 {
				want = got
			} else if got != want {
				t.Fatalf("%s:\n%s\nas sent:\n%s", o.name, got, want)
			}
		}
	})
}
