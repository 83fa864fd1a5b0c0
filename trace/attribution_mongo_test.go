package trace

import (
	"slices"
	"testing"

	"github.com/wirewait/wirewait/wire"
)

var threeMembers = &ReplicaSet{Members: []SetMember{
	{Name: "rs0.a", ID: 0, Votes: 1}, {Name: "rs0.b", ID: 1, Votes: 1}, {Name: "rs0.c", ID: 2, Votes: 1},
}}

// setTalk is what members of rs0 say over links, in whole milliseconds. a is the
// primary.
type setTalk struct{ a attribution }

func newSetTalk(s *ReplicaSet) *setTalk {
	var k setTalk
	if s != nil {
		for _, m := range s.Members {
			k.a.setRule(m.Name, s.From(m.Name))
		}
	}
	return &k
}

func pos(i uint64) wire.Position { return wire.Position{Hi: 1, Lo: i} }

func (k *setTalk) sent(at int, from, to string, end uint64) {
	k.a.report(&wire.Report{Kind: wire.ReportSent, In: ms64(at), Out: ms64(at + 1), Sent: pos(end), Set: &wire.SetReport{}}, &Conn{From: from, To: to})
}

func upTo(id string, written, durable, applied uint64) wire.Progress {
	p := wire.Progress{Member: id}
	for l, i := range []uint64{written, durable, applied} {
		if i != 0 {
			p.Reached[l] = pos(i)
		}
	}
	return p
}

// told is a position update to a member.
func (k *setTalk) told(at int, to string, list ...wire.Progress) {
	k.a.report(&wire.Report{Kind: wire.ReportReached, In: ms64(at - 1), Out: ms64(at), Reached: list, Set: &wire.SetReport{}}, &Conn{To: to})
}

// beat is a heartbeat of one member's to another, and its reply.
func (k *setTalk) beat(at int, from, to, fromID string, own wire.Progress, s wire.SetReport) {
	c := &Conn{From: from, To: to}
	k.a.report(&wire.Report{Kind: wire.ReportReached, In: ms64(at - 2), Out: ms64(at - 1), Set: &wire.SetReport{Client: fromID, ClientHost: from + ":1"}}, c)
	own.Member, s.ToClient, s.Client = "", true, fromID
	k.a.report(&wire.Report{Kind: wire.ReportReached, In: ms64(at - 1), Out: ms64(at), Reached: []wire.Progress{own}, Set: &s}, c)
}

// order is a write to a: request out at 10 ms, reply in at the time given, and its
// position 100.
func order(w, j string, replyIn int) *Finished {
	x := &wire.Exchange{Protocol: wire.MongoDB, Operation: "insert", Write: true, Answered: true, OK: true}
	x.Sides[wire.ToServer] = wire.Side{Bytes: 1, FirstIn: ms64(1), LastIn: ms64(2), LastOut: ms64(10)}
	x.Sides[wire.ToClient] = wire.Side{Bytes: 1, FirstIn: ms64(replyIn), LastIn: ms64(replyIn), LastOut: ms64(replyIn + 10)}
	x.Mongo.WriteConcern = wire.WriteConcern{W: w, J: j, Source: "command"}
	if w == "" {
		x.Mongo.WriteConcern.Source = "assumed"
	}
	x.Mongo.OpTime = wire.OpTime{T: 1, TS: 100}
	return &Finished{Exchange: x, Conn: &Conn{From: "app", To: "rs0.a"}, Waits: Split(x)}
}

// twoSecondaries have come to 50; what is written at 100 leaves at 15 ms. b has it
// at 40 (written), 41 (durable) and 45 ms (applied), c at 90. What both say of a,
// and of each other, isn't theirs.
func twoSecondaries(s *ReplicaSet) *setTalk {
	k := newSetTalk(s)
	a := upTo("0", 100, 100, 100)
	k.told(2, "rs0.a", a, upTo("1", 50, 50, 50), upTo("2", 50, 50, 50))
	k.sent(15, "rs0.b", "rs0.a", 100)
	k.sent(16, "", "rs0.a", 100)
	k.told(40, "rs0.a", a, upTo("1", 100, 50, 50), upTo("2", 50, 50, 50))
	k.told(41, "rs0.a", a, upTo("1", 100, 100, 50), upTo("2", 50, 50, 50))
	k.told(45, "rs0.a", a, upTo("1", 100, 100, 100), upTo("2", 50, 50, 50))
	k.told(70, "rs0.b", upTo("2", 100, 100, 100)) // chained: b knows, and a not yet
	k.told(90, "rs0.a", a, upTo("1", 100, 100, 100), upTo("2", 100, 100, 100))
	return k
}

