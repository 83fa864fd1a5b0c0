package postgres

import (
	"testing"

	"github.com/wirewait/wirewait/wire"
)

// The rows of what PostgreSQL 15 and 18 were seen to answer to pipelines.
func TestPairing_Pipelines(t *testing.T) {
	const ins = "INSERT INTO t VALUES (1)"
	ok := func() []byte { return join([][]byte{parsedBound(), tag("INSERT 0 1")}) }
	write := "INSERT ok write=tag level=/default"
	for _, tc := range []struct {
		name  string
		steps []step
		want  []string
	}{
		{"P B E S", []step{c(pbe(ins), sync()), s(ok(), ready('I'))}, []string{write}},
		{"P B E H, later S", []step{c(pbe(ins), flush()), s(ok()), c(sync()), s(ready('I'))}, []string{write}},
		{"P B D E S", []step{
			c(parse("", ins), bind("", ""), describe("P", ""), execute(""), sync()),
			s(parsedBound(), msg('n'), tag("INSERT 0 1"), ready('I')),
		}, []string{write}},
		{"BEGIN, INSERT, COMMIT, H, S", []step{
			c(pbe("BEGIN"), pbe(ins), pbe("COMMIT"), flush(), sync()),
			s(parsedBound(), tag("BEGIN"), ok(), parsedBound(), tag("COMMIT"), ready('I')),
		}, []string{"BEGIN ok", write + " inblock", "COMMIT ok write=block level=/default"}},
		{"PBE S PBE S", []step{
			c(pbe(ins), sync(), pbe(ins), sync()), s(ok(), ready('I')), s(ok(), ready('I')),
		}, []string{write, write}},
		{"PBE PBE S", []step{c(pbe(ins), pbe(ins), sync()), s(ok(), ok(), ready('I'))},
			[]string{write + " shared=2", write + " shared=2"}},
		{"PBE, PBE(bad), PBE, S", []step{
			c(pbe(ins), pbe("INSERT INTO nope VALUES (1)"), pbe(ins), sync()),
			s(ok(), msg('1'), refused("42P01"), ready('I')),
			c(query("SELECT 1")), s(tag("SELECT 1"), ready('I')),
		}, []string{write + " rolledback", "INSERT error=42P01 write=keyword level=/default", "INSERT unanswered", "SELECT ok"}},
		{"PBE(bad), Q, S", []step{
			c(pbe("nope"), query("DELETE FROM t"), sync()), s(refused("42601"), ready('I')),
			c(query("SELECT 1")), s(tag("SELECT 1"), ready('I')),
		}, []string{"NOPE error=42601", "DELETE unanswered", "SELECT ok"}},
		{"PBE(bad), function call, S", []step{
			c(pbe("nope"), msg('F', 0, 0, 0, 1, 0, 0, 0, 0, 0, 0), sync()), s(refused("42601"), ready('I')),
			c(query("SELECT 1")), s(tag("SELECT 1"), ready('I')),
		}, []string{"NOPE error=42601", "function_call unanswered", "SELECT ok"}},
		{"PBE (no S), Q", []step{
			c(pbe("SELECT 1"), query("SELECT 2")), s(parsedBound(), tag("SELECT 1"), tag("SELECT 1"), ready('I')),
		}, []string{"SELECT ok", "SELECT ok"}},
		{"PBE(insert) (no S), Q, S", []step{
			c(pbe(ins), query("SELECT 2"), sync()), s(ok(), tag("SELECT 1"), ready('I'), ready('I')),
			c(query("SELECT 1")), s(tag("SELECT 1"), ready('I')),
		}, []string{write, "SELECT ok", "SELECT ok"}},
		{"PBE(insert) (no S), Q, S on PostgreSQL 18", []step{
			c(pbe(ins), query("SELECT 2"), sync()), s(ok(), tag("SELECT 1"), ready('T'), ready('I')),
			c(query("SELECT 1")), s(tag("SELECT 1"), ready('I')),
		}, []string{write + " inblock", "SELECT ok", "SELECT ok"}},
		{"PBE(COPY) S, then d c S", []step{
			c(pbe("COPY t FROM STDIN"), sync()), s(parsedBound(), msg('G', 0, 0, 0)),
			c(msg('d', 'x', '\n'), msg('c'), sync()), s(tag("COPY 1"), ready('I')),
			c(query("SELECT 1")), s(tag("SELECT 1"), ready('I')),
		}, []string{"COPY ok write=tag level=/default", "SELECT ok"}},
		{"Q(COPY) then d H S c", []step{
			c(query("COPY t FROM STDIN")), s(msg('G', 0, 0, 0)),
			c(msg('d', 'x', '\n'), flush(), sync(), msg('c')), s(tag("COPY 1"), ready('I')),
			c(query("SELECT 1")), s(tag("SELECT 1"), ready('I')),
		}, []string{"COPY ok write=tag level=/default", "SELECT ok"}},
		{"Q(COPY) with a bad row, then more d, c", []step{
			c(query("COPY t FROM STDIN")), s(msg('G', 0, 0, 0)), c(msg('d', 'x', '\n')), s(refused("22P02"), ready('I')),
			c(msg('d', 'y', '\n'), msg('c')),
			c(query("SELECT 1")), s(tag("SELECT 1"), ready('I')),
		}, []string{"COPY error=22P02 write=keyword level=/default", "SELECT ok"}},
		{"Q(COPY), CopyFail", []step{
			c(query("COPY t FROM STDIN")), s(msg('G', 0, 0, 0)), c(msg('f', 'n', 'o', 0)), s(refused("57014"), ready('I')),
		}, []string{"COPY error=57014 write=keyword level=/default"}},
		{"Q(COPY) then Q", []step{
			c(query("COPY t FROM STDIN")), s(msg('G', 0, 0, 0)), c(query("SELECT 1")), s(refused("08P01"), fatal("08P01")),
		}, []string{"COPY error=08P01 write=keyword level=/default", "- error=08P01", "SELECT unanswered"}},
		{"stray d and c", []step{
			c(msg('d', 'x'), msg('c'), query("SELECT 1"), msg('c')), s(tag("SELECT 1"), ready('I')),
			c(query("SELECT 2")), s(tag("SELECT 1"), ready('I')),
		}, []string{"SELECT ok", "SELECT ok"}},
		{"Execute with a row limit", []step{
			c(pbe("SELECT 1"), execute(""), sync()),
			s(parsedBound(), datum(), msg('s'), datum(), tag("SELECT 2"), ready('I')),
		}, []string{"SELECT ok", "SELECT ok"}},
		{"an empty query", []step{c(query("")), s(msg('I'), ready('I'))}, []string{"- ok"}},
		{"an empty statement", []step{c(pbe(""), sync()), s(parsedBound(), msg('I'), ready('I'))}, []string{"- ok"}},
		{"many statements in a Query", []step{
			c(query("SELECT 1; INSERT INTO t VALUES (1); DELETE FROM t;")),
			s(columns(), datum(), tag("SELECT 1"), tag("INSERT 0 1"), tag("DELETE 1"), ready('I')),
		}, []string{"SELECT ok", write + " shared=2", "DELETE ok write=tag level=/default shared=2"}},
		{"begin; ins; commit; ins in a Query", []step{
			c(query("begin; " + ins + "; commit; " + ins)),
			s(tag("BEGIN"), tag("INSERT 0 1"), tag("COMMIT"), tag("INSERT 0 1"), ready('I')),
		}, []string{"BEGIN ok", write + " inblock", "COMMIT ok write=block level=/default", write}},
		{"the second of a Query fails", []step{
			c(query(ins + "; SELECT 1/0; SELECT 2")), s(tag("INSERT 0 1"), refused("22012"), ready('I')),
		}, []string{write + " rolledback", "SELECT error=22012"}},
		{"a driver that prepares", []step{
			c(parse("s1", ins), describe("S", "s1"), sync()), s(msg('1'), msg('t', 0, 0), msg('n'), ready('I')),
			c(bind("", "s1"), execute(""), sync()), s(msg('2'), tag("INSERT 0 1"), ready('I')),
		}, []string{write}},
		{"preparing fails", []step{
			c(parse("s1", "SELEC 1"), describe("S", "s1"), sync()), s(refused("42601"), ready('I')),
			c(bind("", "s1"), execute(""), sync()), s(refused("26000"), ready('I')),
		}, []string{"SELEC error=42601", "- error=26000"}},
		{"Close behind the Execute", []step{
			c(pbe(ins), closeMsg("S", "old"), sync()), s(ok(), msg('3'), ready('I')),
		}, []string{write}},
		{"a Parse behind the Execute fails", []step{
			c(pbe(ins), parse("x", "SELEC"), sync()), s(ok(), refused("42601"), ready('I')),
		}, []string{write + " rolledback", "SELEC error=42601"}},
		{"the commit itself fails at Sync", []step{
			c(pbe(ins), sync()), s(ok(), refused("23503"), ready('I')),
		}, []string{"INSERT error=23503 write=tag level=/default rolledback", "- error=23503"}},
		{"a Sync alone", []step{c(sync()), s(ready('I')), c(query("SELECT 1")), s(tag("SELECT 1"), ready('I'))}, []string{"SELECT ok"}},
		{"function call", []step{c(msg('F', 0, 0, 0, 1)), s(msg('V', 0, 0, 0, 0), ready('I'))}, []string{"function_call ok"}},
		{"function call fails", []step{c(msg('F', 0, 0, 0, 1)), s(refused("42501"), ready('I'))}, []string{"function_call error=42501"}},
		{"answers never come", []step{c(pbe(ins), pbe("SELECT 1"), sync(), query("DELETE FROM t"))},
			[]string{"INSERT unanswered write=keyword level=/default", "SELECT unanswered", "DELETE unanswered write=keyword level=/default"}},
		{"FATAL while idle", []step{s(fatal("57P01"))}, []string{"- error=57P01"}},
		{"asynchronous messages", []step{
			s(notice("NOTICE", "00000", "x"), msg('A', append([]byte{0, 0, 0, 1}, z("ch", "p")...)...), parameter("TimeZone", "UTC")),
			c(query("SELECT 1")),
			s(columns(), notice("NOTICE", "00000", "x"), datum(), tag("SELECT 1"), msg('A', append([]byte{0, 0, 0, 1}, z("ch", "p")...)...),
				parameter("TimeZone", "UTC"), ready('I')),
		}, []string{"SELECT ok"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			steps := append(hello(), tc.steps...)
			wantBriefs(t, run(t, steps...), append([]string{"startup ok"}, tc.want...)...)
			if tc.name == "FATAL while idle" || tc.name == "Q(COPY) with a bad row, then more d, c" {
				return // what belongs together here, only the order tells
			}
			sameInAnyOrder(t, steps)
		})
	}
}

