package main

import (
	"testing"
	"time"

	"github.com/wirewait/wirewait/internal/testenv"
)

func TestHeld_WalkedAndPinged(t *testing.T) {
	b := newBench(t)
	second, err := b.fleet.role("server")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(j job) outcome {
		t.Helper()
		o, err := b.client.ask(j)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	if _, err := b.client.ask(job{Kind: "walk", For: time.Millisecond}); err == nil {
		t.Error("a walk over nothing succeeded")
	}
	ask(job{Kind: "hold", Addrs: []string{b.server.Addr, second.Addr}, Conns: 20})
	if o := ask(job{Kind: "walk", Warm: time.Millisecond, For: 20 * time.Millisecond}); o.Count == 0 || o.P50 <= 0 || o.P99 < o.P50 {
		t.Errorf("a walk over 20 connections: %+v", o)
	}
	held := job{Kind: "ping", Held: true, Conns: 5, For: 20 * time.Millisecond}
	for range 2 { // the second finds them as the first left them
		if o := ask(held); o.Count == 0 || o.All < o.Count {
			t.Errorf("5 of 20 connections are busy: %+v", o)
		}
	}
	held.Conns = 21
	if _, err := b.client.ask(held); err == nil {
		t.Error("more connections were busy than are held")
	}
	ask(job{Kind: "release"})
	if _, err := b.client.ask(job{Kind: "walk", For: time.Millisecond}); err == nil {
		t.Error("connections that were released can be walked over")
	}
}

func TestSteady_ManyUnderWayUnderADelay(t *testing.T) {
	b := newBench(t)
	relay, err := b.fleet.role("relay", "timer:100ms", b.server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	// A connection sends every 4 ms, so that some 25 messages are under way.
	j := job{Kind: "steady", Addr: relay.Addr, Conns: 4, Rate: 1000, Warm: 20 * time.Millisecond, For: 200 * time.Millisecond}
	o, err := b.client.ask(j)
	if err != nil {
		t.Fatal(err)
	}
	if o.Count != 200 || o.P50 < float64(100*time.Millisecond) {
		t.Errorf("200 messages under 100 ms: %d, median %v", o.Count, time.Duration(o.P50))
	}
	j.For, j.Warm = time.Millisecond, 0
	if _, err := b.client.ask(j); err == nil {
		t.Error("a time too short for one message succeeded")
	}
}

// withWirewait is a bench that has built wirewait.
func withWirewait(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	var err error
	if b.root, err = moduleRoot(); err == nil {
		err = b.build(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	b.drivers = parseDrivers(defaultDrivers)
	return b
}

func TestWirewait_EveryDriverAndLink(t *testing.T) {
	b := withWirewait(t)
	late := 10 * time.Millisecond
	for _, m := range append(b.wirewaits(wirewaitTCP, "tcp"), b.wirewaits(untraced, "postgres")...) {
		p, err := m.start(b.server.Addr, late)
		if err != nil {
			t.Fatalf("%s: %v", m.name(), err)
		}
		o, err := b.client.ask(job{Kind: "ping", Addr: p.Addr, Speak: m.speak, Count: 2})
		if err != nil {
			t.Fatalf("%s: %v", m.name(), err)
		}
		for _, s := range o.Samples {
			if time.Duration(s) < late {
				t.Errorf("%s: a round trip took %v under a delay of %v", m.name(), time.Duration(s), late)
			}
		}
	}
	for _, driver := range b.drivers {
		l, err := b.open(t.Context(), driver, 3, 7, func(upstream string) (*process, []string, error) {
			p, addrs, err := b.manyLinks(driver, upstream, 3)
			if err == nil && len(addrs) != 3 {
				t.Errorf("3 links listen on %q", addrs)
			}
			return p, addrs, err
		})
		if err != nil {
			t.Fatalf("%s: %v", driver, err)
		}
		got, err := b.rounds(t.Context(), 2, []*lane{l}, job{Kind: "walk", For: 20 * time.Millisecond})
		if err != nil || len(got[0]) != 2 || got[0][1].Count == 0 {
			t.Errorf("%s: a walk over 7 connections of 3 links: %+v, %v", driver, got, err)
		}
	}
	if _, err := b.wirewait("none", b.server.Addr, nil); err == nil {
		t.Error("a wirewait with a driver that doesn't exist listens")
	}
}

func TestOthers_PassBytesAndDelay(t *testing.T) {
	b := newBench(t)
	var err error
	if b.root, err = moduleRoot(); err != nil {
		t.Fatal(err)
	}
	missing := len(b.report.Missing)
	others := b.others()
	for _, m := range others {
		for _, late := range []time.Duration{0, 30 * time.Millisecond} {
			if late > 0 && (m.delays == nil || !m.delays(late)) {
				continue
			}
			p, err := m.start(b.server.Addr, late)
			if err != nil {
				t.Fatalf("%s: %v", m.name(), err)
			}
			o, err := b.client.ask(job{Kind: "ping", Addr: p.Addr, Count: 2})
			if err != nil || len(o.Samples) != 2 || time.Duration(o.Samples[0]) < late {
				t.Errorf("%s under %v: %+v, %v", m.name(), late, o, err)
			}
		}
	}
	if len(b.report.Missing) > missing {
		testenv.Missing(t, "not all that wirewait is compared with is here: "+b.report.Missing[0])
	}
}
