package trace

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wirewait/wirewait/wire"
)

// commitAt is a transaction that ends at a place in the log.
func commitOf(xid uint32, lsn uint64) wire.Commit { return wire.Commit{End: wire.LSN(lsn), XID: xid} }

// written is an autocommit INSERT: request out at 10 ms, reply in at the time
// given, out 10 ms later.
func written(level string, replyIn int) *Finished {
	x := &wire.Exchange{Protocol: wire.Postgres, Operation: "INSERT", Write: true, Answered: true, OK: true}
	x.Sides[wire.ToServer] = wire.Side{Bytes: 1, FirstIn: ms64(1), LastIn: ms64(2), LastOut: ms64(10)}
	x.Sides[wire.ToClient] = wire.Side{Bytes: 1, FirstIn: ms64(replyIn), LastIn: ms64(replyIn), LastOut: ms64(replyIn + 10)}
	x.Postgres.SynchronousCommit, x.Postgres.SyncSource = level, "set"
	return &Finished{Exchange: x, Conn: &Conn{To: "pg.p"}, Waits: Split(x)}
}

// twoStandbys have come to 50; a commit that ends at 100 is sent at 15 ms and
// acknowledged by s1 at 40, 41 and 42 ms, by s2 at 90.
func twoStandbys(commits ...wire.Commit) *talk {
	var k talk
	for _, s := range []string{"s1", "s2"} {
		k.joined(1, s)
		k.acked(2, s, 50, 50, 50)
	}
	k.sent(15, "s1", 100, commits...)
	k.sent(16, "s2", 100, commits...)
	k.acked(40, "s1", 100, 50, 50)
	k.acked(41, "s1", 100, 100, 50)
	k.acked(42, "s1", 100, 100, 100)
	k.acked(90, "s2", 100, 100, 100)
	return &k
}

func TestJudge_FindsWhoReleasedACommit(t *testing.T) {
	apply := wire.Commit{End: wire.LSN(100), XID: 7, Apply: true}
	for _, tt := range []struct {
		about, names, level string
		commit              wire.Commit
		replyIn             int // ms
		by, basis           string
		replication         int // ms
	}{
		{"on", "ANY 1 (s1, s2)", "on", commitOf(7, 100), 41, "s1", BasisUnanimous, 26},
		{"remote_write", "ANY 1 (s1, s2)", "remote_write", commitOf(7, 100), 40, "s1", BasisUnanimous, 25},
		{"remote_apply", "ANY 1 (s1, s2)", "remote_apply", apply, 42, "s1", BasisUnanimous, 27},
		{"both", "ANY 2 (s1, s2)", "on", commitOf(7, 100), 91, "s2", BasisUnanimous, 75},
		{"priority", "FIRST 1 (s2, s1)", "on", commitOf(7, 100), 90, "s2", BasisUnanimous, 75},
		{"late reply", "ANY 1 (s1, s2)", "on", commitOf(7, 100), 60, "s1", BasisThenPrimary, 26},
		{"level unknown: the default", "ANY 1 (s1, s2)", "", commitOf(7, 100), 41, "s1", BasisUnanimous, 26},
		{"off", "ANY 1 (s1, s2)", "off", commitOf(7, 100), 11, "", BasisNotWaited, 0},
		{"local", "ANY 1 (s1, s2)", "local", commitOf(7, 100), 17, "", BasisNotWaited, 0},
		{"nobody listed", "", "on", commitOf(7, 100), 17, "", BasisNotWaited, 0},
		{"before any release", "ANY 1 (s1, s2)", "on", commitOf(7, 100), 30, "", BasisUnknown, 0},
		{"rule that was never satisfied", "s3", "on", commitOf(7, 100), 200, "", BasisUnknown, 0},
		// The record says what the session, as far as we know it, doesn't.
		{"belief is wrong", "ANY 1 (s1, s2)", "on", apply, 42, "s1", BasisUnanimous, 27},
		// PREPARE TRANSACTION waits for the disk at most.
		{"prepared", "ANY 1 (s1, s2)", "remote_apply", wire.Commit{End: wire.LSN(100), XID: 7, Kind: wire.CommitPrepare}, 41, "s1", BasisUnanimous, 26},
	} {
		var a attribution
		a.servers = map[string]*replicas{"pg.p": &twoStandbys(tt.commit).g}
		a.setRule("pg.p", rule(t, tt.names))
		f := written(tt.level, tt.replyIn)
		whole := f.Waits.Total
		a.judge(f)
		r := &f.Replication
		if r.ReleasedBy != tt.by || r.Basis != tt.basis {
			t.Errorf("%s: released by %q, %s; want %q, %s", tt.about, r.ReleasedBy, r.Basis, tt.by, tt.basis)
		}
		if got := f.Waits.Replication; got != time.Duration(tt.replication)*time.Millisecond {
			t.Errorf("%s: replication took %v, want %d ms", tt.about, got, tt.replication)
		}
		var sum time.Duration
		for _, p := range f.Waits.Parts() {
			sum += p.Time
		}
		if sum != whole || f.Waits.Total != whole || f.Waits.Server < 0 {
			t.Errorf("%s: the parts are %v together, the whole %v", tt.about, sum, whole)
		}
		if tt.by != "" && (r.Commit != wire.LSN(100) || r.XID != 7 || r.Candidates != 1) {
			t.Errorf("%s: commit %v, transaction %d", tt.about, r.Commit, r.XID)
		}
	}
}