func TestJudgeMongo_FindsWhoReleasedAWrite(t *testing.T) {
	five := &ReplicaSet{Members: append(slices.Clone(threeMembers.Members),
		SetMember{Name: "rs0.d", ID: 3, Votes: 1, Arbiter: true}, SetMember{Name: "rs0.e", ID: 4, Votes: 0})}
	voteless := &ReplicaSet{Members: []SetMember{
		{Name: "rs0.a", ID: 0, Votes: 1}, {Name: "rs0.b", ID: 1, Votes: 0}, {Name: "rs0.c", ID: 2, Votes: 1},
	}}
	psa := &ReplicaSet{Members: []SetMember{
		{Name: "rs0.a", ID: 0, Votes: 1}, {Name: "rs0.b", ID: 1, Votes: 1}, {Name: "rs0.c", ID: 2, Votes: 1, Arbiter: true},
	}}
	for _, tt := range []struct {
		about, w, j string
		set         *ReplicaSet
		replyIn     int
		by, basis   string
		replication int
	}{
		{"majority", "majority", "", threeMembers, 41, "rs0.b", BasisExact, 26},
		{"majority of four with an arbiter", "majority", "", five, 90, "rs0.c", BasisExact, 75},
		{"one that doesn't vote", "majority", "", voteless, 90, "rs0.c", BasisExact, 75},
		{"w: 2 waits until it's applied", "2", "", threeMembers, 45, "rs0.b", BasisExact, 30},
		{"w: 2 counts those without a vote", "2", "", voteless, 45, "rs0.b", BasisExact, 30},
		{"w: 2 with j", "2", "true", threeMembers, 45, "rs0.b", BasisExact, 30},
		{"w: 3", "3", "", threeMembers, 90, "rs0.c", BasisExact, 75},
		{"the default", "", "", threeMembers, 41, "rs0.b", BasisAssumed, 26},
		{"the default of a set with an arbiter", "", "", psa, 41, "", BasisNotWaited, 0},
		{"late reply", "majority", "", threeMembers, 60, "rs0.b", BasisThenPrimary, 26},
		{"before any release", "majority", "", threeMembers, 30, "", BasisUnknown, 0},
		{"w: 1", "1", "", threeMembers, 20, "", BasisNotWaited, 0},
		{"w: 1 with j", "1", "true", threeMembers, 20, "", BasisUpperBound, 0},
		{"a tag", "multiDC", "", threeMembers, 90, "", BasisUnknown, 0},
		{"more than there are", "4", "", threeMembers, 90, "", BasisUnknown, 0},
	} {
		k := twoSecondaries(tt.set)
		f := order(tt.w, tt.j, tt.replyIn)
		total := f.Waits.Total
		k.a.judge(f)
		r := &f.Replication
		if r.ReleasedBy != tt.by || r.Basis != tt.basis || f.Waits.Replication.Milliseconds() != int64(tt.replication) {
			t.Errorf("%s: by %q, %s, after %v; want %q, %s, %d ms", tt.about, r.ReleasedBy, r.Basis, f.Waits.Replication, tt.by, tt.basis, tt.replication)
		}
		sum := f.Waits.Receive + f.Waits.Request + f.Waits.Server + f.Waits.Replication + f.Waits.Reply
		if sum != total || f.Waits.Total != total {
			t.Errorf("%s: the parts are %v, the whole %v", tt.about, sum, total)
		}
		if tt.w == "1" && tt.j == "true" && r.Journal.Milliseconds() != 5 {
			t.Errorf("%s: at most %v for the journal, want 5 ms", tt.about, r.Journal)
		}
	}
}

func TestJudgeMongo_MembersThatHadItAndThoseThatHadNot(t *testing.T) {
	k := twoSecondaries(threeMembers)
	k.beat(5, "rs0.a", "rs0.b", "0", upTo("", 50, 50, 50), wire.SetReport{SyncSource: "rs0.a:1"})
	f := order("majority", "", 41)
	k.a.judge(f)
	want := []MemberWait{{Member: "rs0.b", Sent: ms64(15), Acknowledged: ms64(41), SyncSource: "rs0.a"}}
	if r := &f.Replication; !slices.Equal(r.Acknowledged, want) || !slices.Equal(r.Behind, []string{"rs0.c"}) {
		t.Errorf("acknowledged %v, behind %v", r.Acknowledged, r.Behind)
	}
}

// A write that changes nothing has the position of the last that did.
func TestJudgeMongo_NoOp(t *testing.T) {
	k := twoSecondaries(threeMembers)
	f := order("majority", "", 11)
	f.Mongo.OpTime.TS = 40
	k.a.judge(f)
	if r := &f.Replication; r.Basis != BasisNoCommit || r.ReleasedBy != "" || f.Waits.Replication != 0 {
		t.Errorf("%+v", *r)
	}
}

