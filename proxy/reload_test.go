//go:build unix

package proxy

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// names serves connections by saying a name, and then echoes.
func names(t *testing.T, name string) string {
	return server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		_, _ = io.WriteString(c, name)
		echo(c)
	})
}

// greeting is what an upstream says first.
func greeting(t *testing.T, c net.Conn) string {
	t.Helper()
	b := make([]byte, 1)
	if _, err := io.ReadFull(c, b); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func mustReload(t *testing.T, p *Proxy, links ...LinkConfig) {
	t.Helper()
	if err := p.Reload(links); err != nil {
		t.Fatal(err)
	}
}

// TestReload_NobodyIsRefused: under load, links that keep their address accept
// all the time, whatever else changes, their names too.
func TestReload_NobodyIsRefused(t *testing.T) { eachDriver(t, nobodyIsRefused) }

func nobodyIsRefused(t *testing.T, on driverName) {
	up := server(t, "tcp", "127.0.0.1:0", echo)
	link := func(name, listen string, d time.Duration) LinkConfig {
		return LinkConfig{Name: name, Listen: listen, Protocol: wire.TCP, Upstream: up, Delay: rtt(d)}
	}
	p, l := on.start(t, link("first", "127.0.0.1:0", 0))
	// With their ports known, links can be called otherwise.
	fixed := l.Addr().String()
	mustReload(t, p, link("first", fixed, 0), link("second", "127.0.0.1:0", 0))
	stop := make(chan struct{})
	var clients, enough sync.WaitGroup
	for range 8 {
		enough.Add(1)
		did := sync.OnceFunc(enough.Done)
		clients.Go(func() {
			defer did()
			for n := 0; ; n++ {
				if n == 20 {
					did()
				}
				select {
				case <-stop:
					return
				default:
				}
				c, err := net.Dial("tcp", fixed)
				if err != nil {
					t.Errorf("refused: %v", err)
					return
				}
				b := []byte("hello")
				_, werr := c.Write(b)
				_, rerr := io.ReadFull(c, b)
				c.Close()
				if err := errors.Join(werr, rerr); err != nil {
					t.Errorf("cut: %v", err)
					return
				}
			}
		})
	}
	busy := make(chan struct{})
	go func() { enough.Wait(); close(busy) }()
	for i, done := 0, false; i < 50 || !done; i++ {
		select {
		case <-busy:
			done = true
		default:
		}
		d := time.Duration(i%3) * time.Millisecond
		mustReload(t, p, link("first", fixed, d), link("second", "127.0.0.1:0", d))
		mustReload(t, p, link("third", fixed, d))
	}
	close(stop)
	clients.Wait()
}

// TestReload_ConnectionsGoOn: those of a link that is gone or leads elsewhere
// end when they like.
func TestReload_ConnectionsGoOn(t *testing.T) { eachDriver(t, connectionsGoOn) }

func connectionsGoOn(t *testing.T, on driverName) {
	link := func(name, up string, d time.Duration) LinkConfig {
		return LinkConfig{Name: name, Listen: "127.0.0.1:0", Protocol: wire.TCP, Upstream: up, Delay: rtt(d)}
	}
	a, b := names(t, "a"), names(t, "b")
	p, l := on.start(t, link("one", a, 0))
	old := dialLink(t, l)
	if got := greeting(t, old); got != "a" {
		t.Fatal(got)
	}

	mustReload(t, p, link("one", b, 60*time.Millisecond))
	if p.Link("one") != l || l.Upstream() != b {
		t.Error("it isn't the same link, or leads elsewhere")
	}
	if got := greeting(t, dialLink(t, l)); got != "b" {
		t.Errorf("a new connection leads to %s", got)
	}
	if d := exchange(t, old, "x"); d < 60*time.Millisecond {
		t.Errorf("the old connection has a round trip of %v", d)
	}

	before := p.Counters()
	mustReload(t, p, link("two", b, 0))
	exchange(t, old, "x")
	if c, err := net.Dial("tcp", l.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the link that is gone accepts: %v, %v", c, err)
	}
	if p.Link("one") != nil || len(p.Links()) != 1 {
		t.Error("it's still there")
	}
	after := p.Counters()
	if after.Bytes[0] != before.Bytes[0]+1 || after.ConnectionsTotal != 2 || after.ConnectionsOpen != 2 {
		t.Errorf("counted %+v, and before %+v", after, before)
	}
	old.Close()
	soon(t, "its connection ends", func() bool { return p.Counters().ConnectionsOpen == 1 })
	if n := p.Counters(); n.ConnectionsTotal != 2 || n.Bytes[0] != after.Bytes[0] {
		t.Errorf("in the end %+v", n)
	}
}

// TestReload_Addresses: a link that listens elsewhere leaves its address, and two
// may change theirs.
func TestReload_Addresses(t *testing.T) {
	link := func(name, listen, up string) LinkConfig {
		return LinkConfig{Name: name, Listen: listen, Protocol: wire.TCP, Upstream: up}
	}
	a, b := names(t, "a"), names(t, "b")
	p, l := start(t, link("a", "127.0.0.1:0", a))
	first := l.Addr().String()
	mustReload(t, p, link("a", first, a), link("b", "127.0.0.1:0", b))
	second := p.Link("b").Addr().String()
	mustReload(t, p, link("a", first, a), link("b", second, b))

	mustReload(t, p, link("a", second, a), link("b", first, b))
	for address, want := range map[string]string{first: "b", second: "a"} {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if got := greeting(t, c); got != want {
			t.Errorf("%s leads to %s, want %s", address, got, want)
		}
		c.Close()
	}
	if got := p.Link("a").Addr().String(); got != second {
		t.Errorf("a says it is at %s", got)
	}
	mustReload(t, p, link("a", "127.0.0.1:0", a), link("b", first, b))
	if c, err := net.Dial("tcp", second); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the address that was left accepts: %v, %v", c, err)
	}
	if got := greeting(t, dialLink(t, p.Link("a"))); got != "a" {
		t.Error(got)
	}
}

