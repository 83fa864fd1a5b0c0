package pump

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// ruledSession is lineSession's protocol with an Inspector: a request is
// "command collection", a reply "ok ..." or an error. A request in a "block" is
// refused by having the server raise the error, and "tick" watches the server.
type ruledSession struct {
	*lineSession
	said  [2][]byte // of the message at hand
	asked *wire.Exchange
	acks  []wire.Acknowledgement

	opaque error
}

func (s *ruledSession) Opaque() error { return s.opaque }

func newRuledSession() *ruledSession { return &ruledSession{lineSession: newLineSession()} }

func (s *ruledSession) FrameOne(dir wire.Direction, b []byte, now wire.Stamp) wire.Piece {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		b = b[:i+1]
	}
	return s.Frame(dir, b, now, nil)[0]
}

func (s *ruledSession) Decode(dir wire.Direction, b []byte, ps []wire.Piece) {
	s.asked, s.acks = nil, nil
	for _, p := range ps {
		s.said[dir] = append(s.said[dir], b[:p.Len]...)
		if b = b[p.Len:]; p.Last {
			s.read(dir, strings.TrimSuffix(string(s.said[dir]), "\n"), p.Exchange)
			s.said[dir] = nil
		}
	}
	s.lineSession.Decode(dir, nil, ps)
}

func (s *ruledSession) read(dir wire.Direction, line string, x *wire.Exchange) {
	if dir == wire.ToServer {
		x.Operation, x.Collection, _ = strings.Cut(line, " ")
		x.Mongo.Monitor = x.Operation == "tick"
		s.asked = x
		return
	}
	x.Answered = true
	a := wire.Acknowledgement{Exchange: x}
	if x.OK = strings.HasPrefix(line, "ok"); !x.OK {
		a.Obstacle = wire.ReplyFailed
	}
	s.acks = append(s.acks, a)
}

func (s *ruledSession) Monitors() bool                                    { return true }
func (s *ruledSession) Removing() bool                                    { return false }
func (s *ruledSession) Asked() wire.Asked                                 { return wire.Asked{Exchange: s.asked, Known: true} }
func (s *ruledSession) Turn(x *wire.Exchange) bool                        { return s.waiting[0] == x }
func (s *ruledSession) Acknowledged() []wire.Acknowledgement              { return s.acks }
func (s *ruledSession) CanFail(*wire.Exchange, *wire.Failure) wire.Reason { return wire.Applies }

func (s *ruledSession) CanRefuse(*wire.Failure) wire.Reason {
	if s.asked.Operation == "copy" {
		return wire.InCopy
	}
	return wire.Applies
}

func (s *ruledSession) Refuse(f *wire.Failure) wire.Refusal {
	if s.asked.Collection == "block" {
		return wire.Refusal{Forward: []byte("raise " + f.Code + "\n")}
	}
	return wire.Refusal{Answer: []byte("error " + f.Code + "\n"), Cut: f.Fatal}
}

func (s *ruledSession) Fail(_ *wire.Exchange, f *wire.Failure, b, out []byte) []byte {
	return fmt.Appendf(out, "error %s in place of %d bytes\n", f.Code, len(b))
}

// count is inject.Hits.
type count struct {
	matches, hits uint64
	not           []wire.Reason
}

func (n *count) Match() uint64               { n.matches++; return n.matches }
func (n *count) Hit()                        { n.hits++ }
func (n *count) NotApplicable(r wire.Reason) { n.not = append(n.not, r) }

// ruledConn is a connection with rules and what they counted.
type ruledConn struct {
	*Conn
	*ruledSession
	t      *testing.T
	set    inject.Settings
	counts map[string]*count
	done   []*wire.Exchange
}

