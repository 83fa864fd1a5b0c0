package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/wirewait/wirewait/internal/study"
)

// target is one way from the client to the server.
type target struct {
	kind     string
	driver   string // of wirewait; else empty
	addr     string
	pid      int    // of the process in the middle; 0: there is none
	speak    string // the protocol of its bytes: see job
	baseline string // the name of the target that ratios are against; empty: none
}

func (t target) name() string { return label(t.kind, t.driver) }

// rounds keeps what was measured, by target and in the order of the rounds.
type rounds map[string][]outcome

func (r rounds) column(name string, value func(outcome) float64) []float64 {
	var c []float64
	for _, o := range r[name] {
		c = append(c, value(o))
	}
	return c
}

// ratio compares a target with its baseline, round by round.
func (r rounds) ratio(t target, value func(outcome) float64) study.Spread {
	return study.SpreadOf(study.Ratios(r.column(t.name(), value), r.column(t.baseline, value)))
}

// interleave asks for one job per target and round, in an order that is drawn
// anew each time, so that neither drift nor a neighbour favours one of them.
func (b *bench) interleave(n int, targets []target, work func(target) job) (rounds, error) {
	got := rounds{}
	for range n {
		for _, i := range rand.Perm(len(targets)) {
			t := targets[i]
			j := work(t)
			j.Addr, j.Speak, j.Watch = t.addr, t.speak, t.pid
			o, err := b.client.ask(j)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.name(), err)
			}
			got[t.name()] = append(got[t.name()], o)
		}
	}
	return got, nil
}

// middlemen starts everything that the ping-pong and the stream go through and
// that looks at no byte.
func (b *bench) middlemen() ([]target, error) {
	targets := []target{{kind: direct, addr: b.server.Addr}}
	for _, r := range []struct{ kind, mode string }{
		{relayTCP, "copy32"}, {"bare relay, 64 KiB", "copy64"}, {"io.Copy (splice)", "splice"},
	} {
		p, err := b.fleet.role("relay", r.mode, b.server.Addr)
		if err != nil {
			return nil, err
		}
		targets = append(targets, target{kind: r.kind, addr: p.Addr, pid: p.pid(), baseline: relayTCP})
	}
	relay := targets[1]
	more, err := b.targets(b.server.Addr, relayTCP, append(b.others(), b.wirewaits(wirewaitTCP, "tcp")...))
	if err != nil {
		return nil, err
	}
	targets = append(targets, more...)
	relay.kind, relay.speak, relay.baseline = relayPostgres, "postgres", relayPostgres
	return append(targets, target{kind: direct + " (postgres)", addr: b.server.Addr, speak: "postgres"}, relay), nil
}

// observers starts the wirewaits that read a protocol, one for each way of
// tracing, and the receiver that gets a span of every write.
func (b *bench) observers() (targets []target, all *process, err error) {
	some, err := b.fleet.role("receiver")
	if err != nil {
		return nil, nil, err
	}
	if all, err = b.fleet.role("receiver"); err != nil {
		return nil, nil, err
	}
	for _, w := range []struct {
		kind, protocol, baseline string
		env                      []string
	}{
		{untraced, "postgres", relayPostgres, nil},
		{onePercent, "postgres", relayPostgres, tracing(some, "OTEL_TRACES_SAMPLER=parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG=0.01")},
		{everyWrite, "postgres", relayPostgres, tracing(all)},
		{everyMongo, "mongodb", relayMongo, tracing(all)},
	} {
		for _, driver := range b.drivers {
			p, err := b.wirewait(driver, b.server.Addr, w.env, "--protocol", w.protocol)
			if err != nil {
				return nil, nil, err
			}
			targets = append(targets, target{w.kind, driver, p.Addr, p.pid(), w.protocol, w.baseline})
		}
	}
	return targets, all, nil
}

// pingpong sends 128 bytes and waits for 128 bytes, over and over, on one
// connection and on sixteen.
func (b *bench) pingpong() error {
	targets, err := b.middlemen()
	if err != nil {
		return err
	}
	more, receiver, err := b.observers()
	if err != nil {
		return err
	}
	relay := targets[1]
	relay.kind, relay.speak, relay.baseline = relayMongo, "mongodb", relayMongo
	targets = append(append(targets, more...), relay)
	writes := 0
	for _, conns := range []int{1, 16} {
		got, err := b.interleave(b.pick(16, 5), targets, func(target) job {
			return job{Kind: "ping", Conns: conns, Warm: 30 * time.Millisecond,
				For: time.Duration(b.pick(120, 60)) * time.Millisecond}
		})
		if err != nil {
			return err
		}
		b.reportPing(conns, targets, got)
		for _, t := range more {
			if t.kind == everyWrite || t.kind == everyMongo {
				for _, o := range got[t.name()] {
					writes += o.All
				}
			}
		}
	}
	if len(more) == 0 {
		return nil
	}
	for _, t := range more {
		b.fleet.end(t.pid) // which flushes
	}
	spans, err := receiver.ask(job{})
	b.report.last().Note = fmt.Sprintf("In both ping-pongs %d writes of which each was to be traced went through, as fast as they could; %d spans arrived.",
		writes, spans.Count)
	return err
}

func p50(o outcome) float64  { return o.P50 / 1e3 }
func p99(o outcome) float64  { return o.P99 / 1e3 }
func rate(o outcome) float64 { return float64(o.Count) / o.Elapsed.Seconds() }
func cpu(o outcome) float64  { return float64(o.CPU.Nanoseconds()) / 1e3 / float64(o.Count) }

func (b *bench) reportPing(conns int, targets []target, got rounds) {
	t := b.report.table(fmt.Sprintf("pingpong-%d", conns), "Ping-pong, 128 bytes each way, "+connections(conns),
		"p50 µs", "p99 µs", "round trips/s", "CPU µs/round trip", "p50 / relay", "CPU / relay")
	for _, x := range targets {
		var used study.Spread
		if x.pid != 0 {
			used = study.SpreadOf(got.column(x.name(), cpu))
		}
		t.add(x.name(), study.SpreadOf(got.column(x.name(), p50)), study.SpreadOf(got.column(x.name(), p99)),
			study.SpreadOf(got.column(x.name(), rate)), used, got.ratio(x, p50), got.ratio(x, cpu))
		b.pingGoals(t, x, conns)
	}
}

func connections(n int) string {
	if n == 1 {
		return "1 connection"
	}
	return fmt.Sprintf("%d connections", n)
}