// TestReload_AllOrNothing: the error names all that is wrong, and nothing
// changes.
func TestReload_AllOrNothing(t *testing.T) {
	up, other := names(t, "a"), names(t, "b")
	p, l := start(t, LinkConfig{Name: "one", Protocol: wire.TCP, Upstream: up})
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	err = p.Reload([]LinkConfig{
		{Name: "one", Listen: "127.0.0.1:0", Protocol: wire.TCP, Upstream: other, Delay: rtt(time.Hour)},
		{Name: "new", Listen: free.Addr().String(), Upstream: other},
		{Name: "new", Listen: "127.0.0.1:0", Upstream: other},
		{Name: "taken", Listen: other, Upstream: other},
		{Name: "secret", Listen: "127.0.0.1:0", Upstream: other, TLS: TLSConfig{Client: "terminate", Cert: "/none", Key: "/none"}},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"link new: the name is taken", "link taken: listen tcp ", "link secret: ", "/none",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %q", err, want)
		}
	}
	if len(p.Links()) != 1 || l.Upstream() != up || l.Delay() != rtt(0) {
		t.Errorf("it changed: %d links, to %s", len(p.Links()), l.Upstream())
	}
	if got := greeting(t, dialLink(t, l)); got != "a" {
		t.Errorf("it leads to %s", got)
	}
	if c, err := net.Dial("tcp", free.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a listener stayed behind: %v, %v", c, err)
	}
}

// TestReload_ToEveryInterface: an address that the system can't have beside the
// old one takes its place, or the old one is there again.
func TestReload_ToEveryInterface(t *testing.T) {
	up := names(t, "a")
	p, l := start(t, LinkConfig{Name: "one", Protocol: wire.TCP, Upstream: up})
	old, port := l.Addr().String(), portOf(l.Addr())
	wild := LinkConfig{Name: "one", Listen: "0.0.0.0:" + port, Protocol: wire.TCP, Upstream: up}
	taken := LinkConfig{Name: "two", Listen: up, Protocol: wire.TCP, Upstream: up}
	for _, links := range [][]LinkConfig{{wild, taken}, {taken, wild}} {
		if err := p.Reload(links); err == nil || !strings.Contains(err.Error(), "link two: ") {
			t.Fatalf("%v", err)
		}
		if got := l.Addr().String(); got != old {
			t.Errorf("it listens at %s", got)
		}
		if got := greeting(t, dialLink(t, l)); got != "a" {
			t.Error(got)
		}
	}
	mustReload(t, p, wild)
	for _, host := range []string{"127.0.0.1", "127.0.0.2"} {
		c, err := net.Dial("tcp", net.JoinHostPort(host, port))
		if err != nil {
			t.Skipf("only Linux has all of 127.0.0.0/8: %v", err)
		}
		if got := greeting(t, c); got != "a" {
			t.Error(got)
		}
		c.Close()
	}
	mustReload(t, p, LinkConfig{Name: "other", Listen: old, Protocol: wire.TCP, Upstream: up})
	if got := greeting(t, dialLink(t, p.Link("other"))); got != "a" {
		t.Error(got)
	}
}

