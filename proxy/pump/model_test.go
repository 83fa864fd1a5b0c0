package pump

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// modelled makes a Conn whose direction to the server is as said, with 10 ms
// back and a pipe that the caller may share.
func modelled(d inject.Delay, pipe inject.Booker) (*Conn, *lineSession, *inject.Settings) {
	s := newLineSession()
	c := New(Config{Session: s, Pipes: [2]inject.Booker{pipe, pipe}, Sources: [2]*inject.Source{
		inject.NewSource(1, "t", 1, wire.ToServer), inject.NewSource(1, "t", 1, wire.ToClient)}})
	return c, s, &inject.Settings{Delay: [2]inject.Delay{wire.ToServer: d, wire.ToClient: {Base: 10 * time.Millisecond}}}
}

// eightMbit are 1,000 bytes a millisecond.
const eightMbit = 8_000_000

func message(n int) string { return strings.Repeat("x", n-1) + "\n" }

// A long message trickles out as it is serialised, and its exchange tells the
// whole of it as planned delay.
func TestConn_BandwidthLetsAMessageTrickleOut(t *testing.T) {
	c, s, set := modelled(inject.Delay{Base: 5 * time.Millisecond, Bandwidth: eightMbit}, nil)
	var done *wire.Exchange
	s.open.Emit = func(x *wire.Exchange) bool { done = x; return true }
	read(c, wire.ToServer, message(10_000), 1*ms, set, 1<<20)
	for _, at := range []wire.Stamp{7, 8, 9, 16} {
		want := 0
		for arrived := wire.Stamp(0); arrived <= (at-6)*1000; arrived += inject.SegmentSize {
			want = int(arrived) // whole segments only
		}
		if at == 16 {
			want = 10_000
		}
		write(c, wire.ToServer, at*ms)
		if got := 10_000 - c.Live(wire.ToServer); got != want {
			t.Errorf("after %d ms %d bytes are written, want %d", at, got, want)
		}
	}
	read(c, wire.ToClient, "ok\n", 20*ms, set, 99)
	write(c, wire.ToClient, 30*ms)
	if done == nil || done.Sides[wire.ToServer].Planned != 15*time.Millisecond || done.Sides[wire.ToServer].LastOut != 16*ms {
		t.Errorf("%+v", done)
	}
}

// A message has one delay, however many parts it arrives in.
func TestConn_JitterIsDrawnOnceForAMessage(t *testing.T) {
	c, _, set := modelled(inject.Delay{Base: 50 * time.Millisecond, Jitter: 40 * time.Millisecond, Bandwidth: eightMbit}, nil)
	read(c, wire.ToServer, message(6*inject.SegmentSize), 1*ms, set, 99)
	first := c.Next(wire.ToServer)
	for i := range 6 {
		at := first.Add(time.Duration(i) * inject.SegmentSize * time.Microsecond)
		if got := write(c, wire.ToServer, at); len(got) != inject.SegmentSize {
			t.Fatalf("part %d: %d bytes at its time", i, len(got))
		}
	}
}

// More follows a read that filled its buffer: its last segment is repeated
// after a round trip, and only then, should that be lost, after time-outs.
func TestConn_AFullBufferIsNotTheEndOfAFlight(t *testing.T) {
	due := func(buf []byte) wire.Stamp {
		c, _, set := modelled(inject.Delay{Base: 30 * time.Millisecond, Loss: inject.RandomLoss(1)}, nil)
		copy(buf, message(len(buf)))
		c.Read(wire.ToServer, buf, 1, set)
		c.Decode(wire.ToServer, buf)
		return c.Next(wire.ToServer)
	}
	if part, full := due(make([]byte, 100, 101)), due(make([]byte, 100)); full != part+40*ms {
		t.Errorf("%v when full and %v when not: want a round trip between", time.Duration(full), time.Duration(part))
	}
}

func TestConn_SharesAPipeWithOthers(t *testing.T) {
	var pipe inject.Pipe
	a, _, set := modelled(inject.Delay{Bandwidth: eightMbit}, &pipe)
	b, _, _ := modelled(inject.Delay{}, &pipe)
	read(a, wire.ToServer, message(10_000), 1*ms, set, 1<<20)
	read(b, wire.ToServer, message(1000), 1*ms, set, 1<<20)
	if got := write(b, wire.ToServer, 12*ms-1); got != "" {
		t.Error("written before what came first")
	}
	if got := write(b, wire.ToServer, 12*ms); len(got) != 1000 {
		t.Errorf("%d bytes", len(got))
	}
}

func TestConn_ACancelPassesByEveryModel(t *testing.T) {
	c, _, set := modelled(inject.Delay{Base: time.Second, Bandwidth: 8, Window: 1, Loss: inject.RandomLoss(0.9)}, nil)
	if got := read(c, wire.ToServer, "!cancel\n", 1, set, 99); got != "!cancel\n" || c.Paused(wire.ToServer) {
		t.Errorf("%q", got)
	}
}

