package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/wirewait/wirewait/internal/study"
)

// The steady load of delayed messages.
const (
	steadyConns = 64
	steadyRate  = 10_000 // messages a second, over all connections
	steadyDelay = 5 * time.Millisecond
)

// steady measures the error of a delay while many messages are under way at
// once. Clients send by a timetable, whether or not replies have come.
func (b *bench) steady() error {
	programs := append(append([]program{b.timerProgram()}, b.toxiproxies()...), b.wirewaits(wirewaitTCP, "tcp")...)
	var pairs []pair
	for _, m := range programs {
		p, err := b.pair(m, steadyDelay)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name(), err)
		}
		pairs = append(pairs, p)
	}
	late, plain := make([][]outcome, len(pairs)), make([][]outcome, len(pairs))
	for range b.pick(7, 3) {
		for _, i := range rand.Perm(2 * len(pairs)) {
			at, p := i/2, pairs[i/2]
			to, into := p.plain, &plain[at]
			if i%2 == 1 {
				to, into = p.late, &late[at]
			}
			o, err := b.client.ask(job{Kind: "steady", Addr: to.Addr, Conns: steadyConns, Rate: steadyRate,
				Warm: 100 * time.Millisecond, For: time.Duration(b.pick(600, 300)) * time.Millisecond, Watch: to.pid()})
			if err != nil {
				return fmt.Errorf("%s: %w", p.name(), err)
			}
			*into = append(*into, o)
		}
	}
	t := b.report.table("steady", fmt.Sprintf("Error of a delay of %s of %d messages a second on %d connections (to the server only, µs)",
		steadyDelay, steadyRate, steadyConns),
		"median", "99th", "messages/s", "CPU µs/message", "undelayed median", "undelayed 99th")
	t.Note = "Round trip less the median of the undelayed round trips of the round at the same rate, less the delay. " +
		"Undelayed: the same program without a delay; its 99th percentile is what the machine adds by itself. CPU: of the process that delays."
	for i, p := range pairs {
		b.reportSteady(t, p.program, late[i], plain[i])
	}
	return nil
}

func (b *bench) reportSteady(t *Table, m program, late, plain []outcome) {
	var columns [6][]float64
	for i, o := range late {
		base := plain[i]
		for c, v := range []float64{
			p50(o) - p50(base) - float64(steadyDelay.Microseconds()),
			p99(o) - p50(base) - float64(steadyDelay.Microseconds()),
			rate(o), cpu(o), p50(base), p99(base),
		} {
			columns[c] = append(columns[c], v)
		}
	}
	cells := make([]study.Spread, len(columns))
	for i, c := range columns {
		cells[i] = study.SpreadOf(c)
	}
	t.add(m.name(), cells...)
	if m.kind == wirewaitTCP {
		b.delayGoals(t, m.name(), label(fmt.Sprintf("%s at %d messages/s", steadyDelay, steadyRate), m.driver), m.driver)
	}
}
