package trace

import (
	"testing"
	"time"

	"github.com/wirewait/wirewait/wire"
)

// A write is judged by the rule that was in force while it was under way; of one
// that the change may lie in, nobody knows.
func TestRuleFor_IsThatOfTheTime(t *testing.T) {
	epoch := time.Now()
	at := func(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }
	first, second := rule(t, "ANY 1 (s1, s2)"), rule(t, "s2")
	var a attribution
	a.setRule("pg.p", first)
	a.changeRule("pg.p", rule(t, "ANY 1 (s1, s2)"), at(10), at(20)) // which is no change
	a.changeRule("pg.p", second, at(100), at(105))
	for _, tt := range []struct {
		about        string
		began, ended int
		want         Rule
	}{
		{"before, and before what was no change", 5, 50, first},
		{"just before", 50, 100, first},
		{"the change may lie in it", 50, 101, nil},
		{"within the doubt", 101, 104, nil},
		{"over it all", 50, 200, nil},
		{"just after", 105, 110, second},
	} {
		f := written("on", tt.ended-10)
		f.Sides[wire.ToServer].FirstIn = ms64(tt.began)
		f.Conn = &Conn{Epoch: epoch, To: "pg.p"}
		if got := a.ruleFor("pg.p", f); got != tt.want {
			t.Errorf("%s: %v", tt.about, got)
		}
	}
	if a.rule("pg.p") != second || a.rule("pg.other") != nil {
		t.Errorf("the latest is %v", a.rule("pg.p"))
	}
	for i := range 3 * maxRulings {
		a.changeRule("pg.p", rule(t, "ANY 1 (s1)"), at(1000+2*i), at(1000+2*i))
		a.changeRule("pg.p", rule(t, "ANY 1 (s2)"), at(1001+2*i), at(1001+2*i))
	}
	if n := len(a.rules.of("pg.p")); n != maxRulings {
		t.Errorf("%d are kept", n)
	}
	f := written("on", 40) // of which nobody remembers the rule
	f.Conn = &Conn{Epoch: epoch, To: "pg.p"}
	if got := a.ruleFor("pg.p", f); got != nil {
		t.Errorf("before all that are kept: %v", got)
	}
	a.setRule("pg.p", first)
	if got := a.ruleFor("pg.p", f); got != first {
		t.Errorf("after all were replaced: %v", got)
	}
}

// The order of precedence is PostgreSQL's.
func TestCommitDefaults_OfASession(t *testing.T) {
	d := &CommitDefaults{Server: "on", Own: []CommitDefault{
		{Database: "shop", Role: "batch", Level: "off"}, {Role: "batch", Level: "local"},
		{Database: "shop", Level: "remote_write"}, {Database: "log", Level: "remote_apply"},
	}}
	for _, tt := range []struct{ database, role, want string }{
		{"shop", "batch", "off"}, {"log", "batch", "local"}, {"shop", "web", "remote_write"}, {"other", "web", "on"},
	} {
		if got := d.Level(tt.database, tt.role); got != tt.want {
			t.Errorf("%s in %s: %s, want %s", tt.role, tt.database, got, tt.want)
		}
	}
	d.Own = append(d.Own, CommitDefault{Level: "off"}) // ALTER ROLE ALL
	if got := d.Level("other", "web"); got != "off" {
		t.Errorf("of all roles: %s", got)
	}
}

// A session that never said its level has the server's, where that's known.
func TestJudge_ObservedDefault(t *testing.T) {
	for source, want := range map[string]string{"default": SourceObserved, "set": "set", "unknown": "unknown"} {
		var a attribution
		a.servers = map[string]*replicas{"pg.p": &twoStandbys(commitOf(7, 100)).g}
		a.setRule("pg.p", rule(t, "ANY 1 (s1, s2)"))
		a.defaults.change("pg.p", func(*CommitDefaults) *CommitDefaults {
			return &CommitDefaults{Server: "on", Own: []CommitDefault{{Role: "batch", Level: "local"}}}
		})
		f := written("", 41)
		f.Peer, f.Postgres.SyncSource = &wire.Peer{User: "batch"}, source
		a.judge(f)
		if f.Postgres.SyncSource != want || (f.Replication.Basis == BasisNotWaited) != (source == "default") {
			t.Errorf("%s: level %q from %s, %+v", source, f.Postgres.SynchronousCommit, f.Postgres.SyncSource, f.Replication)
		}
	}
}

// A standby that the server knows and we don't see may be the one.
func TestJudge_StandbysThatPassByElsewhere(t *testing.T) {
	for basis, standbys := range map[string][]string{
		BasisUnanimous: {"S1", "s2"}, BasisUnknown: {"s1", "s3"},
	} {
		var a attribution
		a.servers = map[string]*replicas{"pg.p": &twoStandbys(commitOf(7, 100)).g}
		a.setRule("pg.p", rule(t, "ANY 1 (*)"))
		a.standbys.change("pg.p", func([]string) []string { return standbys })
		f := written("on", 41)
		if a.judge(f); f.Replication.Basis != basis {
			t.Errorf("%v: %+v, want %s", standbys, f.Replication, basis)
		}
	}
}

// Whoever watches is told of commits that are on their way, and of nothing else.
func TestTracer_TellsOfCommits(t *testing.T) {
	tr := New(10)
	defer tr.Close()
	var told []string
	tr.WatchCommits(func(c *Conn) { told = append(told, c.To) })
	for _, r := range []*wire.Report{
		{Kind: wire.ReportReached}, {Kind: wire.ReportSent}, {Kind: wire.ReportSent, Commits: []wire.Commit{commitOf(7, 100)}},
	} {
		tr.OfferReport(r, &Conn{To: "pg.p"})
	}
	if len(told) != 1 || told[0] != "pg.p" {
		t.Errorf("told %v", told)
	}
}