// TestReload_ReadsCertificatesAgain: those that were renewed under the same name.
func TestReload_ReadsCertificatesAgain(t *testing.T) {
	ca := newTestCA(t)
	old, renewed := ca.issue(t, "localhost", soonToEnd()), ca.issue(t, "localhost", soonToEnd())
	config := LinkConfig{Name: "one", Listen: "127.0.0.1:0", Protocol: wire.TCP, Upstream: server(t, "tcp", "127.0.0.1:0", echo), TLS: terminate(old)}
	p, l := start(t, config)
	serial := func() string {
		c := tls.Client(dialLink(t, l), &tls.Config{RootCAs: ca.pool, ServerName: "localhost"})
		if err := c.Handshake(); err != nil {
			t.Fatal(err)
		}
		return c.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	if got, want := serial(), old.pair.Leaf.SerialNumber.String(); got != want {
		t.Fatalf("certificate %s, want %s", got, want)
	}
	for from, to := range map[string]string{renewed.cert: old.cert, renewed.key: old.key} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	mustReload(t, p, config)
	if got, want := serial(), renewed.pair.Leaf.SerialNumber.String(); got != want {
		t.Errorf("certificate %s after the reload, want %s", got, want)
	}
}

func TestReload_AfterTheStop(t *testing.T) {
	p, l := start(t, LinkConfig{Upstream: "127.0.0.1:1"})
	if err := p.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.Reload([]LinkConfig{l.Config(), {Listen: "127.0.0.1:0", Name: "more", Upstream: "127.0.0.1:1"}}); err == nil {
		t.Error("it starts again")
	}
}

// TestReload_KeepsPipes: connections of before and after share a wire, whichever
// way their links lead.
func TestReload_KeepsPipes(t *testing.T) {
	two := func() []LinkConfig {
		pipes := new(Pipes)
		return []LinkConfig{
			{Name: "there", Listen: "127.0.0.1:0", Upstream: "127.0.0.1:1", Pipes: pipes},
			{Name: "back", Listen: "127.0.0.1:0", Upstream: "127.0.0.1:1", Pipes: pipes.Reversed()},
			{Name: "fresh", Listen: "127.0.0.1:0", Upstream: "127.0.0.1:1", Pipes: pipes, From: "a", Sources: []Source{{Name: "x", Pipes: pipes.Reversed()}}},
		}
	}
	p, _ := start(t, LinkConfig{Upstream: "127.0.0.1:1"})
	mustReload(t, p, two()[:2]...)
	there := p.Link("there").route.Load().base.pipes.booker(wire.ToServer)
	for range 2 {
		mustReload(t, p, two()...)
		fresh := p.Link("fresh").route.Load()
		for name, got := range map[string]any{
			"there": p.Link("there").route.Load().base.pipes.booker(wire.ToServer),
			"back":  p.Link("back").route.Load().base.pipes.booker(wire.ToClient),
			"fresh": fresh.base.pipes.booker(wire.ToServer), "its source": fresh.sources.all[0].pipes.booker(wire.ToClient),
		} {
			if got != any(there) {
				t.Errorf("%s has another pipe", name)
			}
		}
	}
}

// TestReconfigure_RulesBeforeTheFirstClient: whoever is first on a new link finds
// its rules in force, those set with it and those that were there.
func TestReconfigure_RulesBeforeTheFirstClient(t *testing.T) {
	up := names(t, "a")
	hold := []inject.Rule{{Name: "cut off", Effect: inject.EffectHold, When: inject.When{To: []string{"there"}}}}
	for name, change := range map[string]func(*Proxy, []LinkConfig) error{
		"set with the link": func(p *Proxy, links []LinkConfig) error { return p.Reconfigure(links, hold) },
		"set before": func(p *Proxy, links []LinkConfig) error {
			return errors.Join(p.SetRules(hold), p.Reload(links))
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := start(t, LinkConfig{Name: "one", Protocol: wire.TCP, Upstream: up})
			free, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			address := free.Addr().String()
			free.Close()
			first := make(chan net.Conn)
			go func() {
				for {
					if c, err := net.Dial("tcp", address); err == nil {
						first <- c
						return
					}
				}
			}()
			if err := change(p, []LinkConfig{{Name: "new", Listen: address, Protocol: wire.TCP, Upstream: up, To: "there"}}); err != nil {
				t.Fatal(err)
			}
			c := <-first
			defer c.Close()
			_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
			if n, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%d bytes, %v came through", n, err)
			}
		})
	}
}

