package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/wirewait/wirewait/internal/study"
)

// delayError asks for delays and measures from outside what came of them: the
// client's round trip, less the one through the same program without a delay
// at the same pace, less what was asked.
func (b *bench) delayError() error {
	t := b.report.table("delay", "Error of an injected delay, seen by the client (to the server only, µs)",
		"median", "99th", "worst", "undelayed round trip", "median, back to back")
	t.Note = "Round trip less the undelayed one at the same pace less the delay; all rounds' pings together, and the medians' " +
		"spread over the rounds. Last column: less a round trip back to back, which no idle program has. " +
		"Toxiproxy delays by whole milliseconds."
	programs := append(append([]program{b.timerProgram()}, b.toxiproxies()...), b.wirewaits(wirewaitTCP, "tcp")...)
	for _, d := range delays(b.quick) {
		if err := b.delayedBy(t, d, programs); err != nil {
			return fmt.Errorf("%s: %w", d.ask, err)
		}
	}
	return nil
}

// delayedBy adds a row for every program that can make a delay.
func (b *bench) delayedBy(t *Table, d asked, programs []program) error {
	var pairs []pair
	for _, m := range programs {
		if !m.delays(d.ask) {
			continue
		}
		p, err := b.pair(m, d.ask)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name(), err)
		}
		pairs = append(pairs, p)
	}
	got := make([]errorsOf, len(pairs))
	for range d.rounds {
		for _, i := range rand.Perm(len(pairs)) {
			if err := b.delayRound(pairs[i], d, &got[i]); err != nil {
				return fmt.Errorf("%s: %w", pairs[i].name(), err)
			}
		}
	}
	for i, p := range pairs {
		b.reportDelay(t, p.program, d.ask, &got[i])
		b.fleet.end(p.plain.pid())
		b.fleet.end(p.late.pid())
	}
	return nil
}

// pair is a program run twice: without a delay and with one.
type pair struct {
	program
	plain, late *process
}

func (b *bench) pair(m program, delay time.Duration) (p pair, err error) {
	p.program = m
	if p.plain, err = m.start(b.server.Addr, 0); err != nil {
		return p, err
	}
	p.late, err = m.start(b.server.Addr, delay)
	return p, err
}

// asked is a delay, and how often it is measured.
type asked struct {
	ask           time.Duration
	rounds, pings int
}

func delays(quick bool) []asked {
	all := []asked{
		{500 * time.Microsecond, 9, 150},
		{1300 * time.Microsecond, 9, 150},
		{5300 * time.Microsecond, 9, 60},
		{20 * time.Millisecond, 9, 20},
		{80 * time.Millisecond, 6, 6},
	}
	if quick {
		for i := range all {
			all[i].rounds, all[i].pings = 3, max(all[i].pings/5, 3)
		}
	}
	return all
}

// errorsOf gathers the errors of one program at one delay, in microseconds.
type errorsOf struct {
	all       []float64
	medians   []float64 // a round each
	strict    []float64 // medians again, against round trips back to back
	undelayed []float64
}

func (b *bench) delayRound(links pair, d asked, into *errorsOf) error {
	plain, err := b.client.ask(job{Kind: "ping", Addr: links.plain.Addr, Count: d.pings, Gap: d.ask})
	if err != nil {
		return err
	}
	busy, err := b.client.ask(job{Kind: "ping", Addr: links.plain.Addr, Count: 200})
	if err != nil {
		return err
	}
	late, err := b.client.ask(job{Kind: "ping", Addr: links.late.Addr, Count: d.pings})
	if err != nil {
		return err
	}
	slices.Sort(plain.Samples)
	slices.Sort(busy.Samples)
	base := study.Quantile(plain.Samples, 0.5)
	errs := make([]float64, len(late.Samples))
	for i, s := range late.Samples {
		errs[i] = (s - base - float64(d.ask)) / 1e3
	}
	into.all = append(into.all, errs...)
	slices.Sort(errs)
	into.medians = append(into.medians, study.Quantile(errs, 0.5))
	into.strict = append(into.strict, study.Quantile(errs, 0.5)+(base-study.Quantile(busy.Samples, 0.5))/1e3)
	into.undelayed = append(into.undelayed, base/1e3)
	return nil
}

func (b *bench) reportDelay(t *Table, m program, d time.Duration, e *errorsOf) {
	slices.Sort(e.all)
	median := study.SpreadOf(e.medians)
	median.Median = study.Quantile(e.all, 0.5)
	high := exactly(study.Quantile(e.all, 0.99), len(e.medians))
	row := fmt.Sprintf("%s, %s", m.name(), d)
	t.add(row, median, high, exactly(e.all[len(e.all)-1], len(e.medians)), study.SpreadOf(e.undelayed), study.SpreadOf(e.strict))
	if m.kind == wirewaitTCP && d > 500*time.Microsecond {
		b.delayGoals(t, row, label(d.String(), m.driver), m.driver)
	}
}

// exactly is a value that has no interval of its own.
func exactly(v float64, rounds int) study.Spread {
	return study.Spread{Median: v, Low: v, High: v, Rounds: rounds}
}