func newRuledConn(t *testing.T, rtt time.Duration, rules ...inject.Rule) *ruledConn {
	s := newRuledSession()
	c := &ruledConn{Conn: newConn(s, nil), ruledSession: s, t: t, set: inject.Symmetric(rtt, 0), counts: map[string]*count{}}
	s.open.Emit = func(x *wire.Exchange) bool { c.done = append(c.done, x); return true }
	c.rule(1, rules...)
	return c
}

func (c *ruledConn) rule(now wire.Stamp, rules ...inject.Rule) {
	c.SetRules(inject.Compile(rules, inject.Place{Seed: 42, Standing: func(r *inject.Rule) (inject.Hits, wire.Stamp) {
		if c.counts[r.Name] == nil {
			c.counts[r.Name] = &count{}
		}
		return c.counts[r.Name], now
	}}), now)
}

// reads gives it bytes that were read, and returns what was to be written at once.
func (c *ruledConn) reads(dir wire.Direction, b string, now wire.Stamp) string {
	return read(c.Conn, dir, b, now, &c.set, 1<<30)
}

// want checks that nothing is written before due, and then that.
func (c *ruledConn) want(dir wire.Direction, due wire.Stamp, b string) {
	c.t.Helper()
	if got := write(c.Conn, dir, due-1); got != "" {
		c.t.Errorf("%s: %q was written before %d", dir, got, due)
	}
	if next := c.Next(dir); next != due {
		c.t.Errorf("%s: the next is due at %d, want %d", dir, next, due)
	}
	if got := write(c.Conn, dir, due); got != b {
		c.t.Errorf("%s: %q was written at %d, want %q", dir, got, due, b)
	}
}

func (c *ruledConn) wantNothing(dir wire.Direction) {
	c.t.Helper()
	if next := c.Next(dir); next != 0 {
		c.t.Errorf("%s: something is due at %d", dir, next)
	}
}

func on(command string) inject.When { return inject.When{Command: []string{command}} }

func refuse(name, command string) inject.Rule {
	return inject.Rule{Name: name, When: on(command), Effect: inject.EffectRefuse, With: inject.With{Code: "91"}}
}

// A refusal takes as long as the server's would.
func TestRules_RefuseAnswersAfterARoundTrip(t *testing.T) {
	c := newRuledConn(t, 80*time.Millisecond, refuse("full", "insert"))
	c.reads(wire.ToServer, "insert orders\n", 10*ms)
	c.wantNothing(wire.ToServer)
	c.want(wire.ToClient, 90*ms, "error 91\n")
	if len(c.done) != 1 {
		t.Fatalf("%d exchanges", len(c.done))
	}
	x := c.done[0]
	if x.OK || !x.Answered || len(x.Faults) != 1 || x.Faults[0] != (wire.Fault{Rule: "full", Effect: "refuse", Draw: "42:full:1", Code: "91"}) {
		t.Errorf("%+v", x)
	}
	if q, r := x.Sides[wire.ToServer], x.Sides[wire.ToClient]; q.FirstIn != 10*ms || r.LastIn != 50*ms || r.LastOut != 90*ms {
		t.Errorf("request %+v, reply %+v", q, r)
	}
}

// What is made up keeps its place among the server's replies.
func TestRules_RefusalsWaitForTheirTurn(t *testing.T) {
	c := newRuledConn(t, 0, refuse("full", "insert"))
	got := c.reads(wire.ToServer, "find a\ninsert b\nfind c\ninsert d\n", 1)
	got += write(c.Conn, wire.ToServer, 1)
	if got != "find a\nfind c\n" {
		t.Errorf("the server got %q", got)
	}
	c.wantNothing(wire.ToClient)
	out := c.reads(wire.ToClient, "ok", 2) // within a message
	out += c.reads(wire.ToClient, " a\nok c\n", 3)
	out += write(c.Conn, wire.ToClient, 3)
	if out != "ok a\nerror 91\nok c\nerror 91\n" {
		t.Errorf("the client got %q", out)
	}
	if len(c.done) != 4 || !c.Quiet() {
		t.Errorf("%d exchanges, quiet %v", len(c.done), c.Quiet())
	}
}

