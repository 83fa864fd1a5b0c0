package main

import (
	"fmt"
	"slices"
	"time"
)

// delayError asks for delays and measures from outside what came of them: the
// client's round trip, less the one through the same program without a delay
// at the same pace, less what was asked.
func (b *bench) delayError() error {
	makers := []struct {
		name string
		link func(time.Duration) (*process, error)
	}{
		{"time.Timer", func(d time.Duration) (*process, error) {
			mode := "copy64"
			if d > 0 {
				mode = "timer:" + d.String()
			}
			return b.fleet.role("relay", mode, b.server.Addr)
		}},
		{"wirewait", func(d time.Duration) (*process, error) {
			return b.wirewait(b.server.Addr, nil, "--protocol", "tcp", "--delay-to-server", d.String())
		}},
	}
	t := &Table{Title: "Error of an injected delay, seen by the client (to the server only, µs)",
		Note: "Round trip less the undelayed one at the same pace less the delay; all rounds' pings together, and the medians' " +
			"spread over the rounds. Last column: less a round trip back to back, which no idle program has.",
		Columns: []string{"", "median", "99th", "worst", "undelayed round trip", "median, back to back"}}
	b.report.Tables = append(b.report.Tables, t)
	if b.wirewaitPath == "" {
		makers = makers[:1]
	}
	for _, d := range delays(b.quick) {
		got := map[string]*errorsOf{}
		links := map[string][2]*process{}
		for _, m := range makers {
			plain, err := m.link(0)
			if err != nil {
				return err
			}
			late, err := m.link(d.ask)
			if err != nil {
				return err
			}
			links[m.name], got[m.name] = [2]*process{plain, late}, &errorsOf{}
		}
		for range d.rounds {
			for _, m := range makers {
				if err := b.delayRound(links[m.name], d, got[m.name]); err != nil {
					return fmt.Errorf("%s, %s: %w", m.name, d.ask, err)
				}
			}
		}
		for _, m := range makers {
			b.reportDelay(t, m.name, d.ask, got[m.name])
			b.fleet.end(links[m.name][0].pid())
			b.fleet.end(links[m.name][1].pid())
		}
	}
	return nil
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
		{80 * time.Millisecond, 6, 12},
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

func (b *bench) delayRound(links [2]*process, d asked, into *errorsOf) error {
	plain, err := b.client.ask(job{Kind: "ping", Addr: links[0].Addr, Count: d.pings, Gap: d.ask})
	if err != nil {
		return err
	}
	busy, err := b.client.ask(job{Kind: "ping", Addr: links[0].Addr, Count: 200})
	if err != nil {
		return err
	}
	late, err := b.client.ask(job{Kind: "ping", Addr: links[1].Addr, Count: d.pings})
	if err != nil {
		return err
	}
	slices.Sort(plain.Samples)
	slices.Sort(busy.Samples)
	base := quantile(plain.Samples, 0.5)
	errs := make([]float64, len(late.Samples))
	for i, s := range late.Samples {
		errs[i] = (s - base - float64(d.ask)) / 1e3
	}
	into.all = append(into.all, errs...)
	slices.Sort(errs)
	into.medians = append(into.medians, quantile(errs, 0.5))
	into.strict = append(into.strict, quantile(errs, 0.5)+(base-quantile(busy.Samples, 0.5))/1e3)
	into.undelayed = append(into.undelayed, base/1e3)
	return nil
}

func (b *bench) reportDelay(t *Table, name string, d time.Duration, e *errorsOf) {
	slices.Sort(e.all)
	median := spread(e.medians)
	median.Median = quantile(e.all, 0.5)
	high := exactly(quantile(e.all, 0.99), len(e.medians))
	t.add(fmt.Sprintf("%s, %s", name, d), median, high, exactly(e.all[len(e.all)-1], len(e.medians)),
		spread(e.undelayed), spread(e.strict))
	if name == "wirewait" && d > 500*time.Microsecond {
		b.report.goal(fmt.Sprintf("delay error at %s, median", d), median, "µs", 150, false)
		b.report.goal(fmt.Sprintf("delay error at %s, 99th", d), high, "µs", 1000, false)
	}
}

// exactly is a value that has no interval of its own.
func exactly(v float64, rounds int) Spread { return Spread{v, v, v, rounds} }