func TestJudge_MembersThatHadItAndThoseThatHadNot(t *testing.T) {
	var a attribution
	a.servers = map[string]*replicas{"pg.p": &twoStandbys(commitOf(7, 100)).g}
	a.setRule("pg.p", rule(t, "ANY 1 (s1, s2)"))
	f := written("on", 41) // the reply left at 51 ms
	a.judge(f)
	want := []MemberWait{{Member: "s1", Sent: ms64(15), Acknowledged: ms64(41)}}
	if r := &f.Replication; !slices.Equal(r.Acknowledged, want) || !slices.Equal(r.Behind, []string{"s2"}) {
		t.Errorf("acknowledged %v, behind %v", r.Acknowledged, r.Behind)
	}
	f = written("on", 85) // at 95
	a.judge(f)
	want = append(want, MemberWait{Member: "s2", Sent: ms64(16), Acknowledged: ms64(90)})
	if r := &f.Replication; !slices.Equal(r.Acknowledged, want) || len(r.Behind) != 0 {
		t.Errorf("acknowledged %v, behind %v", r.Acknowledged, r.Behind)
	}
}

func TestJudge_SeveralCandidates(t *testing.T) {
	names := rule(t, "ANY 1 (s1, s2)")
	judged := func(k *talk, f *Finished) *Replication {
		var a attribution
		a.servers = map[string]*replicas{"pg.p": &k.g}
		a.setRule("pg.p", names)
		a.judge(f)
		return &f.Replication
	}
	// Two commits in the window, both released by s1: the member is certain.
	k := twoStandbys(commitOf(6, 80), commitOf(7, 100))
	r := judged(k, written("on", 41))
	if r.ReleasedBy != "s1" || r.Basis != BasisUnanimous || r.Candidates != 2 || !r.Commit.IsZero() || r.XID != 0 || r.Spread != 0 {
		t.Errorf("%+v", r)
	}
	// One more that s2 had first: nobody knows.
	k.sent(20, "s2", 120, commitOf(8, 120))
	k.acked(44, "s2", 120, 120, 120)
	k.acked(95, "s1", 120, 120, 120)
	if r := judged(k, written("on", 45)); r.ReleasedBy != "" || r.Basis != BasisUnknown || r.Candidates != 3 {
		t.Errorf("%+v", r)
	}
	// remote_apply is in the record, so it can't be either of the others.
	k = twoStandbys(commitOf(6, 80), wire.Commit{End: wire.LSN(100), XID: 7, Apply: true})
	if r := judged(k, written("remote_apply", 42)); r.XID != 7 || r.Candidates != 1 {
		t.Errorf("%+v", r)
	}
	if r := judged(k, written("on", 42)); r.XID != 6 || r.Candidates != 1 {
		t.Errorf("%+v", r)
	}
}