// A replaced request's own marks are kept: the exchange's bytes and stamps are
// those of what the client sent.
func TestRules_RefuseOnTheServer(t *testing.T) {
	c := newRuledConn(t, 0, refuse("full", "insert"))
	got := c.reads(wire.ToServer, "find a\ninsert block\nfind c\n", 1) + write(c.Conn, wire.ToServer, 2)
	if got != "find a\nraise 91\nfind c\n" {
		t.Errorf("the server got %q", got)
	}
	if got := c.reads(wire.ToClient, "ok\nerror 91\nok\n", 3); got != "ok\nerror 91\nok\n" {
		t.Errorf("the client got %q", got)
	}
	if len(c.done) != 3 {
		t.Fatalf("%d exchanges", len(c.done))
	}
	for i, n := range []int64{7, 13, 7} {
		if s := c.done[i].Sides[wire.ToServer]; s.Bytes != n || s.LastOut == 0 {
			t.Errorf("request %d: %+v", i, s)
		}
	}
}

func TestRules_FatalRefusalEndsTheConnection(t *testing.T) {
	r := refuse("gone", "insert")
	r.With.Fatal = true
	c := newRuledConn(t, 20*time.Millisecond, r)
	c.reads(wire.ToServer, "insert a\nfind b\n", 10*ms)
	c.wantNothing(wire.ToServer)
	c.want(wire.ToClient, 30*ms, "error 91\n")
	if e := c.Ended(wire.ToClient, 30*ms); e != inject.EndCut {
		t.Errorf("the end is %v", e)
	}
	if got := c.reads(wire.ToServer, "find c\n", 40*ms); got != "" || c.Next(wire.ToServer) != 0 {
		t.Errorf("the server got %q afterwards", got)
	}
}

func TestRules_LoseReply(t *testing.T) {
	c := newRuledConn(t, 20*time.Millisecond, inject.Rule{Name: "lost", When: on("insert"), Effect: inject.EffectLoseReply})
	c.reads(wire.ToServer, "find a\ninsert b\ninsert c\n", 10*ms)
	c.want(wire.ToServer, 20*ms, "find a\ninsert b\ninsert c\n")
	c.reads(wire.ToClient, "ok a\nno\nok c\nok d\n", 30*ms)
	c.want(wire.ToClient, 40*ms, "ok a\nno\n") // earlier replies are delivered
	if e := c.Ended(wire.ToClient, 40*ms); e != inject.EndCut {
		t.Errorf("the end is %v", e)
	}
	if n := c.counts["lost"]; n.hits != 1 || !slices.Equal(n.not, []wire.Reason{wire.ReplyFailed}) {
		t.Errorf("counted %+v", n)
	}
	c.Close()
	if len(c.done) != 3 || c.done[2].Sides[wire.ToClient].LastOut != 0 || c.done[2].Faults[0].Effect != "lose_reply" {
		t.Errorf("%d exchanges, the last %+v", len(c.done), c.done[len(c.done)-1])
	}
}

func TestRules_FailReply(t *testing.T) {
	c := newRuledConn(t, 0, inject.Rule{Name: "f", When: on("insert"), Effect: inject.EffectFailReply, With: inject.With{Code: "64"}, Limit: inject.Limit{Nth: 2}})
	c.reads(wire.ToServer, "insert a\ninsert b\ninsert c\n", 1)
	out := c.reads(wire.ToClient, "ok a\nok", 2) + write(c.Conn, wire.ToClient, 2)
	out += c.reads(wire.ToClient, " b\nok c\n", 3) + write(c.Conn, wire.ToClient, 3)
	if out != "ok a\nerror 64 in place of 5 bytes\nok c\n" {
		t.Errorf("the client got %q", out)
	}
	if len(c.done) != 3 || len(c.done[1].Faults) != 1 || !c.done[1].OK {
		t.Errorf("%d exchanges", len(c.done))
	}
}

