//go:build unix

package proxy_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/wire"
)

func lagStandby(name string, d time.Duration) inject.Rule {
	r := lagRule(name+"-behind", d, inject.When{Application: []string{name}})
	r.With.Ramp = 1
	return r
}

// walsenders are the processes that serve the standbys now. They are others once a
// connection broke.
func (r *quorumRig) walsenders(t *testing.T) map[string]int {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), r.cluster.URL(r.cluster.Primary.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	rows, err := conn.Query(t.Context(), "select application_name, pid from pg_stat_replication where state = 'streaming'")
	if err != nil {
		t.Fatal(err)
	}
	pids := map[string]int{}
	for rows.Next() {
		var name string
		var pid int
		if err := rows.Scan(&name, &pid); err != nil {
			t.Fatal(err)
		}
		pids[name] = pid
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return pids
}

// until writes until what is said of a write is as wanted.
func (r *quorumRig) until(t *testing.T, what string, ok func(judged) bool) {
	t.Helper()
	soon(t, what, func() bool {
		r.write(t, 1, 1, "on")
		return ok(r.take(t, 1)[0])
	})
}

func (r *quorumRig) lag(t *testing.T, rules ...inject.Rule) {
	t.Helper()
	if err := r.proxy.SetRules(rules); err != nil {
		t.Fatal(err)
	}
}

// lags reports whether a standby's stream lags by so much, and what it says of its
// progress doesn't.
func (r *quorumRig) lags(name string, by time.Duration) bool {
	for _, c := range r.proxy.Connections() {
		if c.Link == name && c.Replication.Log && c.Replication.Progress && c.Lag[wire.ToClient] == by && c.Lag[wire.ToServer] == 0 {
			return true
		}
	}
	return false
}

func (r *quorumRig) rows(t *testing.T, addr string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), r.cluster.URL(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), "select count(*) from t").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Standbys that lag: commits wait for the one that doesn't, and as long as both do
// if both do; their streams stay up whatever the lag does, and in the end nothing
// is missing.
func TestRealQuorum_StandbysThatLag(t *testing.T) {
	onDrivers(t, func(t *testing.T, driver string) {
		if driver == proxy.DriverNet && !long() {
			t.Skip("make lag has both drivers; TestRealQuorum_AcknowledgementsThatLag is on this one anyhow")
		}
		version := ""
		if driver == proxy.DriverNet {
			version = "18"
		}
		r := newQuorumRigOn(t, binDir(t, version), driver)
		r.createTable(t)
		r.setNames(t, "ANY 1 (s1, s2)")
		was := r.walsenders(t)
		if len(was) != 2 {
			t.Fatalf("walsenders %v", was)
		}
		behind := *lagBy / 4
		// notBy writes n times: on a busy machine the one that is less behind may
		// stand still for as long as the other is, but seldom.
		notBy := func(name string, n int, least time.Duration) {
			t.Helper()
			unlikely := 0
			for range n {
				r.write(t, 1, 1, "on")
				j := r.take(t, 1)[0]
				if j.by == name {
					unlikely++
				} else if j.by != "" && j.replication < least {
					t.Errorf("%+v, want at least %v", j, least)
				}
			}
			if unlikely*4 > n {
				t.Errorf("%s, which is farther behind, released %d of %d commits", name, unlikely, n)
			}
		}
		// s1 is the nearer one.
		r.lag(t, lagStandby("s1", behind))
		r.until(t, "s2 releases commits", func(j judged) bool { return j.by == "s2" })
		r.until(t, "s1 is as far behind as it's to be", func(judged) bool { return r.lags("s1", behind) })
		notBy("s1", 12, 0)
		// Both: the wait follows.
		r.lag(t, lagStandby("s1", 3*behind), lagStandby("s2", behind))
		r.until(t, "commits wait for s2 as long as it's behind", func(j judged) bool { return j.by == "s2" && j.replication >= behind })
		notBy("s1", 4, behind)
		r.lag(t, lagStandby("s1", behind), lagStandby("s2", 3*behind))
		r.until(t, "s1 is the nearer one again", func(j judged) bool { return j.by == "s1" && j.replication >= behind })
		notBy("s2", 4, behind)
		r.lag(t)
		r.until(t, "s1 releases commits at once", func(j judged) bool { return j.by == "s1" && j.replication < behind })
		if is := r.walsenders(t); !maps.Equal(is, was) {
			t.Errorf("walsenders were %v, and are %v", was, is)
		}
		want := r.rows(t, r.cluster.Primary.Addr())
		for _, s := range r.cluster.Standbys {
			soon(t, s.Name()+" has every row", func() bool { return r.rows(t, s.Addr()) == want })
		}
	})
}