func TestJudge_WhatCannotBeTold(t *testing.T) {
	for about, change := range map[string]func(*talk, *Finished){
		"the log can't be read": func(k *talk, _ *Finished) {
			k.g.report(&wire.Report{Kind: wire.ReportSent, In: ms64(20), Member: "s1", Connection: 1, Sent: wire.LSN(100), Blind: true})
		},
		"reports were lost":   func(k *talk, _ *Finished) { k.g.lost(ms64(12), ms64(20)) },
		"no commit, no links": func(k *talk, _ *Finished) { k.g = replicas{} },
	} {
		k := twoStandbys(commitOf(7, 100))
		var a attribution
		a.setRule("pg.p", rule(t, "ANY 1 (s1, s2)"))
		f := written("on", 41)
		change(k, f)
		a.servers = map[string]*replicas{"pg.p": &k.g}
		a.judge(f)
		if r := &f.Replication; r.Basis != BasisUnknown || r.ReleasedBy != "" || f.Waits.Replication != 0 {
			t.Errorf("%s: %+v", about, r)
		}
	}
	judge := func(k *talk, f *Finished) *Replication {
		var a attribution
		a.servers = map[string]*replicas{"pg.p": &k.g}
		a.setRule("pg.p", rule(t, "ANY 1 (s1, s2)"))
		a.judge(f)
		return &f.Replication
	}
	if r := judge(twoStandbys(), written("on", 11)); r.Basis != BasisNoCommit {
		t.Errorf("an UPDATE of no rows: %+v", r)
	}
	interrupted := written("on", 70)
	interrupted.Postgres.NotReplicated = true
	k := twoStandbys(commitOf(7, 100))
	if r := judge(k, interrupted); r.Basis != BasisInterrupted || r.ReleasedBy != "" || interrupted.Waits.Replication != 55*time.Millisecond {
		t.Errorf("a wait that was cancelled: %+v, %v", r, interrupted.Waits)
	}
	failed := written("on", 41)
	failed.OK = false
	inBlock := written("on", 41)
	inBlock.Postgres.InBlock = true
	for _, f := range []*Finished{failed, inBlock} {
		if r := judge(k, f); r.Basis != "" {
			t.Errorf("what commits nothing: %+v", r)
		}
	}
}

// A write waits with the worker until the reports of its time are in, and only
// where there are links between members.
func TestTracer_HoldsWritesForTheirReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &Conn{To: "pg.p", Epoch: time.Now()}
		other := &Conn{To: "pg.q", Epoch: conn.Epoch}
		type seen struct {
			by, basis string
			at        time.Duration
		}
		var mu sync.Mutex
		got := map[*Conn]seen{}
		look := func(c *Conn) (seen, bool) {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			s, ok := got[c]
			return s, ok
		}
		tr := New(100, consumerFunc(func(f *Finished) {
			mu.Lock()
			defer mu.Unlock()
			got[f.Conn] = seen{f.Replication.ReleasedBy, f.Replication.Basis, time.Since(conn.Epoch)}
		}))
		defer tr.Close()
		tr.SetRule("pg.p", rule(t, "ANY 1 (s1, s2)"))
		report := func(kind wire.ReportKind, at int, lsn uint64, commits ...wire.Commit) {
			p := wire.LSN(lsn)
			tr.OfferReport(&wire.Report{
				Kind: kind, In: ms64(at), Out: ms64(at), Member: "s1", Connection: 1, Sent: p, Commits: commits,
				Reached: []wire.Progress{{Member: "s1", Reached: [wire.Levels]wire.Position{p, p, p}}},
			}, conn)
		}
		report(wire.ReportReached, 1, 50)
		time.Sleep(51 * time.Millisecond)
		tr.Offer(written("on", 41).Exchange, conn)
		tr.Offer(written("on", 41).Exchange, other)
		time.Sleep(30 * time.Millisecond) // longer than the worker lingers
		report(wire.ReportSent, 15, 100, commitOf(7, 100))
		report(wire.ReportReached, 41, 100)
		if _, early := look(conn); early {
			t.Error("judged before its reports were in")
		}
		if s, ok := look(other); !ok || s.basis != "" {
			t.Errorf("a write to a server without such links: %v, %v", s, ok)
		}
		time.Sleep(settleTime)
		if s, _ := look(conn); s.by != "s1" || s.at > 51*time.Millisecond+settleTime+linger {
			t.Errorf("judged as %v", s)
		}
	})
}

func TestTracer_LostReportsAreCountedAndMakeNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &Conn{To: "pg.p", Epoch: time.Now()}
		var last Replication
		tr := New(4, consumerFunc(func(f *Finished) { last = f.Replication }))
		tr.SetRule("pg.p", rule(t, "ANY 1 (s1, s2)"))
		for at := range 6 { // nobody takes them meanwhile
			tr.OfferReport(&wire.Report{
				Kind: wire.ReportReached, In: ms64(10 + at), Out: ms64(10 + at), Member: "s1", Connection: 1,
				Reached: []wire.Progress{{Member: "s1", Reached: [wire.Levels]wire.Position{wire.LSN(50), wire.LSN(50), wire.LSN(50)}}},
			}, conn)
		}
		synctest.Wait()
		time.Sleep(time.Second)
		if tr.Dropped() != 2 {
			t.Errorf("%d dropped, want 2", tr.Dropped())
		}
		tr.OfferReport(&wire.Report{Kind: wire.ReportSent, In: ms64(12), Member: "s1", Connection: 1, Sent: wire.LSN(100), Commits: []wire.Commit{commitOf(7, 100)}}, conn)
		tr.Offer(written("on", 41).Exchange, conn)
		tr.Close()
		if last.Basis != BasisUnknown {
			t.Errorf("%+v", last)
		}
		tr.OfferReport(&wire.Report{}, conn) // after Close: nothing
	})
}