func TestPairing_BytesOfAnExchange(t *testing.T) {
	size := func(msgs ...[]byte) int64 { return int64(len(join(msgs))) }
	for _, tc := range []struct {
		name  string
		steps []step
		want  [][2]int64
	}{
		{"Sync and ReadyForQuery go to the last exchange", []step{
			c(pbe("SELECT 1"), pbe("SELECT 2"), sync()),
			s(parsedBound(), tag("SELECT 1"), parsedBound(), tag("SELECT 1"), ready('I')),
		}, [][2]int64{
			{size(pbe("SELECT 1")), size(parsedBound(), tag("SELECT 1"))},
			{size(pbe("SELECT 2"), sync()), size(parsedBound(), tag("SELECT 1"), ready('I'))},
		}},
		{"a Query's go to its first result", []step{
			c(query("SELECT 1; SELECT 2")), s(tag("SELECT 1"), tag("SELECT 1"), ready('I')),
		}, [][2]int64{
			{size(query("SELECT 1; SELECT 2")), size(tag("SELECT 1"))},
			{0, size(tag("SELECT 1"), ready('I'))},
		}},
		{"Close behind Execute goes to it", []step{
			c(pbe("SELECT 1"), closeMsg("S", "x"), sync()), s(parsedBound(), tag("SELECT 1"), msg('3'), ready('I')),
		}, [][2]int64{{
			size(pbe("SELECT 1"), closeMsg("S", "x"), sync()),
			size(parsedBound(), tag("SELECT 1"), msg('3'), ready('I')),
		}}},
		{"COPY data goes to its COPY", []step{
			c(query("COPY t FROM STDIN")), s(msg('G', 0, 0, 0)), c(msg('d', make([]byte, 100)...), msg('c')), s(tag("COPY 1"), ready('I')),
		}, [][2]int64{{
			size(query("COPY t FROM STDIN"), msg('d', make([]byte, 100)...), msg('c')),
			size(msg('G', 0, 0, 0), tag("COPY 1"), ready('I')),
		}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := run(t, append(hello(), tc.steps...)...)[1:]
			if len(got) != len(tc.want) {
				t.Fatal(briefs(got))
			}
			for i, x := range got {
				if n := [2]int64{x.Sides[0].Bytes, x.Sides[1].Bytes}; n != tc.want[i] {
					t.Errorf("exchange %d: %v bytes, want %v", i, n, tc.want[i])
				}
			}
		})
	}
}

