package trace

import (
	"testing"

	"github.com/wirewait/wirewait/wire"
)

// talk is what happens between members, in whole milliseconds.
type talk struct{ g replicas }

func ms64(ms int) wire.Stamp { return wire.Stamp(ms) * 1e6 }

var connections = map[string]uint64{"s1": 1, "s2": 2, "s3": 3}

func (k *talk) sent(at int, member string, lsn uint64, commits ...wire.Commit) {
	k.g.report(&wire.Report{Kind: wire.ReportSent, In: ms64(at), Member: member, Connection: connections[member], Sent: wire.LSN(lsn), Commits: commits, CaughtUp: true})
}

// acked is an acknowledgement of write, flush and apply.
func (k *talk) acked(at int, member string, write, flush, apply uint64) {
	k.g.report(&wire.Report{
		Kind: wire.ReportReached, Out: ms64(at), Member: member, Connection: connections[member],
		Reached: []wire.Progress{{Member: member, Reached: [wire.Levels]wire.Position{wire.LSN(write), wire.LSN(flush), wire.LSN(apply)}}},
	})
}

func (k *talk) joined(at int, member string) {
	k.g.report(&wire.Report{Kind: wire.ReportJoined, Out: ms64(at), Member: member, Connection: connections[member], CaughtUp: true})
}

func (k *talk) left(at int, member string) {
	k.g.report(&wire.Report{Kind: wire.ReportLeft, Out: ms64(at), Member: member, Connection: connections[member]})
}

