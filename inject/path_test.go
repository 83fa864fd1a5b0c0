package inject

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/wirewait/wirewait/wire"
)

// arrival is a parcel at the other end.
type arrival struct {
	n  int
	at wire.Stamp
}

// lane is a Path with what the pump does around it.
type lane struct {
	Path
	line Line
}

func newLane(seed uint64, shared Booker) *lane {
	return &lane{Path: NewPath(wire.ToServer, testSource(seed), shared)}
}

// read takes a message of n bytes at now.
func (l *lane) read(n int, now wire.Stamp, set *Settings) (as []arrival) {
	l.Use(set)
	l.Draw(true)
	l.Arrived(n, false)
	for n > 0 {
		m, at := l.Parcel(n, now)
		at = l.line.Clamp(at)
		l.Clamped(m, at)
		as = append(as, arrival{m, at})
		n -= m
	}
	return as
}

func last(as []arrival) wire.Stamp { return as[len(as)-1].at }

func wan(d Delay) *Settings {
	return &Settings{Delay: [2]Delay{wire.ToServer: d, wire.ToClient: {Base: 30 * time.Millisecond}}}
}

func TestPath_SerialisesThenPropagates(t *testing.T) {
	// 8 Mbit/s are 1,000 bytes a millisecond: a parcel is a segment.
	set := wan(Delay{Base: 10 * time.Millisecond, Bandwidth: 8_000_000})
	l := newLane(1, nil)
	got := l.read(3000, 1*ms, set)
	want := []arrival{{1448, 12*ms + 448_000}, {1448, 13*ms + 896_000}, {104, 14 * ms}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if at := last(l.read(1000, 2*ms, set)); at != 15*ms {
		t.Errorf("behind the first: %v, want 15 ms", time.Duration(at))
	}
	if at := last(l.read(1000, 40*ms, set)); at != 51*ms {
		t.Errorf("with an idle pipe: %v, want 51 ms", time.Duration(at))
	}
	// 800 Mbit/s: a parcel takes at most a millisecond.
	set = wan(Delay{Bandwidth: 800_000_000})
	if got := newLane(1, nil).read(250_000, 0, set); !slices.Equal(got, []arrival{{100_000, ms}, {100_000, 2 * ms}, {50_000, 2*ms + 500_000}}) {
		t.Errorf("%v", got)
	}
}

func TestPath_SharesThePipeUnlessPerConnection(t *testing.T) {
	var pipe Pipe
	set := wan(Delay{Bandwidth: 8_000_000})
	a, b := newLane(1, &pipe), newLane(2, &pipe)
	if x, y := last(a.read(10_000, 0, set)), last(b.read(1000, 0, set)); x != 10*ms || y != 11*ms {
		t.Errorf("shared: %v and %v", time.Duration(x), time.Duration(y))
	}
	set.Delay[wire.ToServer].PerConnection = true
	a, b = newLane(1, &pipe), newLane(2, &pipe)
	if x, y := last(a.read(10_000, 0, set)), last(b.read(1000, 0, set)); x != 10*ms || y != ms {
		t.Errorf("per connection: %v and %v", time.Duration(x), time.Duration(y))
	}
}

// With a window that is smaller than bandwidth * RTT, a connection gets window
// / RTT (here 40 ms), in bursts that leave at the bandwidth; else the bandwidth.
func TestPath_WindowBoundsTheThroughput(t *testing.T) {
	const window, rtt = 40_000, 40 * ms
	d := Delay{Base: 10 * time.Millisecond, Window: window}
	if got, want := last(newLane(1, nil).read(10*window, 0, wan(d))), 10*ms+9*rtt; got != want {
		t.Errorf("window alone: %v, want %v", time.Duration(got), time.Duration(want))
	}
	for _, shared := range []bool{false, true} {
		read := func() wire.Stamp {
			if shared {
				return last(newLane(1, &Pipe{}).read(10*window, 0, wan(d)))
			}
			return last(newLane(1, nil).read(10*window, 0, wan(d)))
		}
		// 8 ms to serialise a window: the first byte's acknowledgement sets the
		// pace, so the tenth window is in 8 ms after nine round trips of the first
		// segment.
		d.Bandwidth = 40_000_000
		if got, lo, hi := read(), 10*ms+9*rtt+8*ms, 10*ms+9*(rtt+ms)+8*ms; got < lo || got > hi {
			t.Errorf("window and a wide pipe: %v, want %v to %v", time.Duration(got), time.Duration(lo), time.Duration(hi))
		}
		d.Bandwidth = 4_000_000 // 80 ms a window: the pipe is never idle
		if got, want := read(), 10*ms+10*80*ms; got != want {
			t.Errorf("window and a narrow pipe: %v, want %v", time.Duration(got), time.Duration(want))
		}
	}
}

// What a window puts off must not keep others out of an idle pipe.
func TestPath_AWindowDoesNotHoldUpTheOthers(t *testing.T) {
	var pipe Pipe
	set := wan(Delay{Bandwidth: 80_000_000, Window: 10_000})
	newLane(1, &pipe).read(100_000, 0, set) // 10 ms of the pipe, over 270 ms
	if got := last(newLane(2, &pipe).read(1000, 20*ms, set)); got != 20*ms+100_000 {
		t.Errorf("another connection: %v, want 20.1 ms", time.Duration(got))
	}
}

// A lost segment and all behind it arrive when it was repeated; what was in
// front of it doesn't wait.
func TestPath_LossHoldsUpWhatFollows(t *testing.T) {
	_, coin := fates(t, ".")
	const rtt = 40 * ms
	for fate, want := range map[string][]arrival{
		"...":       {{3 * SegmentSize, 10 * ms}},
		".x...":     {{SegmentSize, 10 * ms}, {SegmentSize, 10*ms + 240*ms}, {SegmentSize, 10*ms + 240*ms}},
		"x.....":    {{SegmentSize, 10*ms + rtt}, {4 * SegmentSize, 10*ms + rtt}},
		"..x......": {{2 * SegmentSize, 10 * ms}, {SegmentSize, 10*ms + rtt}, {5 * SegmentSize, 10*ms + rtt}},
	} {
		src, _ := fates(t, fate)
		segments := 0
		for _, a := range want {
			segments += a.n
		}
		l := &lane{Path: NewPath(wire.ToServer, src, nil)}
		if got := l.read(segments, 0, wan(Delay{Base: 10 * time.Millisecond, Loss: coin})); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", fate, got, want)
		}
	}
}