func TestPairing_ReplicationStream(t *testing.T) {
	p := newPlayer(t, wire.Options{Text: wire.TextRaw})
	p.play(hello("user", "r", "replication", "true", "application_name", "s1")...)
	p.play(c(query("START_REPLICATION 0/3000000 TIMELINE 1")), s(msg('W', 0, 0, 0)))
	if p.s.Quiet() {
		t.Error("quiet while a stream runs")
	}
	open := p.s.Open().Len()
	for dir := range p.pieces {
		p.pieces[dir] = nil
	}
	for range 100 {
		p.play(s(msg('d', make([]byte, 60)...), msg('d', make([]byte, 60)...)), c(msg('d', make([]byte, 34)...)))
	}
	for dir, pieces := range p.pieces {
		for _, pc := range pieces {
			if !pc.Draw || pc.Exchange != nil {
				t.Fatalf("%s: %+v", wire.Direction(dir), pc)
			}
		}
	}
	if n := p.s.Open().Len(); n != open {
		t.Errorf("%d exchanges open, %d before the data", n, open)
	}
	p.play(c(msg('c')), s(msg('c'), tag("START_STREAMING"), tag("START_REPLICATION"), ready('I')))
	p.s.End()
	wantBriefs(t, p.got, "startup ok", "START_STREAMING ok", "START_REPLICATION ok")
}

