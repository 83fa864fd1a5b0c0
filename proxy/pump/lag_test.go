package pump

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// memberSession is a connection of which a test says what it carries.
type memberSession struct {
	wire.Session
	is wire.Replication
}

func (s *memberSession) Replication() wire.Replication { return s.is }

const second = 1000 * ms

func lagOf(name string, d time.Duration, w inject.When) inject.Rule {
	return inject.Rule{Name: name, Effect: inject.EffectLag, When: w, With: inject.With{Delay: d}}
}

func newMemberConn(t *testing.T, is wire.Replication, rules ...inject.Rule) (*ruledConn, *memberSession) {
	s := &memberSession{wire.NewOpaque(), is}
	c := &ruledConn{Conn: newConn(s, nil), t: t, counts: map[string]*count{}}
	c.rule(1, rules...)
	return c, s
}

// passes checks when what comes at now leaves.
func (c *ruledConn) passes(dir wire.Direction, now, due wire.Stamp) {
	c.t.Helper()
	if got := c.reads(dir, "log\n", now); got != "" {
		if now != due {
			c.t.Errorf("%s: what came at %d left at once, want %d", dir, now, due)
		}
		return
	}
	c.want(dir, due, "log\n")
}

// The shift of what comes is exact, on its way up and on its way back.
func TestLag_GrowsStaysAndRecovers(t *testing.T) {
	c, s := newMemberConn(t, wire.Replication{}, lagOf("behind", 4*time.Second, inject.When{}))
	c.passes(wire.ToClient, 500*ms, 500*ms) // nothing tells yet that it's a member's
	s.is.Log = true
	c.passes(wire.ToClient, 1*second, 1*second)
	c.passes(wire.ToClient, 2*second, 2500*ms)
	c.passes(wire.ToClient, 5*second, 7*second)
	c.passes(wire.ToClient, 9*second, 13*second)
	c.passes(wire.ToClient, 3600*second, 3604*second)
	c.passes(wire.ToServer, 3605*second, 3605*second) // what it acknowledges isn't shifted
	if c.counts["behind"].hits != 1 {
		t.Errorf("counted %+v", c.counts["behind"])
	}
	c.rule(4000 * second)
	c.passes(wire.ToClient, 4000*second, 4004*second)
	c.passes(wire.ToClient, 4005*second, 4006500*ms)
	c.passes(wire.ToClient, 4007999999998, 4007999999999)
	c.passes(wire.ToClient, 4008*second, 4008*second)
	if p := &c.dirs[wire.ToClient]; p.shift != nil || p.changed {
		t.Error("something is left of it")
	}
}

// What came while the lag was larger isn't overtaken, and the end of the stream
// keeps its place.
func TestLag_ChangesUnderTraffic(t *testing.T) {
	slow, quick := lagOf("slow", 4*time.Second, inject.When{}), lagOf("quick", time.Second, inject.When{})
	slow.With.Ramp, quick.With.Ramp = 1, 1
	c, _ := newMemberConn(t, wire.Replication{Log: true}, slow)
	c.passes(wire.ToClient, 1*second, 1*second+1*second-1) // aimed at 1
	c.reads(wire.ToClient, "one\n", 10*second)
	c.rule(11*second, quick)
	c.reads(wire.ToClient, "two\n", 12*second)
	c.ReadEnd(wire.ToClient, inject.EndEOF, 12500*ms, &c.set)
	c.rule(13 * second)
	c.want(wire.ToClient, 14*second, "one\n")
	c.want(wire.ToClient, 15*second, "two\n")
	if c.Ended(wire.ToClient, 15*second-1) != inject.EndNone || c.Ended(wire.ToClient, 15*second) != inject.EndEOF {
		t.Error("the end left its place")
	}
}

func TestLag_Acknowledgements(t *testing.T) {
	both := lagOf("both", 4*time.Second, inject.When{})
	both.With.Acknowledgements = true
	c, s := newMemberConn(t, wire.Replication{Progress: true}, lagOf("log", time.Second, inject.When{}), both)
	c.passes(wire.ToServer, 0, 0)
	c.passes(wire.ToServer, 20*second, 24*second)
	c.passes(wire.ToClient, 30*second, 30*second)
	if c.counts["log"].matches != 0 || c.counts["both"].hits != 1 {
		t.Errorf("counted %+v and %+v", c.counts["log"], c.counts["both"])
	}
	// A stream that carries both has the first rule's lag, which leaves
	// acknowledgements alone.
	s.is.Log = true
	c.passes(wire.ToClient, 60*second, 60*second)
	c.passes(wire.ToClient, 70*second, 71*second)
	c.passes(wire.ToServer, 80*second, 80*second)
}