func TestRules_LatencyOfAnExchange(t *testing.T) {
	slow := inject.Rule{Name: "slow", When: on("insert"), Effect: inject.EffectLatency, With: inject.With{Delay: 30 * time.Millisecond}}
	back := inject.Rule{Name: "back", When: on("update"), Effect: inject.EffectLatency, With: inject.With{Delay: 5 * time.Millisecond}}
	back.When.Direction = inject.OnlyToClient
	c := newRuledConn(t, 20*time.Millisecond, slow, back)
	c.reads(wire.ToServer, "find a\n", 0)
	c.want(wire.ToServer, 10*ms, "find a\n")
	c.reads(wire.ToServer, "insert b\n", 20*ms)
	c.want(wire.ToServer, 60*ms, "insert b\n")
	c.reads(wire.ToServer, "update c\n", 70*ms)
	c.want(wire.ToServer, 80*ms, "update c\n")
	c.reads(wire.ToClient, "ok a\n", 100*ms)
	c.want(wire.ToClient, 110*ms, "ok a\n")
	c.reads(wire.ToClient, "ok b\n", 120*ms)
	c.want(wire.ToClient, 160*ms, "ok b\n")
	c.reads(wire.ToClient, "ok c\n", 170*ms)
	c.want(wire.ToClient, 185*ms, "ok c\n")
	if x := c.done[1]; x.Sides[wire.ToServer].Planned != 40*time.Millisecond || x.Faults[0].Rule != "slow" {
		t.Errorf("%+v", x)
	}
}

// A partition holds what comes from the matching request on, and lets it go when
// the rule is gone or over.
func TestRules_Hold(t *testing.T) {
	hold := inject.Rule{Name: "cut-off", When: on("insert"), Effect: inject.EffectHold}
	for name, until := range map[string]time.Duration{"until the rule is gone": 0, "until its time is over": 90 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			hold.Limit.Until = until
			c := newRuledConn(t, 0, hold)
			if got := c.reads(wire.ToServer, "find a\ninsert b\nfind c\n", 10*ms); got != "find a\n" {
				t.Errorf("the server got %q", got)
			}
			c.reads(wire.ToClient, "ok a\n", 11*ms)
			c.ReadEnd(wire.ToServer, inject.EndEOF, 12*ms, &c.set)
			if got := write(c.Conn, wire.ToServer, 80*ms) + write(c.Conn, wire.ToClient, 80*ms); got != "" {
				t.Errorf("through the partition came %q", got)
			}
			now := 90 * ms
			if until == 0 {
				c.rule(now)
			} else if now++; c.Next(wire.ToServer) != now {
				t.Errorf("to look again at %d", c.Next(wire.ToServer))
			}
			if got := write(c.Conn, wire.ToServer, now); got != "insert b\nfind c\n" {
				t.Errorf("afterwards the server got %q", got)
			}
			if got := write(c.Conn, wire.ToClient, now); got != "ok a\n" {
				t.Errorf("afterwards the client got %q", got)
			}
			if e := c.Ended(wire.ToServer, now); e != inject.EndEOF {
				t.Errorf("the end is %v", e)
			}
		})
	}
}

// Monitoring connections are spared, and so is a connection until it turns out to
// be none.
func TestRules_MonitorsAreSpared(t *testing.T) {
	c := newRuledConn(t, 0, inject.Rule{Name: "r", Effect: inject.EffectHold}, refuse("full", "tick"))
	if got := c.reads(wire.ToServer, "tick\n", 1); got != "tick\n" {
		t.Errorf("the server got %q", got)
	}
	if got := c.reads(wire.ToClient, "ok\n", 2); got != "ok\n" {
		t.Errorf("the client got %q", got)
	}
	if got := c.reads(wire.ToServer, "find a\n", 3); got != "" {
		t.Errorf("the server got %q", got)
	}
	if c.counts["r"].hits != 1 || c.counts["full"].matches != 0 {
		t.Errorf("counted %+v and %+v", c.counts["r"], c.counts["full"])
	}
}

