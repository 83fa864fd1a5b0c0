//go:build unix

package proxy_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/wirewait/wirewait/internal/testenv"
	"github.com/wirewait/wirewait/proxy/observe"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// Whoever looks at the primary's sessions while they wait makes each commit
// certain: its transaction is the one that the client made, and so is the member.
func TestRealQuorum_ObservedSessions(t *testing.T) {
	testenv.Timely(t)
	r := newQuorumRig(t, "")
	r.createTable(t)
	r.setNames(t, "ANY 1 (s1, s2)")
	r.ask(t)
	all := r.write(t, 16, 10, "on")
	list := r.compare(t, all, r.take(t, len(all)))
	exact, known := 0, 0
	for _, v := range list { // compare has held transactions against what clients made
		if v.basis == trace.BasisExact {
			exact++
			if v.xid == 0 {
				t.Errorf("exact, and without a transaction: %+v", v)
			}
		}
		if v.by != "" {
			known++
		}
	}
	t.Logf("of %d writes %d exact, %d with a member", len(list), exact, known)
	checkAgainstTruth(t, "observed", list, "s1")
	if exact*4 < len(list) { // waits of 40 ms, and a query takes a few on a quiet machine
		t.Errorf("only %d of %d are exact", exact, len(list))
	}
}

// ask asks the primary until the test ends, and returns once it has answered:
// from then on what it says is the rule.
func (r *quorumRig) ask(t *testing.T) {
	t.Helper()
	answered := make(chan struct{})
	p := &observe.Primary{
		Server: r.server, URI: r.cluster.URL(r.cluster.Primary.Addr()), Log: slog.New(slog.DiscardHandler),
		Waiting: func(waiting []wire.Backend, asked time.Time) { r.tracer.Observe(r.server, waiting, asked) },
		Found: func(s *observe.PrimarySettings, since time.Time) {
			rule, err := trace.ParseStandbyNames(s.StandbyNames)
			if err != nil {
				t.Error(err)
			}
			r.tracer.SetStandbys(r.server, s.Synchronous)
			if !since.IsZero() {
				r.tracer.ChangeRule(r.server, rule, since)
				return
			}
			r.tracer.SetRule(r.server, rule)
			close(answered)
		},
	}
	r.asked.Store(p)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- p.Watch(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-answered:
	case <-t.Context().Done():
		t.Fatal("the primary doesn't answer")
	}
}
