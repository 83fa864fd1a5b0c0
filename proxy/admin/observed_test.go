//go:build unix

package admin

import (
	"testing"
	"time"

	"github.com/wirewait/wirewait/trace"
)

// sample is one of the second before.
func sample(to time.Time) *trace.Activity {
	a := &trace.Activity{
		From: to.Add(-time.Second), To: to, TicketRule: "a rule",
		Lags: []trace.MemberLag{{Member: "rs0.b", Written: trace.NoLag, Durable: 0, Applied: 1500 * time.Millisecond}},
	}
	a.Set(trace.JournalTime, 2.5)
	a.Set(trace.Checkpoint, 0)
	return a
}

func TestObserved_BySecond(t *testing.T) {
	a, _, _ := control(t)
	var all Observed
	if status := a.call("GET", "/v1/observed", "", &all); status != 200 || len(all.Servers) != 0 {
		t.Errorf("where nobody is asked: %d, %+v", status, all)
	}
	start := time.Now().Truncate(time.Second)
	a.did.Watch("rs0.a", time.Second)
	a.did.Watch("rs0.b", time.Second)
	for i := range 3 {
		a.did.Add("rs0.a", sample(start.Add(time.Duration(i)*time.Second)))
	}
	a.call("GET", "/v1/observed?limit=2", "", &all)
	if len(all.Servers) != 2 || len(all.Servers[1].Samples) != 0 || len(all.Servers[0].Samples) != 2 {
		t.Fatalf("%+v", all)
	}
	s := all.Servers[0].Samples[1]
	v, ok := s.Values["checkpoint"]
	if !s.At.Equal(start.Add(2*time.Second)) || s.Seconds != 1 || s.Values["journal_ms_per_sync"] != 2.5 || !ok || v != 0 || len(s.Values) != 2 {
		t.Errorf("the newest sample: %+v", s)
	}
	if l := s.Lags[0]; l.Member != "rs0.b" || l.Written != nil || l.Durable == nil || *l.Durable != 0 || *l.Applied != 1500 {
		t.Errorf("a member's lag: %+v", l)
	}
	if all.Servers[0].TicketRule != "a rule" {
		t.Errorf("the rule is %q", all.Servers[0].TicketRule)
	}
}
