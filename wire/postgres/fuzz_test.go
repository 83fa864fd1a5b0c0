package postgres

import (
	"encoding/binary"
	"slices"
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
		append(hello("replication", "true"), c(query("START_REPLICATION 0/1000000")), s(msg('W', 0, 0, 0), msg('d', append([]byte{'w'}, make([]byte, 80)...)...)),
			c(statusMessage(1, 2, 3), msg('c'), msg('X'))),
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
		checkConversation(t, steps)
	})
}

func checkConversation(t *testing.T, steps []step) {
	t.Helper()
	var want string
	for i, o := range orders()[:3] {
		p := newPlayer(t, wire.Options{Text: wire.TextSanitised})
		if i > 0 { // who asks for reports changes nothing about exchanges
			p.s.Open().Report = func(r *wire.Report) {
				if r.Out == 0 || r.Kind == wire.ReportReached && len(r.Reached) != 1 {
					t.Errorf("%s: told %+v", o.name, r)
				}
			}
		}
		o.feed(p, steps)
		err := p.s.Opaque()
		p.s.End()
		p.s.End()
		if n := p.s.Open().Len(); n != 0 {
			t.Fatalf("%s: %d exchanges were never emitted", o.name, n)
		}
		p.unchanged()
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
	// Where little may be remembered, it depends on the cuts when that is too much.
	for _, o := range orders()[:3] {
		p := newPlayer(t, wire.Options{Text: wire.TextSanitised, MaxMemory: 16 * costExchange})
		o.feed(p, steps)
		p.s.End()
		if n := p.s.Open().Len(); n != 0 || p.s.Opaque() == nil && slices.Contains(p.text, "backlog") {
			t.Fatalf("%s: %d exchanges were never emitted, trouble %v, opaque %v", o.name, n, p.text, p.s.Opaque())
		}
		p.unchanged()
	}
}

// alphabet is what FuzzConversation makes its conversations of: whole messages,
// so that it gets further than bytes at random do.
var alphabet = [2][][]byte{
	{
		query("INSERT INTO t VALUES (1)"), query("BEGIN"), query("COMMIT"), query("SELECT 1; DELETE FROM t; SET LOCAL synchronous_commit = off"),
		query("COPY t FROM STDIN"), query(""), query("ROLLBACK TO a"), query("SAVEPOINT a"), query("DISCARD ALL"), query("EXECUTE a"),
		parse("", "INSERT INTO t VALUES ($1)"), parse("a", "SELECT 1"), bind("", ""), bind("p", "a"), describe("S", "a"), describe("P", ""),
		closeMsg("S", "a"), closeMsg("P", "p"), execute(""), execute("p"), sync(), sync(), flush(), msg('d', 'x', 'y'), msg('c'), msg('f', 0),
		msg('F', 0, 0, 0, 1), msg('p', 'x', 0), msg('X'), pbe("UPDATE t SET a = 1"), pbe("COMMIT"), {'Q', 0, 0}, {0, 0, 0, 'x', 0},
		startupPacket(version30, "user", "ann", "application_name", "x"), packet(codeSSL), packet(codeCancel, 1, 2, 3, 4, 5, 6, 7, 8),
	},
	{
		tag("INSERT 0 1"), tag("BEGIN"), tag("COMMIT"), tag("ROLLBACK"), tag("SET"), tag("SELECT 1"), tag(""), msg('I'), msg('s'),
		refused("23505"), fatal("57P01"), ready('I'), ready('I'), ready('T'), ready('E'), msg('1'), msg('2'), msg('3'), msg('n'), msg('t', 0, 0),
		columns(), datum(), msg('G', 0, 0, 0), msg('H', 0, 0, 0), msg('W', 0, 0, 0), msg('d', 'x'), msg('c'), msg('V', 0, 0, 0, 0),
		notice("WARNING", "01000", "SyncRepWaitForLSN"), notice("NOTICE", "00000", "x"), msg('A', 0, 0, 0, 1, 0, 0),
		parameter("application_name", "y"), parameter("standard_conforming_strings", "off"), authOK(), keyData(3), {'N'}, {'Z', 0, 0}, parsedBound(),
	},
}

// FuzzConversation is FuzzSession with whole messages: a byte is one of the
// client's, or, from 128 on, of the server's.
func FuzzConversation(f *testing.F) {
	f.Add([]byte{10, 12, 18, 20, 165, 128, 139})
	f.Add([]byte{4, 150, 23, 20, 24, 128, 139})
	f.Add([]byte{29, 29, 0, 20, 137, 139, 3, 133, 132, 139})
	f.Add([]byte{34, 163, 33, 161, 139, 0, 128, 139})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 400 {
			return
		}
		steps := hello()
		if len(data) > 0 && data[0]%4 == 0 {
			steps = nil
		}
		for _, b := range data {
			dir := wire.Direction(b >> 7)
			steps = append(steps, step{dir, alphabet[dir][int(b&127)%len(alphabet[dir])]})
		}
		checkConversation(t, steps)
	})
}
