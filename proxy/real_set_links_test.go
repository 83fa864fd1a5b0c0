//go:build unix

package proxy_test

import (
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/wirewait/wirewait/inject"
)

// Links between members that are cut, again and again: writes take longer, as they
// would without us, and none is said to have been released by a member that didn't.
func TestRealSet_LinksThatDie(t *testing.T) {
	r := newSetRig(t, setOptions{})
	clients := r.orders(t, 4)
	const each = 15
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.write(t, clients, each, writeconcern.Majority(), &writeconcern.WriteConcern{W: 2})
	}()
	cuts := 0
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-time.After(300 * time.Millisecond):
			for _, c := range r.proxy.Connections() {
				if strings.HasPrefix(c.Link, "members-") && c.From == "rs0.c" && r.proxy.Cut(c.ID) {
					cuts++
				}
			}
		}
	}
	truth := r.releases()
	by, wrong := map[string]int{}, 0
	for _, w := range r.take(t, len(clients)*each) {
		by[w.by+" "+w.basis]++
		if w.by != "" && w.by != "rs0."+truth[w.at].By {
			wrong++
			t.Logf("%s: by %s, %s, %v before the reply; in truth by %s", w.concern, w.by, w.basis, w.late, truth[w.at].By)
		}
	}
	t.Logf("%d connections cut: %v", cuts, by)
	// On a machine so busy that the primary stands still between two of them, one
	// may be the other's.
	if cuts == 0 || wrong > 1 {
		t.Errorf("%d connections cut, %d writes attributed to the wrong member", cuts, wrong)
	}
}

// A secondary that is cut off from the primary and comes back, then both: who writes
// w: 1 doesn't notice, majority is the other's, or waits, and nobody is said to have
// released what he didn't.
func TestRealSet_MembersCutOff(t *testing.T) {
	r := newSetRig(t, setOptions{})
	clients := r.orders(t, 4)
	cutOff := func(members ...string) {
		t.Helper()
		var rules []inject.Rule
		if len(members) > 0 {
			rules = []inject.Rule{{Name: "cut off", Effect: inject.EffectHold, When: inject.When{From: members, To: []string{"rs0.a"}, Monitors: true}}}
		}
		if err := r.proxy.SetRules(rules); err != nil {
			t.Fatal(err)
		}
	}
	const each = 5
	judge := func(n int) (by map[string]int) {
		t.Helper()
		truth, wrong := r.releases(), 0
		by = map[string]int{}
		for _, w := range r.take(t, n) {
			by[w.by]++
			if w.by != "" && w.by != "rs0."+truth[w.at].By {
				wrong++
				t.Logf("%s: by %s, %s, %v before the reply; in truth by %s", w.concern, w.by, w.basis, w.late, truth[w.at].By)
			}
		}
		if wrong > 1 { // as above
			t.Errorf("%d writes are attributed to the wrong member", wrong)
		}
		return by
	}

	cutOff("rs0.c")
	r.write(t, clients, each, writeconcern.Majority())
	if by := judge(len(clients) * each); by["rs0.b"] == 0 || by["rs0.c"] > 1 { // what had left before
		t.Errorf("with c cut off writes were released by %v", by)
	}

	cutOff("rs0.b", "rs0.c")
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.write(t, clients[1:], 1, writeconcern.Majority())
	}()
	r.write(t, clients[:1], 20, writeconcern.W1())
	if by := judge(20); by[""] != 20 {
		t.Errorf("w: 1 was released by %v", by)
	}
	select {
	case <-done:
		t.Error("majority was reached with both secondaries cut off")
	default:
	}
	cutOff()
	<-done
	judge(len(clients) - 1)
}