func rule(t *testing.T, names string) Rule {
	t.Helper()
	n, err := ParseStandbyNames(names)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestReleased_ByRuleAndLevel(t *testing.T) {
	// A commit ends at 100. s1 acknowledges write, flush and apply at 20, 21, 22
	// ms, s2 at 60, 61, 62.
	var k talk
	for _, s := range []string{"s1", "s2", "s3"} {
		k.joined(1, s)
		k.acked(2, s, 50, 50, 50)
	}
	for i, s := range []string{"s1", "s2"} {
		k.acked(20+40*i, s, 100, 50, 50)
		k.acked(21+40*i, s, 120, 100, 50)
		k.acked(22+40*i, s, 120, 120, 110)
	}
	for _, tt := range []struct {
		names      string
		level      wire.Level
		by         string // empty: never
		at         int
		whatsAtAll string
	}{
		{"ANY 1 (s1, s2)", wire.Written, "s1", 20, ""},
		{"ANY 1 (s1, s2)", wire.Durable, "s1", 21, ""},
		{"ANY 1 (s1, s2)", wire.Applied, "s1", 22, ""},
		{"ANY 2 (s1, s2)", wire.Durable, "s2", 61, ""},
		{"FIRST 1 (s2, s1)", wire.Durable, "s2", 61, ""},
		{"FIRST 1 (s1, s2)", wire.Durable, "s1", 21, ""},
		{"FIRST 2 (s1, s2, s3)", wire.Applied, "s2", 62, ""},
		{"s2", wire.Written, "s2", 60, ""},
		{"ANY 3 (s1, s2, s3)", wire.Written, "", 0, "s3 never had it"},
		{"ANY 2 (s1, x)", wire.Written, "", 0, "x isn't there"},
		{"s3", wire.Written, "", 0, "s3 never had it"},
		{"*", wire.Written, "", 0, "all are equal, so nobody knows whom it takes"},
	} {
		r := k.g.released(rule(t, tt.names), wire.LSN(100), tt.level)
		by := ""
		if r.by != nil {
			by = r.by.name
		}
		if by != tt.by || r.at != ms64(tt.at) {
			t.Errorf("%s, %s: by %q at %v, want %q at %d ms %s", tt.names, tt.level, by, r.at, tt.by, tt.at, tt.whatsAtAll)
		}
	}
}

func TestReleased_WhenMembersComeAndGo(t *testing.T) {
	var k talk
	k.joined(1, "s1")
	k.acked(2, "s1", 50, 50, 50)
	k.joined(1, "s2")
	k.acked(2, "s2", 50, 50, 50)
	k.acked(10, "s1", 100, 100, 100)
	k.left(30, "s2")                 // without having acknowledged 100
	k.acked(40, "s1", 100, 100, 100) // says nothing new, but is heard
	first := rule(t, "FIRST 1 (s2, s1)")
	if r := k.g.released(first, wire.LSN(100), wire.Durable); r.by == nil || r.by.name != "s1" || r.at != ms64(40) {
		t.Errorf("released at %v, want at 40 ms, by the next word of s1 after s2 was gone", r.at)
	}
	if r := k.g.released(rule(t, "ANY 2 (s1, s2)"), wire.LSN(100), wire.Durable); r.by != nil {
		t.Error("released although one of two is gone")
	}
	// It comes back on another connection, and sends what it has.
	connections["s2"] = 22
	defer func() { connections["s2"] = 2 }()
	k.joined(50, "s2")
	k.acked(60, "s2", 90, 90, 90)
	k.acked(70, "s2", 200, 200, 200)
	if r := k.g.released(rule(t, "ANY 2 (s1, s2)"), wire.LSN(100), wire.Durable); r.by == nil || r.by.name != "s2" || r.at != ms64(70) {
		t.Errorf("released at %v, want at 70 ms by s2", r.at)
	}
	k.acked(80, "s1", 150, 150, 150)
	if r := k.g.released(first, wire.LSN(150), wire.Durable); r.at != ms64(70) {
		t.Errorf("released at %v, want at 70 ms by s2, which is first again", r.at)
	}
}

func TestHistory_IsTheFirstTimeOfEachPosition(t *testing.T) {
	var h history
	for _, e := range []struct {
		at  wire.Stamp
		lsn uint64
	}{{10, 100}, {20, 100}, {30, 300}, {25, 200}, {40, 250}, {35, 400}, {50, 0}} {
		h.add(e.at, wire.LSN(e.lsn), 0)
	}
	for lsn, want := range map[uint64]wire.Stamp{1: 10, 100: 10, 101: 25, 200: 25, 201: 30, 300: 30, 301: 35, 400: 35, 401: 0} {
		if at, ok := h.reached(wire.LSN(lsn)); at != want || ok != (want != 0) {
			t.Errorf("%d was reached at %d, %v; want %d", lsn, at, ok, want)
		}
	}
	for i := range 3 * maxHistory {
		h.add(wire.Stamp(1000+i), wire.LSN(uint64(1000+i)), 0)
	}
	if len(h.entries) > maxHistory {
		t.Errorf("%d entries", len(h.entries))
	}
	if at, ok := h.reached(wire.LSN(100)); ok {
		t.Errorf("what is forgotten was reached at %d", at)
	}
	if at, ok := h.reached(wire.LSN(1000 + 3*maxHistory - 1)); !ok || at != 1000+3*maxHistory-1 {
		t.Errorf("the latest was reached at %d, %v", at, ok)
	}
}

func TestCommits_AreKeptOnceInOrder(t *testing.T) {
	var c commits
	add := func(lsn uint64, seen wire.Stamp) { c.add(wire.Commit{End: wire.LSN(lsn), XID: uint32(lsn)}, seen) }
	add(100, 10)
	add(200, 20)
	add(100, 15) // on its way to the other member
	add(200, 25)
	add(300, 25)
	add(150, 26)                                                                           // missed before
	add(50, 27)                                                                            // a segment from its beginning
	if got := c.between(11, 25); len(got) != 3 || got[0].XID != 150 || got[2].XID != 300 { // 150 came late
		t.Errorf("between: %v", got)
	}
	var xids []uint32
	for _, x := range c.list {
		xids = append(xids, x.XID)
	}
	if len(xids) != 4 || xids[0] != 100 || xids[1] != 150 || xids[3] != 300 || c.list[0].seen != 10 {
		t.Errorf("kept %v", c.list)
	}
	for i := range uint64(2 * maxCommits) {
		add(1000+i, wire.Stamp(1000+i))
	}
	if len(c.list) > maxCommits {
		t.Errorf("%d commits are kept", len(c.list))
	}
	if c.forgotten < 1000 || c.forgotten >= 1000+2*maxCommits {
		t.Errorf("forgotten until %d", c.forgotten)
	}
	if got := c.between(1000+2*maxCommits-10, 1000+2*maxCommits-5); len(got) != 6 {
		t.Errorf("%d between, want 6", len(got))
	}
}

// A standby that comes and goes without end is kept a while, not for ever; and
// where all were gone the server may be another one, whose log begins afresh.
func TestReplicas_ForgetThoseThatLeft(t *testing.T) {
	var k talk
	for i := range 100 {
		connections["s1"] = uint64(100 + i)
		k.joined(10*i, "s1")
		k.sent(10*i+1, "s1", 1000, commitOf(1, 1000))
		k.acked(10*i+2, "s1", 1000, 1000, 1000)
		k.left(10*i+3, "s1")
	}
	connections["s1"] = 1
	if len(k.g.members) != maxLeft {
		t.Errorf("%d members are kept, want %d", len(k.g.members), maxLeft)
	}
	k.joined(2000, "s1")
	k.sent(2001, "s1", 50, commitOf(9, 50))
	if list := k.g.commits.list; len(list) != 1 || list[0].XID != 9 || k.g.commits.forgotten != ms64(991) {
		t.Errorf("commits %v, forgotten until %d", list, k.g.commits.forgotten)
	}
}

// A standby that has much to catch up with counts only once it has all.
func TestReleased_NotByThoseThatCatchUp(t *testing.T) {
	var k talk
	k.joined(1, "s2")
	k.acked(2, "s2", 50, 50, 50)
	k.g.report(&wire.Report{Kind: wire.ReportJoined, Out: ms64(3), Member: "s1", Connection: 1})
	k.g.report(&wire.Report{Kind: wire.ReportSent, In: ms64(4), Member: "s1", Connection: 1, Sent: wire.LSN(40)})
	k.acked(10, "s1", 40, 40, 40)
	k.acked(20, "s2", 100, 100, 100)
	first := rule(t, "FIRST 1 (s1, s2)")
	if r := k.g.released(first, wire.LSN(100), wire.Durable); r.by == nil || r.by.name != "s2" || r.at != ms64(20) {
		t.Errorf("%+v, want s2, for s1 is catching up", r)
	}
	k.acked(25, "s2", 150, 150, 150)
	k.sent(30, "s1", 200) // it counts from here on
	k.acked(35, "s2", 200, 200, 200)
	k.acked(40, "s1", 200, 200, 200)
	for lsn, want := range map[uint64]string{150: "s2", 200: "s1"} {
		if r := k.g.released(first, wire.LSN(lsn), wire.Durable); r.by == nil || r.by.name != want {
			t.Errorf("%d: %+v, want %s", lsn, r, want)
		}
	}
}
