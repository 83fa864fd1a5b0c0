package postgres

import (
	"testing"

	"github.com/wirewait/wirewait/wire"
)

// pingPong is a session in the middle of running one prepared statement again
// and again, and a function that runs it once more.
func pingPong(tb testing.TB, sql, result string) (whole func()) {
	p := New(wire.Options{})
	p.Open().Emit = func(*wire.Exchange) bool { return false }
	var off [2]int64
	var pieces []wire.Piece
	now := wire.Stamp(1)
	read := func(dir wire.Direction, b []byte, decode bool) {
		now++
		pieces = p.Frame(dir, b, now, pieces[:0])
		off[dir] += int64(len(b))
		p.Open().Departed(dir, off[dir], now)
		if decode {
			p.Decode(dir, b, pieces)
		}
	}
	for _, st := range append(hello(), c(parse("s", sql), sync()), s(msg('1'), ready('I'))) {
		read(st.dir, st.b, true)
	}
	request := join([][]byte{bind("", "s"), execute(""), sync()})
	reply := join([][]byte{msg('2'), tag(result), ready('I')})
	whole = func() {
		read(wire.ToServer, request, true)
		read(wire.ToClient, reply, true)
	}
	for range 100 {
		whole()
	}
	if p.Opaque() != nil || p.Open().Len() != 0 {
		tb.Fatal("not in its steady state")
	}
	return whole
}

func TestAllocs_PreparedPingPong(t *testing.T) {
	whole := pingPong(t, "INSERT INTO t VALUES ($1)", "INSERT 0 1")
	if n := testing.AllocsPerRun(1000, whole); n > 0 {
		t.Errorf("%v allocations per statement, want none", n)
	}
}

func TestAllocs_SimpleQuery(t *testing.T) {
	p := New(wire.Options{})
	p.Open().Emit = func(*wire.Exchange) bool { return false }
	var off [2]int64
	var pieces []wire.Piece
	play := func(st step) {
		pieces = p.Frame(st.dir, st.b, 1, pieces[:0])
		off[st.dir] += int64(len(st.b))
		p.Open().Departed(st.dir, off[st.dir], 2)
		p.Decode(st.dir, st.b, pieces)
	}
	for _, st := range hello() {
		play(st)
	}
	q, a := c(query("UPDATE t SET a = 'some text' WHERE b = 17")), s(tag("UPDATE 1"), ready('I'))
	if n := testing.AllocsPerRun(1000, func() { play(q); play(a) }); n > 0 {
		t.Errorf("%v allocations per statement, want none", n)
	}
}

func BenchmarkPreparedPingPong(b *testing.B) {
	whole := pingPong(b, "INSERT INTO t VALUES ($1)", "INSERT 0 1")
	b.ReportAllocs()
	for b.Loop() {
		whole()
	}
}

// BenchmarkRows is a result of 1,000 rows of 105 bytes.
func BenchmarkRows(b *testing.B) {
	p := New(wire.Options{})
	p.Open().Emit = func(*wire.Exchange) bool { return false }
	rows := columns()
	for range 1000 {
		rows = append(rows, msg('D', make([]byte, 100)...)...)
	}
	rows = append(rows, join([][]byte{tag("SELECT 1000"), ready('I')})...)
	q := query("SELECT * FROM t")
	var off [2]int64
	var pieces []wire.Piece
	play := func(dir wire.Direction, buf []byte) {
		for len(buf) > 0 {
			n := min(len(buf), 32<<10)
			pieces = p.Frame(dir, buf[:n], 1, pieces[:0])
			off[dir] += int64(n)
			p.Open().Departed(dir, off[dir], 2)
			p.Decode(dir, buf[:n], pieces)
			buf = buf[n:]
		}
	}
	b.SetBytes(int64(len(rows)))
	b.ReportAllocs()
	for b.Loop() {
		play(wire.ToServer, q)
		play(wire.ToClient, rows)
	}
}