func TestPairing_Quiet(t *testing.T) {
	p := newPlayer(t, wire.Options{})
	quiet := func(want bool, when string) {
		t.Helper()
		if p.s.Quiet() != want {
			t.Errorf("quiet is %v %s", !want, when)
		}
	}
	quiet(true, "at the start")
	p.play(c([]byte{0, 0}))
	quiet(false, "within a length")
	p = newPlayer(t, wire.Options{})
	p.play(c(packet(codeSSL)))
	quiet(false, "awaiting an answer")
	p.play(s([]byte{'N'}))
	quiet(true, "after the answer")
	p.play(hello()...)
	quiet(true, "after the start-up")
	p.play(c(parse("", "SELECT 1"), flush()))
	quiet(false, "after a Parse")
	p.play(s(msg('1')), c(bind("", ""), execute(""), sync()))
	quiet(false, "after a Sync")
	p.play(s(msg('2'), tag("SELECT 1")))
	quiet(false, "before ReadyForQuery")
	p.play(s(ready('I')))
	quiet(true, "after ReadyForQuery")
}

// A long pipeline and a long COPY are within bounds.
func TestPairing_LongPipelineAndCopy(t *testing.T) {
	p := newPlayer(t, wire.Options{}).play(hello()...)
	const n = 10_000
	for range n {
		p.play(c(pbe("INSERT INTO t VALUES (1)")))
	}
	p.play(c(sync()))
	for range n {
		p.play(s(parsedBound(), tag("INSERT 0 1")))
	}
	p.play(s(ready('I')))
	if err := p.s.Opaque(); err != nil || len(p.got) != n+1 {
		t.Fatalf("%d exchanges, %v", len(p.got), err)
	}
	if got := p.got[n].Postgres.Shared; got != n {
		t.Errorf("shared by %d", got)
	}
	p.play(c(query("COPY t FROM STDIN")), s(msg('G', 0, 0, 0)))
	for range 20_000 {
		p.play(c(msg('d', 'x')))
	}
	if q := p.s.(*session).requests.Len(); q != 1 {
		t.Errorf("%d requests queued for one COPY", q)
	}
	p.play(c(msg('c')), s(tag("COPY 20000"), ready('I')))
	wantBriefs(t, p.got[n+1:], "COPY ok write=tag level=/default")
}
