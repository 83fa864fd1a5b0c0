package pump

import (
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// stacking is a rule that acts on all bytes of one way beside all others.
func stacking(name string, e inject.Effect, w inject.With, ways inject.Ways) inject.Rule {
	r := always(e, w, ways)
	r.Name, r.Stacks = name, true
	return r
}

// anew is the counts that a rule begins with that was changed.
func (c *ruledConn) anew(names ...string) {
	for _, n := range names {
		delete(c.counts, n)
	}
}

const down = inject.OnlyToClient

func TestStacked_LatenciesAddUp(t *testing.T) {
	a := stacking("a", inject.EffectLatency, inject.With{Delay: 5 * time.Millisecond}, down)
	b := stacking("b", inject.EffectLatency, inject.With{Delay: 7 * time.Millisecond}, down)
	c := newRuledConn(t, 20*time.Millisecond, a, always(inject.EffectLatency, inject.With{Delay: time.Millisecond}, down), b)
	c.reads(wire.ToServer, "find a\n", 0)
	c.want(wire.ToServer, 10*ms, "find a\n")
	c.reads(wire.ToClient, "ok\n", 30*ms)
	c.want(wire.ToClient, 53*ms, "ok\n")
	if x := c.done[0]; len(x.Faults) != 3 {
		t.Errorf("%d rules are on the exchange, want 3", len(x.Faults))
	}
}

// What waits for a rule that goes doesn't wait for it any longer, and what waits
// for others still does.
func TestStacked_WhatWaitsGoesOn(t *testing.T) {
	a := stacking("a", inject.EffectLatency, inject.With{Delay: time.Hour}, down)
	b := stacking("b", inject.EffectLatency, inject.With{Delay: 20 * time.Millisecond}, down)
	c := newRuledConn(t, 0, a, b)
	c.reads(wire.ToServer, "find a\nfind b\n", 0)
	c.reads(wire.ToClient, "ok\n", 10*ms)
	c.reads(wire.ToClient, "ok\n", 15*ms)
	c.ReadEnd(wire.ToClient, inject.EndEOF, 16*ms, &c.set)
	c.rule(18*ms, b)
	c.want(wire.ToClient, 30*ms, "ok\n")
	c.want(wire.ToClient, 35*ms, "ok\n")
	if due := c.Next(wire.ToClient); due != 36*ms {
		t.Errorf("the end is due at %d, want %d", due, 36*ms)
	}
}

// A rule that comes or goes beside others leaves what waits as it was drawn.
func TestStacked_OthersDontHastenAnything(t *testing.T) {
	a := stacking("a", inject.EffectLatency, inject.With{Delay: 50 * time.Millisecond, Jitter: 50 * time.Millisecond}, down)
	c := newRuledConn(t, 0, a)
	c.reads(wire.ToServer, "find a\nfind b\n", 0)
	c.reads(wire.ToClient, "ok\n", 10*ms)
	due := c.Next(wire.ToClient)
	c.reads(wire.ToClient, "ok\n", 10*ms) // another draw
	b := stacking("b", inject.EffectLatency, inject.With{Delay: time.Millisecond}, down)
	c.rule(11*ms, a, b)
	c.anew("x")
	c.rule(12*ms, a, b, stacking("x", inject.EffectSlowClose, inject.With{Delay: 1}, inject.OnlyToServer))
	if got := c.Next(wire.ToClient); got != due {
		t.Errorf("due at %d, was %d", got, due)
	}
}

func TestStacked_TheSmallestRate(t *testing.T) {
	// A millisecond a byte, and half of one.
	slow := stacking("slow", inject.EffectBandwidth, inject.With{Bandwidth: 8000}, down)
	fast := stacking("fast", inject.EffectBandwidth, inject.With{Bandwidth: 16000}, down)
	c := newRuledConn(t, 0, fast, slow)
	c.reads(wire.ToServer, "find a\n", 0)
	c.reads(wire.ToClient, "ok 3456789\n", 10*ms)
	c.want(wire.ToClient, 21*ms, "ok 3456789\n")
	stop := stacking("stop", inject.EffectBandwidth, inject.With{}, down)
	c.rule(30*ms, fast, slow, stop)
	c.reads(wire.ToServer, "find a\n", 30*ms)
	c.reads(wire.ToClient, "ok\n", 31*ms)
	c.wantNothing(wire.ToClient)
	// As fast as the others let it.
	c.rule(40*ms, fast, slow)
	c.want(wire.ToClient, 43*ms, "ok\n")
	// And a rate that is no longer 0 is one.
	c.anew("stop")
	c.rule(50*ms, stop)
	c.reads(wire.ToServer, "find a\nfind b\n", 50*ms)
	c.reads(wire.ToClient, "ok\n", 51*ms)
	c.reads(wire.ToClient, "ok\n", 52*ms)
	stop.With.Bandwidth = 8000
	c.anew("stop")
	c.rule(60*ms, stop)
	c.want(wire.ToClient, 66*ms, "ok\nok\n")
}

// A connection whose reading stands still for a rate reads on when that goes.
func TestStacked_ARateThatGoesLetsReadingGoOn(t *testing.T) {
	slow := stacking("slow", inject.EffectBandwidth, inject.With{Bandwidth: 8000}, down)
	c := newRuledConn(t, 0, slow)
	c.reads(wire.ToServer, "find a\n", 0)
	big := make([]byte, 32<<10)
	r := c.Read(wire.ToClient, big, 1, &c.set)
	c.Conn.Decode(wire.ToClient, big)
	if !r.Pause {
		t.Fatal("reading goes on at 1,000 bytes a second")
	}
	c.rule(2 * ms)
	if ok, _ := c.Resume(wire.ToClient, 2*ms); !ok {
		t.Error("reading still stands still")
	}
	if n := len(write(c.Conn, wire.ToClient, 2*ms)); n != len(big) {
		t.Errorf("%d bytes of %d are due", n, len(big))
	}
}

func TestStacked_LossesFollowEachOther(t *testing.T) {
	l := inject.RandomLoss(0.5).And(inject.RandomLoss(0.2)).And(inject.Loss{})
	if r := l.Rate(); r < 0.599 || r > 0.601 {
		t.Errorf("half of it, and a fifth of the rest, are %v", r)
	}
	if b := (inject.Loss{P: 0.1, R: 0.5, Bad: 1}); b.And(inject.Loss{}) != b || (inject.Loss{}).And(b) != b {
		t.Error("a wire that loses nothing changed the other's bursts")
	}
}

// Each slicer keeps its own pieces and its own pauses.
func TestStacked_Slicers(t *testing.T) {
	a := stacking("a", inject.EffectSlicer, inject.With{Size: 4, Delay: 10 * time.Millisecond}, inject.OnlyToServer)
	b := stacking("b", inject.EffectSlicer, inject.With{Size: 2, Delay: time.Millisecond}, inject.OnlyToServer)
	c := newRuledConn(t, 0, a, b)
	c.reads(wire.ToServer, "0123456\n", 10*ms)
	write(c.Conn, wire.ToServer, 10*ms) // what is due at once may have been written directly
	c.want(wire.ToServer, 11*ms, "23")
	c.want(wire.ToServer, 20*ms, "45")
	c.want(wire.ToServer, 21*ms, "6\n")
}

func TestStacked_LimitsCountForThemselves(t *testing.T) {
	a := stacking("a", inject.EffectLimitData, inject.With{Bytes: 100}, down)
	b := stacking("b", inject.EffectLimitData, inject.With{Bytes: 10}, down)
	c := newRuledConn(t, 0, a)
	c.reads(wire.ToServer, "a\nb\nc\n", 0)
	if got := c.reads(wire.ToClient, "ok 78\n", 1); got != "ok 78\n" {
		t.Errorf("the client got %q", got)
	}
	c.rule(2, a, b)
	if got := c.reads(wire.ToClient, "ok 78\n", 3); got != "ok 78\n" {
		t.Errorf("the second counts from its own beginning: %q", got)
	}
	// What was counted stays when the limit changes.
	b.With.Bytes = 8
	c.anew("b")
	c.rule(4, a, b)
	if got := c.reads(wire.ToClient, "ok 78\n", 5); got != "ok" || c.Ended(wire.ToClient, 5) != inject.EndCut {
		t.Errorf("the client got %q, and the end is %v", got, c.Ended(wire.ToClient, 5))
	}
}

func TestStacked_Timeouts(t *testing.T) {
	a := stacking("a", inject.EffectTimeout, inject.With{After: 50 * time.Millisecond}, down)
	b := stacking("b", inject.EffectTimeout, inject.With{After: 90 * time.Millisecond}, inject.OnlyToServer)
	c := newRuledConn(t, 0, a, b)
	if end := 1 + 50*ms; c.Next(wire.ToServer) != end {
		t.Errorf("the end is due at %d, want %d", c.Next(wire.ToServer), end)
	}
	// A change begins anew and cuts nothing.
	a.With.After = 100 * time.Millisecond
	c.anew("a")
	c.rule(10*ms, a, b)
	if end := 1 + 90*ms; c.Next(wire.ToServer) != end {
		t.Errorf("after the change the end is due at %d, want %d", c.Next(wire.ToServer), end)
	}
	c.rule(20*ms, b)
	if c.Ended(wire.ToClient, 20*ms) != inject.EndCut {
		t.Error("the connection that lost bytes goes on")
	}
}

// Behind bytes that were thrown away none may pass, though the end of the
// connection is still to be carried out when they are read.
func TestStacked_NothingFollowsWhatWasLost(t *testing.T) {
	for _, r := range []inject.Rule{
		stacking("x", inject.EffectTimeout, inject.With{}, down),
		stacking("x", inject.EffectResetPeer, inject.With{After: time.Hour}, down),
		always(inject.EffectTimeout, inject.With{}, down),
	} {
		for _, gone := range []func(c *ruledConn){
			func(c *ruledConn) { c.rule(6 * ms) },
			func(*ruledConn) {}, // by its time
		} {
			r.Limit.Until = 6 * time.Millisecond
			c := newRuledConn(t, 0, r)
			c.reads(wire.ToServer, "find a\nfind b\n", 0)
			lost := c.reads(wire.ToClient, "ok\n", 5*ms)
			gone(c)
			late := c.reads(wire.ToClient, "late\n", 7*ms)
			if due := write(c.Conn, wire.ToClient, 8*ms); lost+late+due != "" {
				t.Errorf("%v: %q, %q and %q passed", r.Effect, lost, late, due)
			}
			if c.Ended(wire.ToClient, 8*ms) == inject.EndNone {
				t.Errorf("%v: the connection that lost bytes goes on", r.Effect)
			}
		}
	}
}

// The wait of a reset ends with its rule: with the reset, for bytes are missing.
func TestStacked_ResetPeer(t *testing.T) {
	r := stacking("r", inject.EffectResetPeer, inject.With{After: time.Hour}, down)
	c := newRuledConn(t, 0, r)
	c.reads(wire.ToServer, "find a\n", 0)
	if c.Next(wire.ToClient) != 0 {
		t.Error("it doesn't wait for a byte")
	}
	if got := c.reads(wire.ToClient, "ok\n", 5*ms); got != "" || c.Next(wire.ToClient) != 5*ms+wire.Stamp(time.Hour) {
		t.Errorf("the client got %q", got)
	}
	c.rule(6 * ms)
	if c.Ended(wire.ToClient, 6*ms) != inject.EndAbort {
		t.Error("no reset came")
	}
	// A rule that nothing met leaves no trace.
	c = newRuledConn(t, 0, r)
	c.rule(1)
	if c.Next(wire.ToClient) != 0 {
		t.Error("an end is due")
	}
}

func TestStacked_SlowClose(t *testing.T) {
	a := stacking("a", inject.EffectSlowClose, inject.With{Delay: 30 * time.Millisecond}, down)
	b := stacking("b", inject.EffectSlowClose, inject.With{Delay: time.Hour}, down)
	c := newRuledConn(t, 0, a, b)
	c.ReadEnd(wire.ToClient, inject.EndEOF, 10*ms, &c.set)
	if want := 40*ms + wire.Stamp(time.Hour); c.Next(wire.ToClient) != want {
		t.Errorf("the end is due at %d, want %d", c.Next(wire.ToClient), want)
	}
	c.rule(20*ms, a)
	if c.Next(wire.ToClient) != 40*ms {
		t.Errorf("the end is due at %d, want %d", c.Next(wire.ToClient), 40*ms)
	}
}

// Each way has its draw, and a change another one.
func TestStacked_Draws(t *testing.T) {
	r := stacking("r", inject.EffectTimeout, inject.With{After: time.Second}, down)
	r.Limit.Nth = 2
	c := newRuledConn(t, 0, r)
	c.rule(1, r)
	if c.counts["r"].matches != 1 || len(c.dirs[wire.ToClient].stack) != 0 {
		t.Errorf("%+v", c.counts["r"])
	}
	r.Limit.Nth = 1
	c.anew("r")
	c.rule(2, r)
	if len(c.dirs[wire.ToClient].stack) != 1 {
		t.Error("the changed rule made no draw")
	}
	r.Limit.Nth = 7
	c.anew("r")
	c.rule(3, r)
	if len(c.dirs[wire.ToClient].stack) != 0 || c.Ended(wire.ToClient, 3) != inject.EndCut {
		t.Error("it acts without a draw, or the connection that may have lost bytes goes on")
	}
}

// With content in their match latencies add up on the exchange.
func TestStacked_LatenciesOfAnExchange(t *testing.T) {
	var rules []inject.Rule
	for i, name := range []string{"a", "b"} {
		rules = append(rules, inject.Rule{
			Name: name, When: on("insert"), Effect: inject.EffectLatency, Stacks: true,
			With: inject.With{Delay: time.Duration(10*(i+1)) * time.Millisecond},
		})
		rules[i].When.Direction = inject.OnlyToServer
	}
	c := newRuledConn(t, 0, rules...)
	c.reads(wire.ToServer, "insert a\n", 0)
	c.want(wire.ToServer, 30*ms, "insert a\n")
	if got := c.reads(wire.ToServer, "find a\n", 40*ms); got != "find a\n" {
		t.Errorf("the server got %q", got)
	}
}

// A rule whose time is over is as one that went.
func TestStacked_Until(t *testing.T) {
	r := stacking("r", inject.EffectLatency, inject.With{Delay: time.Hour}, down)
	r.Limit.Until = 30 * time.Millisecond
	c := newRuledConn(t, 0, r)
	c.reads(wire.ToServer, "find a\n", 0)
	c.reads(wire.ToClient, "ok\n", 10*ms)
	end := c.Next(wire.ToClient)
	if end > 31*ms {
		t.Fatalf("looks again at %d", end)
	}
	if got := write(c.Conn, wire.ToClient, end); got != "ok\n" {
		t.Errorf("the client got %q", got)
	}
}