// Messages that came together share segments; a read that filled its buffer is
// followed by more.
func TestPath_SegmentsAreOfReadsNotOfMessages(t *testing.T) {
	src, coin := fates(t, "x.")
	l := &lane{Path: NewPath(wire.ToServer, src, nil)}
	l.Use(wan(Delay{Base: 10 * time.Millisecond, Loss: coin}))
	l.Draw(true)
	l.Arrived(300, true)
	for range 3 {
		if n, at := l.Parcel(100, 0); n != 100 || at != 50*ms {
			t.Fatalf("%d bytes at %v: all three are in one segment, repeated after a round trip", n, time.Duration(at))
		}
	}
}

// The parts compose in their order: 1,000 bytes take 1 ms to serialise, 10 ms to
// propagate, and 240 ms to be repeated.
func TestPath_ComposesInOrder(t *testing.T) {
	src, coin := fates(t, "x.")
	l := &lane{Path: NewPath(wire.ToServer, src, nil)}
	set := wan(Delay{Base: 10 * time.Millisecond, Bandwidth: 8_000_000, Loss: coin, Window: 1000})
	if got := last(l.read(1000, 0, set)); got != 251*ms {
		t.Errorf("%v, want 251 ms", time.Duration(got))
	}
	set = wan(Delay{Base: 10 * time.Millisecond, Bandwidth: 8_000_000, Window: 1000})
	// Acknowledged another 30 ms later: the next window is sent then.
	if got := last(l.read(1000, ms, set)); got != 281*ms+11*ms {
		t.Errorf("the next: %v, want 292 ms", time.Duration(got))
	}
}

// Over many messages: everything arrives, in order, not before its time, and
// the loss costs what its formula says.
func TestPath_LossRateOverManyMessages(t *testing.T) {
	const n = 200_000
	l := newLane(4, nil)
	set := wan(Delay{Base: 10 * time.Millisecond, Loss: Loss{P: 0.01, R: 0.3, Bad: 1}})
	late := 0
	for i := range n {
		now := wire.Stamp(i) * 1000 * 1000 * ms // each alone
		switch at := last(l.read(100, now, set)); {
		case at < now+10*ms:
			t.Fatal("before its time")
		case at > now+10*ms:
			late++
		}
	}
	// Each message ends with a step that gets through, and so began in the good
	// state: the next one finds the bad state with probability P.
	want := float64(n) * 0.01
	if math.Abs(float64(late)-want) > 0.06*want {
		t.Errorf("%d of %d late, want about %.0f", late, n, want)
	}
}