// TestReconfigure_AllOrNothing: a rule that is wrong keeps the links as they are,
// and a link that can't be had the rules.
func TestReconfigure_AllOrNothing(t *testing.T) {
	up, other := names(t, "a"), names(t, "b")
	p, l := start(t, LinkConfig{Name: "one", Protocol: wire.TCP, Upstream: up})
	moved := LinkConfig{Name: "one", Listen: "127.0.0.1:0", Protocol: wire.TCP, Upstream: other}
	err := p.Reconfigure([]LinkConfig{moved, {Name: "taken", Listen: other, Upstream: other}},
		[]inject.Rule{{Name: "r", Effect: inject.EffectHold, When: inject.When{Link: []string{"two"}}}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`rule r: there is no link "two"`, "link taken: "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %q", err, want)
		}
	}
	if len(p.Rules()) != 0 || l.Upstream() != up {
		t.Errorf("it changed: %d rules, the link leads to %s", len(p.Rules()), l.Upstream())
	}
	if err := p.Reconfigure([]LinkConfig{moved}, []inject.Rule{{Name: "r", Effect: inject.EffectHold, When: inject.When{Link: []string{"one"}}}}); err != nil {
		t.Fatal(err)
	}
	if len(p.Rules()) != 1 || l.Upstream() != other {
		t.Errorf("%d rules, the link leads to %s", len(p.Rules()), l.Upstream())
	}
}

// TestUpdateRules_OfALinkThatWent: what names a link that was taken away keeps
// nobody from changing other rules; nothing new may name it.
func TestUpdateRules_OfALinkThatWent(t *testing.T) {
	p, _ := start(t, LinkConfig{Name: "one", Protocol: wire.TCP, Upstream: names(t, "a")})
	rule := func(name, link string) inject.Rule {
		return inject.Rule{Name: name, Effect: inject.EffectHold, When: inject.When{Link: []string{link}}}
	}
	if err := p.SetRules([]inject.Rule{rule("r", "one")}); err != nil {
		t.Fatal(err)
	}
	if !p.RemoveLink("one") {
		t.Fatal("it stays")
	}
	err := p.UpdateRules(func(now []inject.Rule) ([]inject.Rule, error) {
		return append(slices.Clone(now), inject.Rule{Name: "all", Effect: inject.EffectHold}), nil
	})
	if err != nil || len(p.Rules()) != 2 {
		t.Errorf("%d rules, %v", len(p.Rules()), err)
	}
	if err := p.SetRules([]inject.Rule{rule("s", "two")}); err == nil || !strings.Contains(err.Error(), `no link "two"`) {
		t.Errorf("a rule of a link that never was: %v", err)
	}
}

// TestReload_CommitsALinkWithItsRules: they are there as soon as it accepts, not
// only once a reload is through.
func TestReload_CommitsALinkWithItsRules(t *testing.T) {
	p, _ := start(t, LinkConfig{Name: "one", Protocol: wire.TCP, Upstream: names(t, "a")})
	if err := p.SetRules([]inject.Rule{{Name: "cut off", Effect: inject.EffectHold}}); err != nil {
		t.Fatal(err)
	}
	r := &reload{proxy: p, now: p.Links(), names: map[string]bool{}}
	r.plan(LinkConfig{Name: "new", Listen: "127.0.0.1:0", Protocol: wire.TCP, Upstream: names(t, "b")})
	r.open(r.plans[0])
	p.book.mu.Lock()
	err := r.commit()
	p.book.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if rules := p.Link("new").rules.Load(); rules == nil || !rules.Has(inject.EffectHold) {
		t.Error("it accepts without its rules")
	}
}
