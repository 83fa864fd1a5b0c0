package config

import (
	"testing"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

func TestParse_Models(t *testing.T) {
	tests := []struct {
		keys string
		want inject.Delay
	}{
		{"jitter: 2ms, distribution: normal, correlation: 25%", inject.Delay{Jitter: 2 * ms, Distribution: inject.Normal, Correlation: 0.25}},
		{"jitter: 2ms, distribution: paretonormal", inject.Delay{Jitter: 2 * ms, Distribution: inject.ParetoNormal}},
		{"loss: 0.5%", inject.Delay{Loss: inject.RandomLoss(0.005)}},
		{"loss: {p: 1%, r: 25%}", inject.Delay{Loss: inject.Loss{P: 0.01, R: 0.25, Bad: 1}}},
		{"loss: {p: 1%, r: 25%, bad: 50%, good: 0.5%}", inject.Delay{Loss: inject.Loss{P: 0.01, R: 0.25, Bad: 0.5, Good: 0.005}}},
		{"bandwidth: 200Mbit/s, window: 6MiB", inject.Delay{Bandwidth: 200e6, Window: 6 << 20}},
		{"bandwidth_per_connection: 1.5Gbit/s, window: 1460B", inject.Delay{Bandwidth: 1.5e9, PerConnection: true, Window: 1460}},
		{"bandwidth: 64kbit/s", inject.Delay{Bandwidth: 64e3}},
		{"bandwidth: 9600bit/s, window: 0.5GiB", inject.Delay{Bandwidth: 9600, Window: 1 << 29}},
	}
	for _, tt := range tests {
		f := good(t, "network: [{between: [a, b], delay: [30ms, 20ms], "+tt.keys+"}]\nlinks: [{from: b, to: a, listen: '127.0.0.1:1', upstream: 'db:1'}]")
		got := f.Links[0].Delay
		for dir, base := range map[wire.Direction]int64{wire.ToServer: 20, wire.ToClient: 30} {
			want := tt.want
			if got.Delay[dir].Base.Milliseconds() != base {
				t.Errorf("%s, %v: base %v", tt.keys, dir, got.Delay[dir].Base)
			}
			want.Base = got.Delay[dir].Base
			if got.Delay[dir] != want {
				t.Errorf("%s, %v:\n%+v, want\n%+v", tt.keys, dir, got.Delay[dir], want)
			}
		}
		if err := got.Check(); err != nil {
			t.Errorf("%s: %v", tt.keys, err)
		}
	}
}

// TestParse_ModelOfAWayWithoutDelay: it has nothing to vary, and its bandwidth.
func TestParse_ModelOfAWayWithoutDelay(t *testing.T) {
	f := good(t, `
network: [{between: [a, b], delay: [30ms, 0], jitter: 1ms, distribution: normal, correlation: 10%, bandwidth: 1Mbit/s}]
links: [{from: a, to: b, listen: "127.0.0.1:1", upstream: "db:1"}, {name: own, from: a, to: b, listen: "127.0.0.1:2", upstream: "db:1", rtt: 0}]
`)
	if got, want := f.Links[0].Delay.Delay[wire.ToClient], (inject.Delay{Bandwidth: 1e6}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := f.Links[1].Delay; got != ways(0, 0) {
		t.Errorf("a link with an rtt of its own has %+v", got)
	}
}

// TestParse_Pipes: links from one site to another share, and no others.
func TestParse_Pipes(t *testing.T) {
	f := good(t, `
network: [{between: [a, b], rtt: 30ms, bandwidth: 1Mbit/s}, {between: [a, c], rtt: 30ms, bandwidth: 1Mbit/s}]
links:
  - {name: one, from: a, to: b, listen: "127.0.0.1:1", upstream: "db:1"}
  - {name: two, from: a, to: b, listen: "127.0.0.1:2", upstream: "db:2"}
  - {name: three, from: a, to: c, listen: "127.0.0.1:3", upstream: "db:2"}
  - {name: four, listen: "127.0.0.1:4", upstream: "db:2", rtt: 1ms}
`)
	l := f.ProxyLinks()
	if l[0].Pipes == nil || l[0].Pipes != l[1].Pipes || l[2].Pipes == nil || l[2].Pipes == l[0].Pipes || l[3].Pipes != nil {
		t.Errorf("%p %p %p %p", l[0].Pipes, l[1].Pipes, l[2].Pipes, l[3].Pipes)
	}
}