func TestSummary_CountsWhoReleasedAndHowThatIsKnown(t *testing.T) {
	var s Summary
	for i, r := range []Replication{
		{Basis: BasisUnanimous, ReleasedBy: "s1"}, {Basis: BasisThenPrimary, ReleasedBy: "s1"}, {Basis: BasisUnknown}, {},
	} {
		f := written("on", 41+i)
		f.Replication = r
		s.Consume(f)
	}
	row := s.Group(By{})[0]
	if len(row.ReleasedBy) != 1 || row.ReleasedBy["s1"] != 2 {
		t.Errorf("released by %v", row.ReleasedBy)
	}
	if len(row.ReleasedBasis) != 3 || row.ReleasedBasis[BasisUnknown] != 1 {
		t.Errorf("bases %v", row.ReleasedBasis)
	}
	var many tally
	for i := range 3 * maxTally {
		many.add(string(rune('a'+i)), 1)
	}
	if len(many) != maxTally+1 || many[Other] != 2*maxTally {
		t.Errorf("%d names, %d others", len(many), many[Other])
	}
}

// Acknowledgements that come too close together to be told apart name nobody,
// and the wait is known all the same.
func TestJudge_TiesNameNobody(t *testing.T) {
	judge := func(names string, s2 int, replyIn int) *Finished {
		k := twoStandbys(commitOf(7, 100))
		k.g.members[1].reached[wire.Durable] = history{}
		k.g.members[1].reached[wire.Durable].add(ms64(s2), wire.LSN(100), 0)
		var a attribution
		a.servers = map[string]*replicas{"pg.p": &k.g}
		a.setRule("pg.p", rule(t, names))
		f := written("on", replyIn)
		a.judge(f)
		return f
	}
	// What was held up before it was written may have come after what was written later.
	k := twoStandbys(commitOf(7, 100))
	rel := k.g.released(rule(t, "ANY 2 (s1, s2)"), wire.LSN(100), wire.Durable)
	if rel.by.name != "s2" || rel.rival(wire.LSN(100), wire.Durable, time.Millisecond) != nil {
		t.Errorf("49 ms apart: %+v", rel)
	}
	k.g.members[0].reached[wire.Durable].entries[1].late = 60 * time.Millisecond
	if rel.rival(wire.LSN(100), wire.Durable, time.Millisecond) == nil {
		t.Error("s1's may have been written after that of s2")
	}
	for _, tt := range []struct {
		names       string
		s2, replyIn int // s1 acknowledged at 41
		by, basis   string
	}{
		{"ANY 1 (s1, s2)", 42, 42, "", BasisTie},
		{"ANY 1 (s1, s2)", 43, 41, "", BasisTie},
		{"ANY 1 (s1, s2)", 44, 41, "s1", BasisUnanimous},
		{"ANY 2 (s1, s2)", 42, 42, "", BasisTie},
		{"ANY 2 (s1, s2)", 44, 44, "s2", BasisUnanimous},
		{"ANY 2 (s1, s2)", 46, 52, "", BasisTie}, // the primary took 6 ms to reply
		{"ANY 1 (s1, s2)", 60, 59, "s1", BasisThenPrimary},
		{"ANY 1 (s1, s2)", 60, 61, "", BasisTie},   // 20 ms later, and s2 explains it better
		{"ANY 1 (s1, s2)", 220, 261, "", BasisTie}, // so does it here
		{"ANY 1 (s1, s2)", 100, 261, "s1", BasisThenPrimary},
		{"FIRST 1 (s1, s2)", 42, 42, "s1", BasisUnanimous}, // s2 doesn't count
		{"FIRST 2 (s1, s2)", 42, 42, "", BasisTie},
	} {
		f := judge(tt.names, tt.s2, tt.replyIn)
		if r := &f.Replication; r.ReleasedBy != tt.by || r.Basis != tt.basis {
			t.Errorf("%s, s2 at %d, reply at %d: by %q, %s; want %q, %s", tt.names, tt.s2, tt.replyIn, r.ReleasedBy, r.Basis, tt.by, tt.basis)
		}
		if f.Waits.Replication < 25*time.Millisecond {
			t.Errorf("%s: replication took %v", tt.names, f.Waits.Replication)
		}
	}
}