// Where no position report gets through, heartbeats do; and they tell who has
// which id.
func TestJudgeMongo_Heartbeats(t *testing.T) {
	k := newSetTalk(threeMembers)
	// b's id is 2 and c's 1, whatever the order of the file.
	k.beat(3, "rs0.b", "rs0.a", "2", upTo("", 1, 1, 1), wire.SetReport{IsPrimary: true, Primary: "0"})
	k.beat(4, "rs0.c", "rs0.a", "1", upTo("", 1, 1, 1), wire.SetReport{IsPrimary: true, Primary: "0"})
	k.sent(15, "rs0.b", "rs0.a", 100)
	k.beat(50, "rs0.a", "rs0.b", "0", upTo("", 100, 100, 100), wire.SetReport{})
	f := order("majority", "", 50)
	k.a.judge(f)
	if r := &f.Replication; r.ReleasedBy != "rs0.b" || r.Basis != BasisExact {
		t.Errorf("%+v", *r)
	}
	k.told(60, "rs0.a", upTo("1", 100, 100, 100))
	f = order("3", "", 60)
	k.a.judge(f)
	if r := &f.Replication; r.ReleasedBy != "rs0.c" || r.Basis != BasisExact {
		t.Errorf("%+v", *r)
	}
}

// Without a configuration the members are those that were seen.
func TestJudgeMongo_WithoutConfiguration(t *testing.T) {
	var k setTalk
	c := &Conn{ServerHost: "10.0.0.1", ServerPort: 27017}
	server := serverOf(c)
	tell := func(at int, s wire.SetReport, list ...wire.Progress) {
		k.a.report(&wire.Report{Kind: wire.ReportReached, In: ms64(at), Out: ms64(at), Reached: list, Set: &s}, c)
	}
	k.a.report(&wire.Report{Kind: wire.ReportSent, In: ms64(15), Out: ms64(15), Sent: pos(100), Set: &wire.SetReport{}}, c)
	tell(41, wire.SetReport{}, upTo("0", 100, 100, 100), upTo("1", 100, 100, 100), upTo("2", 50, 50, 50))
	f := order("majority", "", 41)
	f.Conn = c
	k.a.judge(f)
	if f.Replication.Basis != BasisUnknown {
		t.Errorf("%+v, and nobody knows who is the primary", f.Replication)
	}
	tell(42, wire.SetReport{Client: "1", ClientHost: "b:27017"})
	tell(43, wire.SetReport{ToClient: true, Client: "1", IsPrimary: true, Primary: "0"}, wire.Progress{})
	k.a.judge(f)
	if r := &f.Replication; r.ReleasedBy != "b:27017" || r.Basis != BasisAssumed {
		t.Errorf("%s: %+v", server, *r)
	}
}

func TestJudgeMongo_TiesBlindBatchesAndTimeouts(t *testing.T) {
	k := newSetTalk(threeMembers)
	k.told(2, "rs0.a", upTo("1", 50, 50, 50), upTo("2", 50, 50, 50))
	k.sent(15, "rs0.b", "rs0.a", 100)
	k.told(40, "rs0.a", upTo("1", 100, 100, 100))
	k.told(41, "rs0.a", upTo("2", 100, 100, 100))
	f := order("majority", "", 41)
	k.a.judge(f)
	if r := &f.Replication; r.Basis != BasisTie || r.ReleasedBy != "" || f.Waits.Replication == 0 {
		t.Errorf("%+v", *r)
	}
	f = order("3", "", 300)
	f.Mongo.ConcernError = 64
	k.a.judge(f)
	if r := &f.Replication; r.Basis != BasisInterrupted || r.ReleasedBy != "" {
		t.Errorf("%+v", *r)
	}
	k.a.report(&wire.Report{Kind: wire.ReportSent, In: ms64(20), Out: ms64(21), Blind: true, Set: &wire.SetReport{}}, &Conn{To: "rs0.a"})
	f = order("majority", "", 41)
	k.a.judge(f)
	if r := &f.Replication; r.Basis != BasisUnknown {
		t.Errorf("%+v", *r)
	}
}

func TestSyncSources_AChangeIsTold(t *testing.T) {
	k := newSetTalk(threeMembers)
	var told []string
	k.a.mongo.changed = func(member, was, is string) { told = append(told, member+": "+was+", "+is) }
	k.beat(3, "rs0.c", "rs0.a", "2", upTo("", 1, 1, 1), wire.SetReport{})
	for _, source := range []string{"rs0.a:1", "rs0.a:1", "", "rs0.c:1"} {
		k.beat(5, "rs0.a", "rs0.b", "0", upTo("", 50, 50, 50), wire.SetReport{SyncSource: source})
	}
	if !slices.Equal(told, []string{"rs0.b: rs0.a, rs0.c"}) {
		t.Errorf("told %q", told)
	}
}