func TestPath_FullIsAWindowOrAQueueBeforeThePipe(t *testing.T) {
	l := newLane(1, nil)
	l.Use(&Settings{})
	if full, _ := l.Full(1<<40, 1); full {
		t.Error("nothing asked, and full")
	}
	l.Use(wan(Delay{Window: 5000}))
	if a, _ := l.Full(4999, 1); a {
		t.Error("full below the window")
	}
	if a, again := l.Full(5000, 1); !a || again != 0 {
		t.Error("not full with a window under way")
	}
	set := wan(Delay{Bandwidth: 8_000_000})
	l.read(300_000, 0, set) // 300 ms of pipe
	if full, again := l.Full(300_000, 50*ms); !full || again != 200*ms {
		t.Errorf("%v, again at %v, want 200 ms", full, time.Duration(again))
	}
	if full, _ := l.Full(300_000, 200*ms); full {
		t.Error("full with 100 ms to go")
	}
	if full, _ := l.Full(initialWindow-1, 50*ms); full {
		t.Error("an initial window waits for nobody")
	}
}

func TestPath_AllocatesNothing(t *testing.T) {
	var pipe Pipe
	for name, d := range map[string]Delay{
		"plain": {Base: 1}, "loss": {Loss: RandomLoss(0.1)}, "pipe": {Bandwidth: 1e9}, "window": {Base: 1e6, Window: 1e5},
		"all": {Base: 1e6, Jitter: 1e5, Correlation: 0.5, Distribution: ParetoNormal, Loss: Loss{P: 0.1, R: 0.2, Bad: 1}, Bandwidth: 1e9, Window: 1e5},
	} {
		l, set, now := newLane(1, &pipe), wan(d), wire.Stamp(0)
		step := func() {
			now += ms
			l.Use(set)
			l.Draw(true)
			l.Arrived(64<<10, true)
			for n := 64 << 10; n > 0; {
				m, at := l.Parcel(n, now)
				l.Clamped(m, l.line.Clamp(at))
				n -= m
			}
		}
		for range 2000 {
			step() // the window's memory grows to its size
		}
		if n := testing.AllocsPerRun(100, step); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// FuzzPath takes any settings and any reads: every byte goes once, in order,
// never before it came.
func FuzzPath(f *testing.F) {
	f.Add(int64(1e7), int64(1e6), 0.5, 0.1, 0.2, 0.9, 0.01, int64(1e6), int64(5000), uint8(3), []byte{1, 200, 3})
	f.Add(int64(-1), int64(math.MaxInt64), math.NaN(), 2.0, math.Inf(1), -1.0, 1.0, int64(1), int64(1), uint8(1), []byte{255, 0})
	f.Add(int64(math.MaxInt64), int64(0), 0.0, 0.0, 0.0, 0.0, 1.0, int64(math.MaxInt64), int64(math.MaxInt64), uint8(7), []byte{9})
	f.Fuzz(func(t *testing.T, base, jitter int64, rho, p, r, bad, good float64, bandwidth, window int64, kind uint8, reads []byte) {
		set := &Settings{Delay: [2]Delay{{
			Base: time.Duration(base), Jitter: time.Duration(jitter), Distribution: Distribution(kind % 5), Correlation: rho,
			Loss: Loss{P: p, R: r, Bad: bad, Good: good}, Bandwidth: bandwidth, Window: max(window, -1), PerConnection: kind > 100,
		}, {Base: time.Duration(base)}}}
		_ = set.Check()
		l, now := newLane(uint64(kind), &Pipe{}), wire.Stamp(1)
		before := wire.Stamp(0)
		for _, b := range reads[:min(len(reads), 50)] {
			n := 1 + int(b)*40
			sum := 0
			for _, a := range l.read(n, now, set) {
				if a.n < 1 || a.at < before || a.at < now {
					t.Fatalf("%+v at %d after %d", a, now, before)
				}
				sum, before = sum+a.n, a.at
			}
			if sum != n {
				t.Fatalf("%d of %d bytes", sum, n)
			}
			l.Full(n, now)
			now += wire.Stamp(b) * ms
		}
	})
}