// The first rule that matches and fires wins, whenever it comes, and each is drawn
// once for a connection.
func TestLag_FirstMatchWins(t *testing.T) {
	s1, s2 := &wire.Peer{Application: "s1"}, &wire.Peer{Application: "s2"}
	when := inject.When{Application: []string{"s1"}}
	never := lagOf("never", 9*time.Second, when)
	never.Limit.Nth = 7
	base := lagOf("base", 2*time.Second, when)
	c, _ := newMemberConn(t, wire.Replication{Log: true, Peer: s1}, never, base)
	c.passes(wire.ToClient, 1*second, 1500*ms-1) // aimed at 1
	c.passes(wire.ToClient, 10*second, 12*second)
	step := lagOf("step", 3*time.Second, when)
	c.rule(20*second, step, never, base)
	c.passes(wire.ToClient, 30*second, 33*second)
	c.rule(40*second, never, base)
	c.passes(wire.ToClient, 41*second, 43500*ms)
	c.passes(wire.ToClient, 50*second, 52*second)
	for name, n := range map[string]count{"never": {matches: 1}, "base": {matches: 1, hits: 1}, "step": {matches: 1, hits: 1}} {
		if got := c.counts[name]; got.matches != n.matches || got.hits != n.hits {
			t.Errorf("%s: counted %+v, want %+v", name, got, n)
		}
	}
	other, _ := newMemberConn(t, wire.Replication{Log: true, Peer: s2}, never, base)
	other.passes(wire.ToClient, 30*second, 30*second)
	from, _ := newMemberConn(t, wire.Replication{Log: true, Peer: s1}, lagOf("b", 2*time.Second, inject.When{From: []string{"rs0.b"}}))
	from.passes(wire.ToClient, 30*second, 30*second)
	from.SetFrom("rs0.b", 31*second)
	from.passes(wire.ToClient, 41*second, 43*second)
}

// A rule whose time is over recovers as one that is gone.
func TestLag_Until(t *testing.T) {
	r := lagOf("a", 2*time.Second, inject.When{})
	r.Limit.Until = time.Minute
	c, _ := newMemberConn(t, wire.Replication{Log: true}, r)
	c.passes(wire.ToClient, 30*second, 32*second)
	c.passes(wire.ToClient, 61*second, 63*second) // seen to be over, and still there
	c.passes(wire.ToClient, 63*second, 64*second)
	c.passes(wire.ToClient, 70*second, 70*second)
}

// A stream that turns out to be an application's recovers, and one that nobody lags
// isn't touched.
func TestLag_NoMembersStream(t *testing.T) {
	c, s := newMemberConn(t, wire.Replication{Log: true}, lagOf("a", 2*time.Second, inject.When{}))
	c.passes(wire.ToClient, 30*second, 32*second)
	s.is = wire.Replication{}
	c.passes(wire.ToClient, 40*second, 42*second)
	c.passes(wire.ToClient, 44*second, 44*second)
	c, _ = newMemberConn(t, wire.Replication{}, lagOf("a", 2*time.Second, inject.When{}))
	c.passes(wire.ToClient, 30*second, 30*second)
	if c.counts["a"].matches != 0 || c.dirs[wire.ToClient].changed {
		t.Error("a connection that is no member's was matched")
	}
}

// A link's window bounds what is on its wire, and not what a member lags by.
func TestLag_IsNoneOfTheWindows(t *testing.T) {
	c, _ := newMemberConn(t, wire.Replication{Log: true}, lagOf("a", 2*time.Second, inject.When{}))
	c.set = inject.Symmetric(20*time.Millisecond, 0)
	c.set.Delay[wire.ToClient].Window = 1000
	c.reads(wire.ToClient, "begin\n", 1*second)
	write(c.Conn, wire.ToClient, 10*second)
	line := strings.Repeat("x", 499) + "\n"
	for i := range wire.Stamp(10) {
		if c.reads(wire.ToClient, line, 20*second+i*20*ms); c.Paused(wire.ToClient) {
			t.Fatalf("paused after %d messages", i+1)
		}
	}
	for i := range wire.Stamp(10) {
		c.want(wire.ToClient, 22*second+i*20*ms+10*ms, line)
	}
}

// FuzzLag has lags come, change and go under traffic, by a script of two bytes a
// step: all of it leaves, in its order, never due before what came first.
func FuzzLag(f *testing.F) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{20, 400, 20_000} {
		script := make([]byte, n)
		for i := range script {
			script[i] = byte(rnd.IntN(256))
		}
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		c, s := newMemberConn(t, wire.Replication{Log: true, Progress: true})
		var in, out [2]bytes.Buffer
		now, due := 1*second, [2]wire.Stamp{}
		for ; len(script) > 1; script = script[2:] {
			op, arg := script[0], script[1]
			now = now.Add(time.Duration(arg) * 100 * time.Microsecond)
			switch {
			case op < 6:
				r := lagOf("a", time.Duration(1+int(arg))*20*time.Millisecond, inject.When{})
				r.With.Ramp, r.With.Acknowledgements = float64(1+arg/2)/128, op%2 == 0
				c.counts = map[string]*count{} // another rule, though of the same name
				c.rule(now, r)
			case op < 10:
				c.rule(now)
			case op < 14:
				s.is.Progress = !s.is.Progress
			}
			dir := wire.Direction(op & 1)
			b := strings.Repeat(string('a'+rune(op%26)), int(arg)) + "\n"
			in[dir].WriteString(b)
			out[dir].WriteString(c.reads(dir, b, now))
			for d := range out {
				if next := c.Next(wire.Direction(d)); next != 0 {
					if next < due[d] {
						t.Fatalf("due at %d, after what was due at %d", next, due[d])
					}
					due[d] = next
				}
				out[d].WriteString(write(c.Conn, wire.Direction(d), now))
			}
		}
		for d := range out {
			out[d].WriteString(write(c.Conn, wire.Direction(d), now.Add(time.Minute)))
			if !bytes.Equal(in[d].Bytes(), out[d].Bytes()) {
				t.Errorf("%d bytes in, %d out, or others", in[d].Len(), out[d].Len())
			}
		}
	})
}