// streamSession may be a monitor or carry a member's stream.
type streamSession struct {
	*ruledSession
	is wire.Replication
}

func (s *streamSession) Replication() wire.Replication { return s.is }

// A member's stream is no monitor, though it brings no command any more when rules
// come.
func TestRules_HoldAStreamThatGoesOn(t *testing.T) {
	for _, log := range []bool{false, true} {
		s := &streamSession{newRuledSession(), wire.Replication{Log: log}}
		c := &ruledConn{Conn: newConn(s, nil), t: t, counts: map[string]*count{}}
		c.reads(wire.ToServer, "tick\n", 1)
		c.rule(2, inject.Rule{Name: "r", Effect: inject.EffectHold})
		if got := c.reads(wire.ToClient, "ok\n", 3); (got == "") != log {
			t.Errorf("log %v: the member got %q", log, got)
		}
	}
}

// Rules may come and go within a message: it passes as it began.
func TestRules_ChangeWithinAMessage(t *testing.T) {
	c := newRuledConn(t, 0)
	got := c.reads(wire.ToServer, "inse", 1)
	c.rule(2, refuse("full", "insert"))
	got += c.reads(wire.ToServer, "rt a\nins", 3)
	c.rule(4)
	got += c.reads(wire.ToServer, "ert b\ninsert c\n", 5) + write(c.Conn, wire.ToServer, 5)
	if got != "insert a\ninsert b\ninsert c\n" {
		t.Errorf("the server got %q", got)
	}
	if c.inspecting {
		t.Error("messages are still looked into")
	}
}

// What can't be refused passes, and is counted.
func TestRules_NotApplicable(t *testing.T) {
	c := newRuledConn(t, 0, refuse("full", "copy"))
	if got := c.reads(wire.ToServer, "copy a\n", 1); got != "copy a\n" {
		t.Errorf("the server got %q", got)
	}
	if n := c.counts["full"]; n.matches != 0 || !slices.Equal(n.not, []wire.Reason{wire.InCopy}) {
		t.Errorf("counted %+v", n)
	}
}

// A request of which more came than is kept back is refused if it's known early
// what it asks for.
func TestRules_LargeMessages(t *testing.T) {
	c := newRuledConn(t, 0, inject.Rule{Name: "f", When: on("insert"), Effect: inject.EffectFailReply, With: inject.With{Code: "64"}})
	c.reads(wire.ToServer, "insert a\n", 1)
	big := "ok " + strings.Repeat("x", window)
	out := c.reads(wire.ToClient, big[:100], 2)
	if out != "" {
		t.Errorf("%d bytes passed before the reply was whole", len(out))
	}
	out += c.reads(wire.ToClient, big[100:], 3) + write(c.Conn, wire.ToClient, 3)
	out += c.reads(wire.ToClient, "\n", 4) + write(c.Conn, wire.ToClient, 4)
	if out != big+"\n" || !slices.Equal(c.counts["f"].not, []wire.Reason{wire.TooLarge}) {
		t.Errorf("%d bytes, counted %+v", len(out), c.counts["f"])
	}
}

// Where messages can't be told apart any more, a reply that waits for its turn
// would never come, and the connection ends.
func TestRules_RefusalsOfAnOpaqueSession(t *testing.T) {
	c := newRuledConn(t, 0, refuse("full", "insert"))
	c.reads(wire.ToServer, "find a\ninsert b\n", 1)
	c.opaque = wire.ErrMalformed
	c.reads(wire.ToClient, "?", 2)
	if e := c.Ended(wire.ToClient, 2); e != inject.EndCut || c.answers.Len() != 0 {
		t.Errorf("the end is %v, and %d replies wait", e, c.answers.Len())
	}
}
