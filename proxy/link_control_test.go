package proxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/wirewait/wirewait/inject"
)

func TestLinks_ComeAndGo(t *testing.T) { eachDriver(t, linksComeAndGo) }

func linksComeAndGo(t *testing.T, on driverName) {
	up := server(t, "tcp", "127.0.0.1:0", echo)
	p, first := on.start(t, LinkConfig{Name: "first", Upstream: up})
	kept := dialLink(t, first)
	echoed(t, kept)

	l, err := p.AddLink(LinkConfig{Name: "added", Listen: "127.0.0.1:0", Upstream: up}, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.AddLink(LinkConfig{Name: "added", Listen: "127.0.0.1:0", Upstream: up}, false); !errors.Is(err, ErrLinkExists) {
		t.Errorf("a second of the name: %v", err)
	}
	c := dialLink(t, l)
	echoed(t, c)
	at := l.Addr().String()
	l.Stop()
	l.Stop() // is as one
	gone(t, c)
	nobodyAt(t, at)
	if !l.Stopped() || l.Addr().String() != at {
		t.Errorf("stopped: %v, at %v", l.Stopped(), l.Addr())
	}
	if err := l.Start(); err != nil || l.Addr().String() != at {
		t.Fatalf("%v, at %v", err, l.Addr())
	}
	c = dialLink(t, l)
	echoed(t, c)

	// Elsewhere: what the new address is matters when it's started.
	other := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) { _, _ = io.WriteString(c, "other") })
	if err := l.Redirect("127.0.0.1:0", other); err != nil {
		t.Fatal(err)
	}
	gone(t, c)
	nobodyAt(t, at)
	if err := l.Start(); err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(dialLink(t, l)); string(got) != "other" {
		t.Errorf("it leads to %q", got)
	}
	at = l.Addr().String()
	if !p.RemoveLink("added") || p.RemoveLink("added") || p.Link("added") != nil {
		t.Error("it isn't gone")
	}
	nobodyAt(t, at)
	if err := l.Start(); !errors.Is(err, ErrNoLink) {
		t.Errorf("a link that is gone was started: %v", err)
	}
	nobodyAt(t, at)
	echoed(t, kept)
	soon(t, "its connections are gone", func() bool { return len(p.Connections()) == 1 })
}

