package interop

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/wirewait/wirewait/internal/interop/rig"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// link leads to one server, without jitter, and keeps the writes that it saw.
type link struct {
	*rig.Link
	got rig.Keep
	rtt time.Duration
}

func startLink(t *testing.T, p wire.Protocol, upstream string, rtt time.Duration) *link {
	t.Helper()
	l := &link{rtt: rtt}
	l.Link = rig.Start(t, rig.Options{Upstream: upstream, Protocol: p, RTT: rtt}, &l.got)
	return l
}

// writes ends the link, whose clients must be gone, and returns the writes
// that it saw, in the order in which they came. Each has been checked for waits
// that add up and that are as long as the link's delay.
func (l *link) writes(t *testing.T) []trace.Finished {
	t.Helper()
	l.Stop(t, "")
	all := slices.Clone(l.got.All)
	slices.SortStableFunc(all, func(a, b trace.Finished) int {
		return cmp.Compare(a.Sides[wire.ToServer].FirstIn, b.Sides[wire.ToServer].FirstIn)
	})
	for i := range all {
		l.checkWaits(t, &all[i])
	}
	return all
}

func (l *link) checkWaits(t *testing.T, f *trace.Finished) {
	t.Helper()
	if !f.Write {
		t.Errorf("%s: not a write", f.Operation)
	}
	sum := time.Duration(0)
	for _, p := range f.Waits.Parts() {
		sum += p.Time
		if p.Time < 0 {
			t.Errorf("%s: %s is %v", f.Operation, p.Name, p.Time)
		}
	}
	if sum != f.Waits.Total || sum <= 0 {
		t.Errorf("%s: parts add up to %v, the whole is %v", f.Operation, sum, f.Waits.Total)
	}
	there, back := l.rtt/2, l.rtt/2
	if f.NoReply {
		back = 0
	}
	if f.Waits.Request < there || f.Waits.Reply < back {
		t.Errorf("%s: request %v and reply %v, want at least %v and %v", f.Operation, f.Waits.Request, f.Waits.Reply, there, back)
	}
	if f.Waits.Planned != there+back || f.Waits.Achieved < f.Waits.Planned {
		t.Errorf("%s: planned %v, achieved %v, want %v and no less", f.Operation, f.Waits.Planned, f.Waits.Achieved, there+back)
	}
	if f.Conn == nil || f.Conn.ClientAddr == "" || f.Conn.UpstreamPort == 0 {
		t.Errorf("%s: connection %+v", f.Operation, f.Conn)
	}
}

// compare holds the outcome of a scenario through the proxy against the direct
// one, line by line.
func compare(t *testing.T, direct, through []string) {
	t.Helper()
	if len(direct) == 0 {
		t.Fatal("the scenario did nothing")
	}
	for i := range max(len(direct), len(through)) {
		var d, p string
		if i < len(direct) {
			d = direct[i]
		}
		if i < len(through) {
			p = through[i]
		}
		if d != p {
			t.Errorf("outcome %d:\n direct  %s\n through %s", i, brief(d), brief(p))
		}
	}
}

func brief(s string) string {
	if len(s) > 400 {
		return s[:400] + "..."
	}
	return s
}
