//go:build unix

package proxy_test

import (
	"flag"
	"maps"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
)

// make lag has a member four seconds behind for a minute.
var (
	lagBy  = flag.Duration("lag", 1200*time.Millisecond, "how far a member is behind")
	lagFor = flag.Duration("lagging", 2*time.Second, "how long it is, once it is")
)

// long reports whether there is time for more than the main thing.
func long() bool { return *lagFor >= 30*time.Second }

func lagRule(name string, d time.Duration, w inject.When) inject.Rule {
	return inject.Rule{Name: name, Effect: inject.EffectLag, When: w, With: inject.With{Delay: d}}
}

// topology is what a lag must not change: who is primary in which term, and whom
// the others follow.
func (r *setRig) topology() map[string]string {
	m := map[string]string{}
	for _, member := range []string{"a", "b", "c"} {
		s := r.set.Member(member).Status()
		m[member] = s.Source
		if s.Writable {
			m["primary"] = member
		}
	}
	return m
}

func (r *setRig) term() int64 { return r.set.Member("a").Status().Term }

// A member that lags: majorities are the others', w: 3 waits for it, nobody elects
// and nobody looks for another source, while it falls behind, is, and recovers.
func TestRealSet_MemberThatLags(t *testing.T) {
	onDrivers(t, func(t *testing.T, driver string) {
		if driver == proxy.DriverNet && !long() {
			t.Skip("make lag has both drivers; TestRealQuorum_AcknowledgementsThatLag is on this one anyhow")
		}
		r := newSetRig(t, setOptions{driver: driver})
		clients := r.orders(t, 2)
		was, term := r.topology(), r.term()
		check := func(when string) {
			t.Helper()
			if is := r.topology(); !maps.Equal(was, is) || r.term() != term {
				t.Fatalf("%s: the set was %v in term %d, and is %v in %d", when, was, term, is, r.term())
			}
		}
		// c is the nearer one, which releases what a majority waits for.
		if err := r.proxy.SetRules([]inject.Rule{lagRule("c-behind", *lagBy, inject.When{From: []string{"rs0.c"}})}); err != nil {
			t.Fatal(err)
		}
		three := &writeconcern.WriteConcern{W: 3}
		last := func() judgedWrite {
			r.write(t, clients[:1], 1, three)
			return r.take(t, 1)[0]
		}
		soon(t, "a write that waits for c as long as c is behind", func() bool {
			check("falling behind")
			return last().total >= *lagBy
		})
		majorities := make(chan int)
		stop := make(chan struct{})
		go func() {
			n := 0
			defer func() { majorities <- n }()
			for {
				select {
				case <-stop:
					return
				default:
					r.write(t, clients[1:], 1, writeconcern.Majority())
					n++
				}
			}
		}()
		n := 0
		for end := time.Now().Add(*lagFor); time.Now().Before(end); n++ {
			r.write(t, clients[:1], 1, three)
			check("behind")
		}
		close(stop)
		n += <-majorities
		by, unlikely := map[string]int{}, 0
		for _, w := range r.take(t, n) {
			by[w.concern+" by "+w.by]++
			if w.concern == "w:3" && w.by == "rs0.c" && w.replication < *lagBy {
				t.Errorf("w:3: %+v, want at least %v", w, *lagBy)
			}
			if (w.by == "rs0.c") != (w.concern == "w:3") { // b stood still for as long as c is behind
				unlikely++
			}
		}
		t.Logf("%d writes: %v", n, by)
		if unlikely*4 > n || by["majority by rs0.b"] == 0 || by["w:3 by rs0.c"] == 0 {
			t.Errorf("released: %v", by)
		}
		if err := r.proxy.SetRules(nil); err != nil {
			t.Fatal(err)
		}
		soon(t, "a write that waits for b again, which is farther than c", func() bool {
			check("recovering")
			return last().by == "rs0.b"
		})
		check("at last")
	})
}