// A reload touches neither links that were added nor one that was stopped.
// Whoever starts, stops and redirects a link at the same time as others finds it as
// they left it, and no address taken by the link itself.
func TestLinks_StartedAndStoppedAtOnce(t *testing.T) {
	up := server(t, "tcp", "127.0.0.1:0", echo)
	p, _ := start(t, LinkConfig{Name: "first", Upstream: up})
	l, err := p.AddLink(LinkConfig{Name: "added", Listen: "127.0.0.1:0", Upstream: up}, false)
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for range 200 {
				l.Stop()
				if err := l.Start(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if l.Stopped() || l.Addr().String() != at {
		t.Errorf("stopped: %v, at %v", l.Stopped(), l.Addr())
	}
	echoed(t, dialLink(t, l))
}

func TestLinks_AndReloads(t *testing.T) {
	up := server(t, "tcp", "127.0.0.1:0", echo)
	p, first := start(t, LinkConfig{Name: "first", Listen: "127.0.0.1:0", Upstream: up})
	l, err := p.AddLink(LinkConfig{Name: "added", Listen: "127.0.0.1:0", Upstream: up}, false)
	if err != nil {
		t.Fatal(err)
	}
	c := dialLink(t, l)
	echoed(t, c)
	first.Stop()
	was := first.Addr().String()
	mustReload(t, p, LinkConfig{Name: "first", Listen: "127.0.0.1:0", Upstream: up}, LinkConfig{Name: "new", Listen: "127.0.0.1:0", Upstream: up})
	echoed(t, c)
	if p.Link("added") != l || !l.Added() || p.Link("first") != first || !first.Stopped() || first.Addr().String() != was {
		t.Errorf("the links are %v", p.Links())
	}
	if err := p.Reload([]LinkConfig{{Name: "added", Listen: "127.0.0.1:0", Upstream: up}}); err == nil {
		t.Error("a configured link took the name of one that was added")
	}
	// Where a stopped link would listen others may.
	mustReload(t, p, LinkConfig{Name: "first", Listen: "127.0.0.1:0", Upstream: up}, LinkConfig{Name: "new", Listen: was, Upstream: up})
	echoed(t, dialLink(t, p.Link("new")))
	if err := first.Start(); err == nil {
		t.Error("two links listen at one address")
	}
	mustReload(t, p, LinkConfig{Name: "first", Listen: "127.0.0.1:0", Upstream: up})
	if err := first.Start(); err != nil {
		t.Error(err)
	}
	echoed(t, dialLink(t, first))
	mustReload(t, p)
	if len(p.Links()) != 1 {
		t.Errorf("the links are %v", p.Links())
	}
	echoed(t, c)
}

// A delay that was set stays when a link is led elsewhere, and counters of links
// that are gone stay in the sums.
func TestLinks_WhatStays(t *testing.T) {
	up := server(t, "tcp", "127.0.0.1:0", echo)
	p, _ := start(t, LinkConfig{Name: "first", Listen: "127.0.0.1:0", Upstream: up})
	l, err := p.AddLink(LinkConfig{Name: "added", Listen: "localhost:0", Upstream: "127.0.0.1:1"}, true)
	if err != nil {
		t.Fatal(err)
	}
	if at := l.Addr().String(); at != "localhost:0" || !l.Stopped() {
		t.Errorf("it's at %s", at)
	}
	l.SetDelay(rtt(4))
	if err := l.Redirect("localhost:0", up); err != nil {
		t.Fatal(err)
	}
	if d := l.Delay(); d.RTT() != 4 {
		t.Errorf("the delay is %v", d.RTT())
	}
	if err := l.Redirect("localhost:0", "nowhere"); err == nil || l.Upstream() != up {
		t.Errorf("%v, and it leads to %s", err, l.Upstream())
	}
	if err := l.Start(); err != nil {
		t.Fatal(err)
	}
	echoed(t, dialLink(t, l))
	p.RemoveLink("added")
	soon(t, "its bytes are in the sums", func() bool { return p.Counters().Bytes[0] == 1 })
}

// Toxics stand beside rules, and each set is changed without the other.
func TestSetToxics_BesideRules(t *testing.T) {
	p, _ := start(t, LinkConfig{Name: "first", Listen: "127.0.0.1:0", Upstream: "127.0.0.1:1"})
	rule := inject.Rule{Name: "rule", Effect: inject.EffectHold}
	toxic := inject.Rule{Name: "first/toxic", Effect: inject.EffectTimeout, Stacks: true, When: inject.When{Link: []string{"later"}}}
	if err := p.SetRules([]inject.Rule{rule}); err != nil {
		t.Fatal(err)
	}
	if err := p.SetToxics([]inject.Rule{toxic}); err != nil {
		t.Fatal(err)
	}
	if err := p.SetToxics([]inject.Rule{rule}); err == nil {
		t.Error("a rule's name was taken")
	}
	if err := p.SetRules(nil); err != nil {
		t.Fatal(err)
	}
	if got := p.Toxics(); len(got) != 1 || got[0].Name != "first/toxic" || len(p.Rules()) != 0 {
		t.Errorf("%+v, and %d rules", got, len(p.Rules()))
	}
	if err := p.SetToxics(nil); err != nil || len(p.Toxics()) != 0 {
		t.Errorf("%v, %d left", err, len(p.Toxics()))
	}
}

func echoed(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}

func gone(t *testing.T, c net.Conn) {
	t.Helper()
	if n, err := io.Copy(io.Discard, c); n > 0 || isTimeout(err) {
		t.Errorf("the connection goes on: %v", err)
	}
}

func nobodyAt(t *testing.T, at string) {
	t.Helper()
	if c, err := net.Dial("tcp", at); err == nil {
		c.Close()
		t.Errorf("somebody listens at %s", at)
	}
}
