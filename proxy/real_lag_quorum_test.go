//go:build unix

package proxy_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/wirewait/wirewait/inject"
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
		if c.Link == name && c.Lag[wire.ToClient] == by && c.Lag[wire.ToServer] == 0 {
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
		r := newQuorumRigOn(t, "", driver)
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