// Where an end that hears nothing asks the other after half of its time-out, the
// answer may be late by the other half: what the warnings say, on a server that has
// nothing to send.
func TestRealQuorum_LagsAndTimeouts(t *testing.T) {
	if !long() {
		t.Skip("it waits for time-outs to pass: make lag")
	}
	for name, tt := range map[string]struct {
		receiver, sender, status string
		lag                      time.Duration
		both, breaks             bool
	}{
		"receiver, over half":              {"6s", "60s", "10s", 5 * time.Second, false, true},
		"receiver, within half":            {"12s", "60s", "10s", 3 * time.Second, false, false},
		"receiver, over half both ways":    {"6s", "60s", "10s", 3 * time.Second, true, true},
		"sender, over half":                {"60s", "6s", "10s", 5 * time.Second, false, true},
		"sender, within half":              {"60s", "12s", "10s", 3 * time.Second, false, false},
		"sender, reports before that":      {"60s", "8s", "1s", 10 * time.Second, false, false},
		"sender, reports that are late so": {"60s", "8s", "1s", 10 * time.Second, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newQuorumRig(t, "", map[string]string{
				"wal_receiver_timeout": tt.receiver, "wal_sender_timeout": tt.sender, "wal_receiver_status_interval": tt.status,
			})
			rule := lagRule("s1-behind", tt.lag, inject.When{Application: []string{"s1"}})
			rule.With.Acknowledgements = tt.both
			r.lag(t, rule)
			soon(t, "s1 is behind, or away", func() bool { return r.lags("s1", tt.lag) || tt.both || r.walsenders(t)["s1"] == 0 })
			was, broke := r.walsenders(t)["s1"], false
			for end := time.Now().Add(40 * time.Second); time.Now().Before(end) && !broke; time.Sleep(200 * time.Millisecond) {
				broke = was == 0 || r.walsenders(t)["s1"] != was
			}
			if broke != tt.breaks {
				t.Errorf("it broke off: %v, want %v", broke, tt.breaks)
			}
		})
	}
}

// What a standby says of its progress lags by as much again; in a scenario, after
// whose end nothing does.
func TestRealQuorum_AcknowledgementsThatLag(t *testing.T) {
	r := newQuorumRigOn(t, "", proxy.DriverNet)
	r.createTable(t)
	r.setNames(t, "ANY 2 (s1, s2)")
	behind := *lagBy / 4
	rule := lagStandby("s1", behind)
	rule.With.Acknowledgements = true
	err := r.proxy.StartScenario(proxy.Scenario{
		Name: "lag", Steps: []proxy.Step{{Name: "behind", Rules: []inject.Rule{rule}}}, End: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.until(t, "a commit waits both ways", func(j judged) bool { return j.by == "s1" && j.replication >= 2*behind })
	for range 3 {
		r.write(t, 1, 1, "on")
		if j := r.take(t, 1)[0]; j.by == "s1" && j.replication < 2*behind {
			t.Errorf("%+v, want at least %v", j, 2*behind)
		}
	}
	if s := r.proxy.Rules()[0]; s.Name != rule.Name || totalHits(s) != 1 {
		t.Errorf("%+v, want a hit for s1's stream", s)
	}
	if !r.proxy.StopScenario() {
		t.Error("the scenario was over")
	}
	soon(t, "s1 isn't behind any more", func() bool { return r.lags("s1", 0) })
}

func totalHits(s proxy.RuleStatus) (n uint64) {
	for _, l := range s.Links {
		n += l.Hits
	}
	return n
}
