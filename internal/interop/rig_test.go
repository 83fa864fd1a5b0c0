package interop

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// rig is a proxy in front of one server, and what its tracer got.
type rig struct {
	proxy  *proxy.Proxy
	tracer *trace.Tracer
	got    collector
	rtt    time.Duration
}

// collector keeps a copy of every exchange.
type collector struct {
	mu  sync.Mutex
	all []trace.Finished
}

func (c *collector) Consume(f *trace.Finished) {
	x := *f.Exchange
	x.Mongo.WriteConcern.Raw = slices.Clone(x.Mongo.WriteConcern.Raw)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, trace.Finished{Exchange: &x, Conn: f.Conn, Waits: f.Waits})
}

func startRig(t *testing.T, p wire.Protocol, upstream string, rtt time.Duration) *rig {
	t.Helper()
	r := &rig{rtt: rtt}
	r.tracer = trace.New(1<<16, &r.got)
	t.Cleanup(r.tracer.Close)
	var err error
	r.proxy, err = proxy.Start(context.Background(), proxy.Config{
		Tracer: r.tracer,
		Links: []proxy.LinkConfig{{
			Listen: "127.0.0.1:0", Upstream: upstream, Protocol: p,
			Delay: inject.Symmetric(rtt, 0), TLS: proxy.TLSConfig{Client: "decline"},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = r.proxy.Shutdown(ctx)
	})
	return r
}

// addr is where the proxy listens.
func (r *rig) addr() string { return r.proxy.Links()[0].Addr().String() }

// writes ends the proxy, whose clients must be gone, and returns the writes
// that it saw, in the order in which they came. Each has been checked for waits
// that add up and that are as long as the link's delay.
func (r *rig) writes(t *testing.T) []trace.Finished {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := r.proxy.Shutdown(ctx); err != nil {
		t.Errorf("the proxy did not end by itself: %v", err)
	}
	r.tracer.Close()
	n := r.proxy.Counters()
	if n.Opaque+n.Encrypted+n.Dropped+n.DialFailures > 0 || len(n.DecodeFailures) > 0 || n.BytesLive != 0 {
		t.Errorf("counters %+v: want nothing unread, dropped or left", n)
	}
	if n.ConnectionsTotal == 0 || n.ConnectionsOpen != 0 {
		t.Errorf("connections: %d in all, %d left", n.ConnectionsTotal, n.ConnectionsOpen)
	}
	all := slices.Clone(r.got.all)
	slices.SortStableFunc(all, func(a, b trace.Finished) int {
		return cmp.Compare(a.Sides[wire.ToServer].FirstIn, b.Sides[wire.ToServer].FirstIn)
	})
	for i := range all {
		r.checkWaits(t, &all[i])
	}
	return all
}

func (r *rig) checkWaits(t *testing.T, f *trace.Finished) {
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
	there, back := r.rtt/2, r.rtt/2
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
