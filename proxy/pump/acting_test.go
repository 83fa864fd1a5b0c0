package pump

import (
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// always is a rule that acts on all bytes of a connection.
func always(e inject.Effect, w inject.With, ways inject.Ways) inject.Rule {
	return inject.Rule{Name: "r", Effect: e, With: w, When: inject.When{Direction: ways, Monitors: true}}
}

func TestActing_Latency(t *testing.T) {
	c := newRuledConn(t, 20*time.Millisecond, always(inject.EffectLatency, inject.With{Delay: 5 * time.Millisecond}, inject.BothWays))
	if c.inspecting {
		t.Error("messages are looked into, though nothing needs it")
	}
	c.reads(wire.ToServer, "find a\n", 10*ms)
	c.want(wire.ToServer, 25*ms, "find a\n")
	c.reads(wire.ToClient, "ok\n", 30*ms)
	c.want(wire.ToClient, 45*ms, "ok\n")
	if x := c.done[0]; len(x.Faults) != 1 || x.Faults[0].Rule != "r" || x.Sides[wire.ToServer].Planned != 15*time.Millisecond {
		t.Errorf("%+v", x)
	}
	c.rule(50 * ms)
	c.reads(wire.ToServer, "find b\n", 60*ms)
	c.want(wire.ToServer, 70*ms, "find b\n")
}

func TestActing_Bandwidth(t *testing.T) {
	// 8 kbit/s: a millisecond a byte.
	c := newRuledConn(t, 0, always(inject.EffectBandwidth, inject.With{Bandwidth: 8000}, inject.OnlyToServer))
	c.reads(wire.ToServer, "find abcd\n", 10*ms)
	c.want(wire.ToServer, 20*ms, "find abcd\n")
	if got := c.reads(wire.ToClient, "ok\n", 30*ms); got != "ok\n" {
		t.Errorf("the other direction: %q", got)
	}
	c = newRuledConn(t, 0, always(inject.EffectBandwidth, inject.With{}, inject.BothWays))
	c.reads(wire.ToServer, "find a\n", 10*ms)
	c.wantNothing(wire.ToServer)
	c.rule(20 * ms)
	c.want(wire.ToServer, 20*ms, "find a\n")
}

func TestActing_Slicer(t *testing.T) {
	c := newRuledConn(t, 0, always(inject.EffectSlicer, inject.With{Size: 4, Delay: time.Millisecond}, inject.OnlyToServer))
	c.reads(wire.ToServer, "0123456789\n", 10*ms)
	for i, b := range []string{"4567", "89\n"} {
		if i == 0 {
			if got := write(c.Conn, wire.ToServer, 10*ms); got != "" {
				t.Errorf("the first slice is written at once, and %q with it", got)
			}
		}
		c.want(wire.ToServer, wire.Stamp(11+i)*ms, b)
	}
}

func TestActing_SlowClose(t *testing.T) {
	c := newRuledConn(t, 10*time.Millisecond, always(inject.EffectSlowClose, inject.With{Delay: 30 * time.Millisecond}, inject.OnlyToServer))
	for d, due := range [2]wire.Stamp{45 * ms, 15 * ms} {
		dir := wire.Direction(d)
		c.ReadEnd(dir, inject.EndEOF, 10*ms, &c.set)
		if c.Next(dir) != due || c.Ended(dir, due-1) != inject.EndNone || c.Ended(dir, due) != inject.EndEOF {
			t.Errorf("%s: the end is due at %d, want %d", dir, c.Next(dir), due)
		}
	}
}

func TestActing_LimitData(t *testing.T) {
	c := newRuledConn(t, 10*time.Millisecond, always(inject.EffectLimitData, inject.With{Bytes: 10}, inject.OnlyToClient))
	c.reads(wire.ToServer, "a\nb\n", 0)
	c.want(wire.ToServer, 5*ms, "a\nb\n")
	c.reads(wire.ToClient, "ok 78\n", 10*ms)
	c.want(wire.ToClient, 15*ms, "ok 78\n")
	c.reads(wire.ToClient, "ok 78\n", 20*ms)
	c.want(wire.ToClient, 25*ms, "ok 7")
	if e := c.Ended(wire.ToClient, 25*ms); e != inject.EndCut {
		t.Errorf("the end is %v", e)
	}
}

func TestActing_Timeout(t *testing.T) {
	c := newRuledConn(t, 0, always(inject.EffectTimeout, inject.With{After: 50 * time.Millisecond}, inject.OnlyToClient))
	end := 1 + 50*ms
	if got := c.reads(wire.ToServer, "find a\n", 10*ms); got != "find a\n" {
		t.Errorf("the other direction: %q", got)
	}
	if got := c.reads(wire.ToClient, "ok\n", 20*ms); got != "" || c.Live(wire.ToClient) != 0 {
		t.Errorf("the client got %q", got)
	}
	// Traffic doesn't put the end off.
	c.reads(wire.ToServer, "find b\n", 40*ms)
	for d := range 2 {
		dir := wire.Direction(d)
		if c.Next(dir) != end || c.Ended(dir, end-1) != inject.EndNone {
			t.Errorf("%s: the end is due at %d, want %d", dir, c.Next(dir), end)
		}
	}
	if e := c.Ended(wire.ToServer, end); e != inject.EndCut {
		t.Errorf("the end is %v", e)
	}

	// Without a time there is no end, but with the rule.
	c = newRuledConn(t, 0, always(inject.EffectTimeout, inject.With{}, inject.BothWays))
	c.reads(wire.ToServer, "find a\n", 10*ms)
	c.wantNothing(wire.ToServer)
	c.rule(20 * ms)
	if c.Next(wire.ToClient) != 20*ms || c.Ended(wire.ToClient, 20*ms) != inject.EndCut {
		t.Error("the connection that lost bytes goes on")
	}
}

func TestActing_ResetPeer(t *testing.T) {
	c := newRuledConn(t, 0, always(inject.EffectResetPeer, inject.With{After: 5 * time.Millisecond}, inject.BothWays))
	c.wantNothing(wire.ToClient)
	if got := c.reads(wire.ToServer, "find a\n", 10*ms); got != "" {
		t.Errorf("the server got %q", got)
	}
	c.reads(wire.ToServer, "find b\n", 12*ms)
	if c.Next(wire.ToClient) != 15*ms || c.Ended(wire.ToClient, 15*ms) != inject.EndAbort {
		t.Errorf("the reset is due at %d", c.Next(wire.ToClient))
	}
}

// An effect on bytes with content in its match begins with the first request
// that matches, and its draw is of each match.
func TestActing_BeginsWithAMatch(t *testing.T) {
	c := newRuledConn(t, 0, inject.Rule{
		Name: "r", When: on("insert"), Effect: inject.EffectResetPeer, Limit: inject.Limit{Nth: 2},
	})
	if got := c.reads(wire.ToServer, "find a\ninsert b\n", 1); got != "find a\ninsert b\n" {
		t.Errorf("the server got %q", got)
	}
	if got := c.reads(wire.ToServer, "insert c\n", 2); got != "" || c.Ended(wire.ToClient, 2) != inject.EndAbort {
		t.Errorf("the server got %q, and no reset came", got)
	}
	if n := c.counts["r"]; n.matches != 2 || n.hits != 1 {
		t.Errorf("counted %+v", n)
	}
}

// A draw of what acts on a whole connection is made once, whatever comes and goes
// beside it.
func TestActing_OneDrawAConnection(t *testing.T) {
	r := always(inject.EffectLatency, inject.With{Delay: time.Millisecond}, inject.BothWays)
	r.Limit.Nth = 2
	c := newRuledConn(t, 0, r)
	for i := range 5 {
		c.rule(wire.Stamp(i+2), r, inject.Rule{Name: "s", Effect: inject.EffectSlowClose})
	}
	if n := c.counts["r"]; n.matches != 1 || n.hits != 0 {
		t.Errorf("counted %+v: want one match", n)
	}
}

func TestActing_WithoutRulesNothingIsHeld(t *testing.T) {
	c := newRuledConn(t, 0)
	if got := c.reads(wire.ToServer, strings.Repeat("find a\n", 100), 1); len(got) != 700 || c.inspecting || c.dirs[0].changed {
		t.Errorf("%d bytes of 700", len(got))
	}
}

// Nothing delays what is urgent, but a partition holds it like all else.
func TestActing_UrgentBytes(t *testing.T) {
	c := newRuledConn(t, 80*time.Millisecond, always(inject.EffectLatency, inject.With{Delay: time.Second}, inject.BothWays))
	if got := c.reads(wire.ToServer, "!cancel\n", 1); got != "!cancel\n" {
		t.Errorf("the server got %q", got)
	}
	c = newRuledConn(t, 0, always(inject.EffectHold, inject.With{}, inject.BothWays))
	if got := c.reads(wire.ToServer, "!cancel\n", 1); got != "" || c.Next(wire.ToServer) != 0 {
		t.Errorf("through the partition came %q", got)
	}
}
