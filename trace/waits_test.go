package trace

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/wirewait/wirewait/wire"
)

const millisecond = wire.Stamp(time.Millisecond)

// exchange makes one whose stamps are given in milliseconds: request first in,
// last in, last out; reply first in, last in, last out.
func exchange(stamps ...wire.Stamp) *wire.Exchange {
	x := &wire.Exchange{Answered: true, OK: true, Write: true}
	for i, s := range stamps {
		side := &x.Sides[i/3]
		*[...]*wire.Stamp{&side.FirstIn, &side.LastIn, &side.LastOut}[i%3] = s * millisecond
	}
	return x
}

func TestSplit(t *testing.T) {
	t.Parallel()
	type parts struct{ receive, request, server, reply, total time.Duration }
	stalled := func(x *wire.Exchange, toServer, toClient time.Duration) *wire.Exchange {
		x.Sides[wire.ToServer].Stalled = toServer * time.Millisecond
		x.Sides[wire.ToClient].Stalled = toClient * time.Millisecond
		return x
	}
	for _, tt := range []struct {
		name     string
		x        *wire.Exchange
		want     parts
		dominant string
	}{
		{"whole", exchange(10, 12, 52, 55, 56, 96), parts{2, 40, 4, 40, 86}, PartRequest},
		{"no delay", exchange(10, 10, 10, 13, 13, 13), parts{0, 0, 3, 0, 3}, PartServer},
		{"no reply expected", exchange(10, 12, 52), parts{2, 40, 0, 0, 42}, PartRequest},
		{"never forwarded", exchange(10, 12), parts{2, 0, 0, 0, 2}, PartReceive},
		{"reply cut while coming in", exchange(10, 12, 52, 55, 56), parts{2, 40, 4, 0, 46}, PartRequest},
		{"reply before the request was out", exchange(10, 12, 52, 20, 21, 30), parts{2, 18, 0, 0, 20}, PartRequest},
		{"request's last byte unseen", exchange(10, 0, 0, 20, 21, 30), parts{0, 0, 11, 9, 20}, PartServer},
		{"only a reply", exchange(0, 0, 0, 20, 21, 30), parts{0, 0, 1, 9, 10}, PartReply},
		{"nothing", exchange(), parts{}, PartServer},
		{"stalled while the request came in", stalled(exchange(10, 30, 40, 45, 45, 45), 15, 0), parts{5, 25, 5, 0, 35}, PartRequest},
		{"stalled while the reply came in", stalled(exchange(10, 10, 10, 15, 45, 60), 0, 20), parts{0, 0, 15, 35, 50}, PartReply},
		{"stalled for longer than it took", stalled(exchange(10, 12, 13, 15, 16, 17), 99, 99), parts{0, 3, 0, 4, 7}, PartReply},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := Split(tt.x)
			got := parts{w.Receive, w.Request, w.Server, w.Reply, w.Total}
			for _, d := range []*time.Duration{&got.receive, &got.request, &got.server, &got.reply, &got.total} {
				*d /= time.Millisecond
			}
			if got != tt.want {
				t.Errorf("parts are %v, want %v", got, tt.want)
			}
			if w.Dominant != tt.dominant {
				t.Errorf("dominant part is %q, want %q", w.Dominant, tt.dominant)
			}
		})
	}
}

func TestSplit_CountsOnlyDelaysThatCanBeCompared(t *testing.T) {
	t.Parallel()
	x := exchange(10, 12, 52, 55, 56, 97)
	x.Sides[wire.ToServer].Planned = 40 * time.Millisecond
	w := Split(x)
	if w.Planned != 40*time.Millisecond || w.Achieved != 40*time.Millisecond {
		t.Errorf("one side: planned %v achieved %v, want 40ms each: the reply had no plan", w.Planned, w.Achieved)
	}
	x.Sides[wire.ToClient].Planned = 40 * time.Millisecond
	w = Split(x)
	if w.Planned != 80*time.Millisecond || w.Achieved != 81*time.Millisecond {
		t.Errorf("both sides: planned %v achieved %v, want 80ms and 81ms", w.Planned, w.Achieved)
	}
	x.Sides[wire.ToClient].LastOut = 0
	w = Split(x)
	if w.Planned != 40*time.Millisecond || w.Achieved != 40*time.Millisecond {
		t.Errorf("reply never left: planned %v achieved %v, want 40ms each", w.Planned, w.Achieved)
	}
}

func TestSplit_PartsAddUp(t *testing.T) {
	t.Parallel()
	const seed = 2
	r := rand.New(rand.NewPCG(seed, seed))
	stamp := func() wire.Stamp {
		if r.IntN(4) == 0 {
			return 0
		}
		return wire.Stamp(r.Int64N(1000) + 1)
	}
	for range 200_000 {
		var x wire.Exchange
		for i := range x.Sides {
			x.Sides[i] = wire.Side{
				FirstIn: stamp(), LastIn: stamp(), LastOut: stamp(),
				Planned: time.Duration(r.Int64N(500)), Stalled: time.Duration(r.Int64N(500)),
			}
		}
		w := Split(&x)
		sum := time.Duration(0)
		for _, p := range w.Parts() {
			if p.Time < 0 {
				t.Fatalf("seed %d: %s is negative in %+v of %+v", seed, p.Name, w, x.Sides)
			}
			sum += p.Time
		}
		if sum != w.Total || w.Total != time.Duration(End(&x)-Start(&x)) {
			t.Fatalf("seed %d: parts add up to %v in %+v of %+v", seed, sum, w, x.Sides)
		}
		if w.Stalled > w.Request+w.Reply || w.Achieved < 0 {
			t.Fatalf("seed %d: stalled or achieved out of bounds in %+v of %+v", seed, w, x.Sides)
		}
	}
}

func TestSplit_DoesNotAllocate(t *testing.T) {
	x := exchange(10, 12, 52, 55, 56, 96)
	if n := testing.AllocsPerRun(100, func() { Split(x) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
