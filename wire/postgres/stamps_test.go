package postgres

import (
	"testing"

	"github.com/wirewait/wirewait/wire"
)

// The player gives its steps at 100, 200, ...; what it was given leaves 1 later.
type stamps struct{ reqFirst, reqLast, reqOut, repFirst, repLast, repOut wire.Stamp }

func stampsOf(x *wire.Exchange) stamps {
	a, b := x.Sides[wire.ToServer], x.Sides[wire.ToClient]
	return stamps{a.FirstIn, a.LastIn, a.LastOut, b.FirstIn, b.LastIn, b.LastOut}
}

func TestStamps(t *testing.T) {
	ins := pbe("INSERT INTO t VALUES (1)")
	done := join([][]byte{parsedBound(), tag("INSERT 0 1")})
	for _, tc := range []struct {
		name  string
		steps []step
		want  []stamps
	}{
		{"a Query ends with its result", []step{
			c(query("INSERT INTO t VALUES (1)")), s(tag("INSERT 0 1")), s(ready('I')),
		}, []stamps{{100, 100, 101, 200, 200, 201}}},
		{"the wait of autocommit lies between Sync and ReadyForQuery", []step{
			c(ins), c(sync()), s(done), s(ready('I')),
		}, []stamps{{100, 200, 201, 300, 400, 401}}},
		{"a read ends with its result", []step{
			c(pbe("SELECT 1")), c(sync()), s(parsedBound(), tag("SELECT 1")), s(ready('I')),
		}, []stamps{{100, 100, 101, 300, 300, 301}}},
		{"COMMIT ends with its result, and so do those within the block", []step{
			c(pbe("BEGIN"), ins), c(pbe("COMMIT")), c(sync()),
			s(parsedBound(), tag("BEGIN"), done), s(parsedBound(), tag("COMMIT")), s(ready('I')),
		}, []stamps{{100, 100, 101, 400, 400, 401}, {100, 100, 101, 400, 400, 401}, {200, 200, 201, 500, 500, 501}}},
		{"those that one Sync commits share it", []step{
			c(ins), c(ins), c(sync()), s(done), s(done), s(ready('I')),
		}, []stamps{{100, 300, 301, 400, 600, 601}, {200, 300, 301, 500, 600, 601}}},
		{"what an error rolled back ends with its own result", []step{
			c(ins), c(pbe("nope")), c(sync()), s(done), s(refused("42601")), s(ready('I')),
		}, []stamps{{100, 100, 101, 400, 400, 401}, {200, 200, 201, 500, 500, 501}}},
		{"results of one Query share its request", []step{
			c(query("SELECT 1; SELECT 2")), s(tag("SELECT 1")), s(columns()), s(tag("SELECT 1")), s(ready('I')),
		}, []stamps{{100, 100, 101, 200, 200, 201}, {100, 100, 101, 300, 400, 401}}},
		{"COPY waits from its last byte of data", []step{
			c(query("COPY t FROM STDIN")), s(msg('G', 0, 0, 0)), c(msg('d', 'x')), c(msg('c')), s(tag("COPY 1")), s(ready('I')),
		}, []stamps{{100, 400, 401, 200, 500, 501}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPlayer(t, wire.Options{}).play(hello()...)
			p.now = 0
			p.got = nil
			p.play(tc.steps...)
			if len(p.got) != len(tc.want) {
				t.Fatal(briefs(p.got))
			}
			for i, x := range p.got {
				if got := stampsOf(x); got != tc.want[i] {
					t.Errorf("exchange %d (%s): %+v, want %+v", i, brief(x), got, tc.want[i])
				}
			}
		})
	}
}

// Bytes may leave long after they were decoded; an exchange waits for its own.
func TestStamps_LateDeparture(t *testing.T) {
	p := newPlayer(t, wire.Options{}).play(hello()...)
	p.got = nil
	o := p.s.Open()
	read := func(dir wire.Direction, b []byte, now wire.Stamp) int64 {
		p.s.Decode(dir, b, p.s.Frame(dir, b, now, nil))
		p.off[dir] += int64(len(b))
		return p.off[dir]
	}
	execute := read(wire.ToServer, pbe("INSERT INTO t VALUES (1)"), 1000)
	synced := read(wire.ToServer, sync(), 1010)
	o.Departed(wire.ToServer, execute, 1100)
	o.Departed(wire.ToServer, synced, 1110)
	result := read(wire.ToClient, join([][]byte{parsedBound(), tag("INSERT 0 1")}), 1200)
	end := read(wire.ToClient, ready('I'), 1210)
	o.Departed(wire.ToClient, result, 1300)
	if len(p.got) != 0 {
		t.Fatal("emitted before its ReadyForQuery had left")
	}
	o.Departed(wire.ToClient, end, 1310)
	if len(p.got) != 1 {
		t.Fatal("not emitted")
	}
	if got, want := stampsOf(p.got[0]), (stamps{1000, 1010, 1110, 1200, 1210, 1310}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if o.Len() != 0 {
		t.Errorf("%d open", o.Len())
	}
}

func TestStamps_JitterIsDrawnOncePerExchangeAndDirection(t *testing.T) {
	steps := append(hello(),
		c(parse("", "SELECT 1")), c(bind("", ""), execute("")), c(sync()),
		s(msg('1')), s(msg('2'), columns(), datum()), s(datum(), tag("SELECT 2")), s(ready('I')),
		c(query("SELECT 1; SELECT 2")), s(tag("SELECT 1"), tag("SELECT 1"), ready('I')))
	for _, o := range orders()[:3] {
		p := newPlayer(t, wire.Options{})
		o.feed(p, steps)
		var draws [2]int
		for dir, pieces := range p.pieces {
			for _, pc := range pieces {
				if pc.Draw {
					draws[dir]++
				}
			}
		}
		if draws != [2]int{3, 4} { // start-up, Execute, Query; a reply each, the Query's two
			t.Errorf("%s: %v draws", o.name, draws)
		}
	}
}