// What the set itself says goes before what is assumed, until its configuration
// changes.
func TestJudgeMongo_Observed(t *testing.T) {
	set := *threeMembers
	set.Observed, set.Version, set.DefaultW = true, 3, "3"
	k := twoSecondaries(&set)
	judge := func(w, j string, replyIn int) Replication {
		f := order(w, j, replyIn)
		k.a.judge(f)
		return f.Replication
	}
	if r := judge("", "", 90); r.ReleasedBy != "rs0.c" || r.Basis != BasisExact {
		t.Errorf("the default w: 3: %+v", r)
	}
	for _, observed := range []bool{true, false} {
		other := set
		other.Observed = observed
		f, k := order("", "", 90), newSetTalk(&other)
		k.a.observed(f)
		basis, source := BasisExact, wire.DefaultConcern
		if !observed {
			basis, source = BasisAssumed, wire.AssumedConcern
		}
		if f.Basis() != basis || f.Mongo.WriteConcern.Source != source {
			t.Errorf("observed %v: what it waits for is known as %s, from %s", observed, f.Basis(), f.Mongo.WriteConcern.Source)
		}
	}
	set.MajorityWritten = true
	if r := judge("majority", "", 40); r.ReleasedBy != "rs0.b" || r.Basis != BasisExact || r.Released != ms64(40) {
		t.Errorf("majority without the journal: %+v", r)
	}
	for version, basis := range map[int64]string{3: BasisExact, 4: BasisUnknown} {
		k := twoSecondaries(&set)
		k.a.report(&wire.Report{Kind: wire.ReportReached, Set: &wire.SetReport{Client: "1", Version: version}}, &Conn{From: "rs0.b", To: "rs0.a"})
		f := order("3", "", 90)
		if k.a.judge(f); f.Replication.Basis != basis {
			t.Errorf("members have version %d: %+v", version, f.Replication)
		}
	}
}

// A reply that comes long after the release, and after somebody else's word, may be
// due to either.
func TestJudgeMongo_ServerThatStoodStill(t *testing.T) {
	for _, tt := range []struct {
		w       string
		replyIn int
		by      string
		basis   string
	}{
		{"majority", 60, "rs0.b", BasisThenPrimary}, // c says it at 90
		{"majority", 89, "rs0.b", BasisThenPrimary},
		{"majority", 95, "", BasisTie},
		{"3", 120, "rs0.c", BasisThenPrimary}, // b had said it before
	} {
		k, f := twoSecondaries(threeMembers), order(tt.w, "", tt.replyIn)
		k.a.judge(f)
		if r := &f.Replication; r.ReleasedBy != tt.by || r.Basis != tt.basis {
			t.Errorf("w: %s, reply at %d: by %q, %s; want %q, %s", tt.w, tt.replyIn, r.ReleasedBy, r.Basis, tt.by, tt.basis)
		}
	}
}

// A mode asks for values of tags, of which the primary has one.
func TestJudgeMongo_Modes(t *testing.T) {
	set := &ReplicaSet{Observed: true, Members: slices.Clone(threeMembers.Members), Modes: map[string]map[string]int{
		"everywhere": {"dc": 2}, "here": {"dc": 1}, "disks": {"dc": 2, "disk": 1}, "thrice": {"dc": 3},
	}}
	for i, tags := range []map[string]string{{"dc": "east"}, {"dc": "east"}, {"dc": "west", "disk": "ssd"}} {
		set.Members[i].Tags = tags
	}
	for mode, want := range map[string][2]string{
		"everywhere": {"rs0.c", BasisExact}, "here": {"", BasisNotWaited}, "disks": {"rs0.c", BasisExact},
		"thrice": {"", BasisUnknown}, "nowhere": {"", BasisUnknown},
	} {
		k := twoSecondaries(set)
		f := order(mode, "", 90)
		k.a.judge(f)
		if r := &f.Replication; r.ReleasedBy != want[0] || r.Basis != want[1] {
			t.Errorf("%s: by %q, %s; want %q", mode, r.ReleasedBy, r.Basis, want)
		}
		k, f = twoSecondaries(set), order("{...}", "", 90)
		if f.Mongo.WriteConcern.Tags = set.Modes[mode]; f.Mongo.WriteConcern.Tags == nil {
			continue
		}
		k.a.judge(f)
		if r := &f.Replication; r.ReleasedBy != want[0] || r.Basis != want[1] {
			t.Errorf("%s as an object: by %q, %s; want %q", mode, r.ReleasedBy, r.Basis, want)
		}
	}
}

func BenchmarkJudgeMongo(b *testing.B) {
	k := twoSecondaries(threeMembers)
	f := order("majority", "", 41)
	b.ReportAllocs()
	for b.Loop() {
		f.Waits = Split(f.Exchange)
		k.a.judge(f)
	}
}