// flood is a sender that always has more, and a socket that takes everything:
// the time at which the last of n bytes was written, and the most that was in
// the line. It keeps a driver's promises and no others: it reads when it's not
// paused, and tries Resume when Wrote or LookAgain says so.
func flood(t *testing.T, c *Conn, set *inject.Settings, n int) (took wire.Stamp, most int) {
	t.Helper()
	const chunk = 64 << 10
	now, wrote := wire.Stamp(1), 0
	paused := false
	for rest := n; wrote < n; {
		for rest > 0 && !paused {
			b := []byte(message(min(chunk, rest)))
			rest -= len(b)
			r := c.Read(wire.ToServer, b, now, set)
			if r.Direct > 0 {
				c.Sent(wire.ToServer, b[:r.Direct], r.Direct, now)
				wrote += r.Direct
			}
			c.Decode(wire.ToServer, b)
			paused, most = r.Pause, max(most, c.Live(wire.ToServer))
		}
		next, again := c.Next(wire.ToServer), c.LookAgain(wire.ToServer)
		if paused && again != 0 && (next == 0 || again < next) {
			next = again
		}
		if next == 0 {
			t.Fatalf("stuck with %d bytes to go, paused %v", n-wrote, paused)
		}
		now = max(now, next)
		resume := paused && again != 0 && now >= again
		if v := bytes.Join(c.Due(wire.ToServer, now, 1<<20, nil), nil); len(v) > 0 {
			wrote += len(v)
			resume = c.Wrote(wire.ToServer, len(v), now) || resume
		}
		if resume {
			ok, _ := c.Resume(wire.ToServer, now)
			paused = !ok
		}
	}
	return now, most
}

// Whatever holds a sender up, it gets exactly what the model promises, and the
// line holds what is on its way, not all that it would like to send.
func TestConn_AFloodGetsTheBandwidthOrTheWindow(t *testing.T) {
	const second = 1000 * ms
	for name, c := range map[string]struct {
		delay  inject.Delay
		bytes  int
		lo, hi wire.Stamp // when the last byte arrives
		most   int
	}{
		"pipe": {inject.Delay{Bandwidth: eightMbit}, 3_000_000, 3 * second, 3*second + 1, 200_000},
		"long pipe": {inject.Delay{Bandwidth: eightMbit, Base: 300 * time.Millisecond}, 3_000_000,
			3*second + 300*ms, 3*second + 300*ms + 1, 500_000},
		// 100,000 bytes each 100 ms (90 there, 10 back): thirty windows.
		"window": {inject.Delay{Base: 90 * time.Millisecond, Window: 100_000}, 3_000_000,
			2990 * ms, 2990*ms + 30, 200_000},
		"window wider than the pipe": {inject.Delay{Base: 90 * time.Millisecond, Window: 1 << 20, Bandwidth: eightMbit}, 3_000_000,
			3*second + 90*ms, 3*second + 90*ms + 1, 300_000},
	} {
		t.Run(name, func(t *testing.T) {
			conn, _, set := modelled(c.delay, nil)
			took, most := flood(t, conn, set, c.bytes)
			if took < c.lo || took > c.hi {
				t.Errorf("took %v, want %v to %v", time.Duration(took), time.Duration(c.lo), time.Duration(c.hi))
			}
			if most > c.most {
				t.Errorf("%d bytes were in the line, want at most %d", most, c.most)
			}
		})
	}
}

// Loss delays bytes and never takes any: a flood arrives whole, later by what a
// lost segment costs.
func TestConn_LossOnlyTakesTime(t *testing.T) {
	const bytes = 100 << 10
	for _, rate := range []float64{0, 0.02, 0.5} {
		c, s, set := modelled(inject.Delay{Base: 30 * time.Millisecond, Loss: inject.RandomLoss(rate)}, nil)
		took, _ := flood(t, c, set, bytes)
		if s.decoded[wire.ToServer].Len() != bytes {
			t.Errorf("%d bytes", s.decoded[wire.ToServer].Len())
		}
		// One round trip is 40 ms; a lost segment takes at least that.
		if late := took > 70*ms; late != (rate > 0) {
			t.Errorf("at a loss of %v it took %v", rate, time.Duration(took))
		}
	}
}

// Messages in one read share the time that their segment takes.
func TestConn_PipelinedMessagesKeepTheirOrderUnderEveryModel(t *testing.T) {
	c, _, set := modelled(inject.Delay{
		Base: 5 * time.Millisecond, Jitter: 5 * time.Millisecond, Distribution: inject.Pareto, Correlation: 0.3,
		Loss: inject.Loss{P: 0.05, R: 0.3, Bad: 0.9}, Bandwidth: eightMbit, Window: 3000,
	}, nil)
	var want, got strings.Builder
	now := 1 * ms
	for i := range 2000 {
		m := fmt.Sprintf("%d %s\n", i, strings.Repeat("y", i%500))
		want.WriteString(m)
		got.WriteString(read(c, wire.ToServer, m, now, set, 99))
		now += ms / 7
		got.WriteString(write(c, wire.ToServer, now))
	}
	got.WriteString(write(c, wire.ToServer, now.Add(time.Hour)))
	if got.String() != want.String() {
		t.Error("other bytes, or in another order")
	}
}
