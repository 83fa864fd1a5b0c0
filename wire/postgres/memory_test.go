package postgres

import (
	"runtime"
	"runtime/metrics"
	"slices"
	"testing"
	"unsafe"

	"github.com/wirewait/wirewait/wire"
)

// A queue that grows has up to a quarter more room than it needs; a mark is an
// offset and two pointers.
func TestMemory_Costs(t *testing.T) {
	const mark = 24
	for _, tc := range []struct {
		name        string
		cost, bytes uintptr
	}{
		{"exchange", costExchange, unsafe.Sizeof(wire.Exchange{}) + unsafe.Sizeof(call{}) + (unsafe.Sizeof(item{})+2*mark)*5/4},
		{"request", costRequest, unsafe.Sizeof(wire.Tail{}) + (unsafe.Sizeof(request{})+mark)*5/4},
		{"fact", costFact, unsafe.Sizeof(fact{}) * 5 / 4},
	} {
		if tc.cost < tc.bytes || tc.cost > tc.bytes*3/2 {
			t.Errorf("%s: counted as %d bytes and takes %d", tc.name, tc.cost, tc.bytes)
		}
	}
}

// What is counted is what the heap holds, about.
func TestMemory_IsThatOfTheHeap(t *testing.T) {
	for name, request := range map[string][]byte{
		"Query": query("INSERT INTO t VALUES (1)"), "Parse, Bind, Execute": pbe("INSERT INTO t VALUES (1)"),
		"Bind, Execute": join([][]byte{bind("", "s"), execute("")}), "Sync": sync(),
	} {
		t.Run(name, func(t *testing.T) {
			in := New(wire.Options{}).(*session)
			var pieces []wire.Piece
			play := func(st step) {
				pieces = in.Frame(st.dir, st.b, 1, pieces[:0])
				in.Decode(st.dir, st.b, pieces)
			}
			for _, st := range hello() {
				play(st)
			}
			heap := func() int {
				runtime.GC()
				sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
				metrics.Read(sample)
				return int(sample[0].Value.Uint64())
			}
			before := heap()
			for range 50_000 {
				play(step{wire.ToServer, request})
			}
			held := heap() - before
			counted := in.framed() + in.facts()*costFact
			t.Logf("counted %d bytes for each, the heap holds %d", counted/50_000, held/50_000)
			if counted < held*8/10 || counted > held*16/10 {
				t.Errorf("counted %d MB, the heap holds %d MB", counted>>20, held>>20)
			}
			runtime.KeepAlive(in)
		})
	}
}

// pipeline sends n statements before any is answered, then their answers.
func pipeline(t *testing.T, n int, sql, result string) *player {
	t.Helper()
	p := newPlayer(t, wire.Options{}).play(hello()...)
	chunk := 100
	var request, reply []byte
	for range chunk {
		request = append(request, pbe(sql)...)
		reply = append(append(reply, parsedBound()...), tag(result)...)
	}
	for range n / chunk {
		p.play(step{wire.ToServer, request})
	}
	p.play(c(sync()))
	for range n / chunk {
		p.play(step{wire.ToClient, reply})
	}
	p.play(s(ready('I')))
	return p
}

func TestMemory_150_000StatementsInAPipeline(t *testing.T) {
	const n = 150_000
	p := pipeline(t, n, "SELECT 1", "SELECT 1")
	if err := p.s.Opaque(); err != nil || len(p.got) != n+1 || len(p.text) > 0 {
		t.Fatalf("%d exchanges, %v, trouble %v", len(p.got), err, p.text)
	}
	for i, x := range p.got {
		if x.Ordinal != uint64(i+1) {
			t.Fatalf("exchange %d is counted as %d", i+1, x.Ordinal)
		}
	}
	if last := p.got[n].Postgres.TxStatus; last != 'I' {
		t.Errorf("the last ends with status %q", last)
	}
}

// Writes wait for the ReadyForQuery that commits them, up to a number.
func TestMemory_WritesOfALongPipeline(t *testing.T) {
	for _, n := range []int{20_000, 70_000} {
		p := pipeline(t, n, "INSERT INTO t VALUES (1)", "INSERT 0 1")
		if err := p.s.Opaque(); err != nil || len(p.got) != n+1 {
			t.Fatalf("%d exchanges, %v", len(p.got), err)
		}
		most := 0
		for _, x := range p.got[1:] {
			most = max(most, x.Postgres.Shared)
			if !x.Write || !x.OK || x.Postgres.Shared == 0 {
				t.Fatalf("exchange %d: %s", x.Ordinal, brief(x))
			}
		}
		if most != n && (n < maxGroup || most < maxGroup || most > 2*maxGroup) {
			t.Errorf("%d writes, at most %d share a commit", n, most)
		}
	}
}

// Too much is said once, however much more follows.
func TestMemory_TooMuchIsOpaqueOnce(t *testing.T) {
	const most = 9*(costExchange+costRequest) + 8*costFact
	p := newPlayer(t, wire.Options{MaxMemory: most}).play(hello()...)
	for range 9 {
		p.play(c(query("SELECT 1")))
	}
	if p.s.Opaque() != nil {
		t.Fatal("opaque too early")
	}
	for range 100 {
		p.play(c(query("SELECT 1")))
	}
	if p.s.Opaque() == nil || !slices.Equal(p.text, []string{"backlog"}) {
		t.Fatalf("opaque: %v, trouble %v", p.s.Opaque(), p.text)
	}
	p.s.End()
	if n := len(p.got); n < 9 || p.s.Open().Len() != 0 {
		t.Errorf("%d exchanges, %d left", n, p.s.Open().Len())
	}
}

// What was framed before the bound was met is decoded after it.
func TestMemory_TooMuchAtOnceIsOpaqueOnce(t *testing.T) {
	p := newPlayer(t, wire.Options{MaxMemory: 20 * costExchange}).play(hello()...)
	var many []byte
	for range 1000 {
		many = append(many, pbe("SELECT 1")...)
	}
	p.play(step{wire.ToServer, many}, step{wire.ToServer, many})
	if n := len(p.text); p.s.Opaque() == nil || n > 1 {
		t.Fatalf("opaque: %v, %d times trouble", p.s.Opaque(), n)
	}
	p.s.End()
	if p.s.Open().Len() != 0 {
		t.Errorf("%d exchanges left", p.s.Open().Len())
	}
}
