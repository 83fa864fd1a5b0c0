//go:build unix

package proxy

import (
	"context"
	"io"
	"maps"
	"net"
	"testing"
	"time"

	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// TestCounters_OfEachLinkOutliveItsConnections: what a connection counted is the
// same before and after it ended, and of its own link.
func TestCounters_OfEachLinkOutliveItsConnections(t *testing.T) {
	upstream := server(t, "tcp", "127.0.0.1:0", echo)
	a := LinkConfig{Name: "a", From: "app", To: "sgp", Upstream: upstream, Protocol: wire.TCP, Delay: rtt(20 * time.Millisecond)}
	p, _ := start(t, a, func(c *Config) {
		c.Links = append(c.Links, LinkConfig{Name: "b", Listen: "127.0.0.1:0", Upstream: upstream, Protocol: wire.TCP})
	})
	for _, l := range p.Links() {
		c := dialLink(t, l)
		if _, err := io.WriteString(c, "hello"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		soon(t, "the bytes are counted", func() bool { return of(p, l.Name()).Ways[wire.ToClient].Bytes == 5 })
		check := func(when string, open int64) {
			t.Helper()
			n := of(p, l.Name())
			if n.ConnectionsOpen != open || n.ConnectionsTotal != 1 || n.Ways[0].Bytes != 5 || n.Ways[1].Bytes != 5 {
				t.Errorf("link %s %s: %+v", l.Name(), when, n)
			}
			for d, w := range n.Ways {
				switch {
				case l.Name() == "b" && w.Held != 0:
					t.Errorf("link b %s: %+v, and it delays nothing", when, w)
				case l.Name() == "a" && (w.Held != 1 || w.PlannedMean() < 10*time.Millisecond || w.AchievedMean() < w.PlannedMean() || w.MaxError != w.AchievedMean()-w.PlannedMean() && w.MaxError <= 0):
					t.Errorf("link a %s, %v: %+v", when, wire.Direction(d), w)
				}
			}
		}
		check("while it is open", 1)
		c.Close()
		soon(t, "the connection is gone", func() bool { return of(p, l.Name()).ConnectionsOpen == 0 })
		check("afterwards", 0)
	}
	if n := p.Counters(); n.ConnectionsTotal != 2 || n.Bytes != [2]uint64{10, 10} || n.Links[0].To != "sgp" {
		t.Errorf("%+v", n)
	}
}

func of(p *Proxy, link string) trace.LinkCounters {
	for _, l := range p.Counters().Links {
		if l.Link == link {
			return l
		}
	}
	return trace.LinkCounters{}
}

func TestConnections_AreSeenAndCut(t *testing.T) {
	p, l := start(t, LinkConfig{Name: "a", Upstream: server(t, "tcp", "127.0.0.1:0", echo), Protocol: wire.TCP})
	var clients []net.Conn
	for range 3 {
		clients = append(clients, dialLink(t, l))
		n := len(clients)
		soon(t, "it is open", func() bool {
			all := p.Connections()
			return len(all) == n && all[n-1].State == Open
		})
	}
	all := p.Connections()
	for i, c := range all {
		if c.Link != "a" || c.Client != clients[i].LocalAddr().String() || c.Upstream == "" || c.UpstreamPort == 0 || time.Since(c.Since) > time.Minute {
			t.Errorf("connection %d: %+v", i, c)
		}
	}
	if !p.Cut(all[1].ID) {
		t.Fatal("it is not there")
	}
	if n, err := clients[1].Read(make([]byte, 1)); err == nil {
		t.Errorf("read %d bytes of a connection that was cut", n)
	}
	soon(t, "it is gone", func() bool { _, ok := p.Connection(all[1].ID); return !ok })
	if p.Cut(all[1].ID) {
		t.Error("it was cut twice")
	}
	for _, i := range []int{0, 2} {
		if c, ok := p.Connection(all[i].ID); !ok || c.State != Open {
			t.Errorf("connection %d: %+v", i, c)
		}
	}
}

// TestControl_NeverWaits: whatever the peers do, what is asked of a Proxy is
// answered. A dial that hangs and a line that is full, in front of a server that
// doesn't read, are there at once.
func TestControl_NeverWaits(t *testing.T) {
	p := stuck(t)
	all := p.Connections()
	if len(all) != 2 {
		t.Fatalf("%d connections", len(all))
	}
	for _, l := range p.Links() {
		l.SetDelay(rtt(time.Second))
		if d := l.Delay(); d.RTT() != time.Second {
			t.Errorf("the delay of %s is %v", l.Name(), d.RTT())
		}
	}
	for _, c := range all {
		if want := map[string]ConnectionState{"full": Open, "hanging": Connecting}[c.Link]; c.State != want {
			t.Errorf("the connection of %s is %s, want %s", c.Link, c.State, want)
		}
		if !p.Cut(c.ID) {
			t.Errorf("connection %d of %s is not there", c.ID, c.Link)
		}
	}
	soon(t, "both are gone", func() bool { return len(p.Connections()) == 0 })
}

// stuck is a proxy with a connection whose line is full and one whose upstream
// never answers.
func stuck(t *testing.T) *Proxy {
	t.Helper()
	silent := server(t, "tcp", "127.0.0.1:0", func(net.Conn) { <-t.Context().Done() })
	p, err := newProxy(Config{LineLimit: 1})
	if err != nil {
		t.Fatal(err)
	}
	dial := p.dial
	p.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == silent {
			return dial(ctx, network, address)
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	t.Cleanup(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		_ = p.Shutdown(now)
	})
	if err := p.Reload([]LinkConfig{
		{Name: "full", Listen: "127.0.0.1:0", Upstream: silent, Protocol: wire.TCP},
		{Name: "hanging", Listen: "127.0.0.1:0", Upstream: "192.0.2.1:1", Protocol: wire.TCP},
	}); err != nil {
		t.Fatal(err)
	}
	go dialLink(t, p.Link("full")).Write(make([]byte, 64<<20)) // until it's closed
	dialLink(t, p.Link("hanging"))
	soon(t, "a line is full", func() bool { return of(p, "full").Ways[wire.ToServer].Paused == 1 })
	soon(t, "a dial hangs", func() bool { return of(p, "hanging").ConnectionsOpen == 1 })
	return p
}

// TestSetDelays_OfALinkThatSeveralDial: each keeps what isn't changed.
func TestSetDelays_OfALinkThatSeveralDial(t *testing.T) {
	p, l := start(t, LinkConfig{
		Name: "a", Upstream: "127.0.0.1:1", Protocol: wire.TCP, Delay: rtt(10 * time.Millisecond),
		Sources: []Source{{Name: "near", Delay: rtt(20 * time.Millisecond)}, {Name: "far", Delay: rtt(200 * time.Millisecond)}},
	})
	jitter := time.Millisecond
	if err := p.SetDelays(map[string]DelayPatch{"a": {Jitter: &jitter}}); err != nil {
		t.Fatal(err)
	}
	got := map[string]time.Duration{"": l.Delay().Delay[0].Base}
	for _, s := range l.SourceDelays() {
		if got[s.Name] = s.Delay.Delay[0].Base; s.Delay.Delay[1].Jitter != jitter {
			t.Errorf("%s has a jitter of %v", s.Name, s.Delay.Delay[1].Jitter)
		}
	}
	if want := map[string]time.Duration{"": 5 * time.Millisecond, "near": 10 * time.Millisecond, "far": 100 * time.Millisecond}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	// Of all, or of none.
	jitter = 50 * time.Millisecond
	if err := p.SetDelays(map[string]DelayPatch{"a": {Jitter: &jitter}, "b": {}}); err == nil {
		t.Error("a jitter that is more than a delay was taken")
	}
	for _, s := range l.SourceDelays() {
		if s.Delay.Delay[0].Jitter != time.Millisecond {
			t.Errorf("refused, and %s has %v", s.Name, s.Delay.Delay[0].Jitter)
		}
	}
}
