package main

import (
	"fmt"
	"time"
)

func megabytes(o outcome, n int64) float64 { return float64(n) / 1e6 / o.Elapsed.Seconds() }

// bulk streams from the server to one client.
func (b *bench) bulk() error {
	targets, err := b.middlemen()
	if err != nil {
		return err
	}
	if b.wirewaitPath != "" {
		p, err := b.wirewait(b.server.Addr, nil, "--protocol", "postgres")
		if err != nil {
			return err
		}
		targets = append(targets, target{untraced, p.Addr, p.pid(), true, relayPostgres})
	}
	n := int64(b.pick(1<<30, 256<<20))
	got, err := b.interleave(b.pick(9, 4), targets, func(target) job { return job{Kind: "stream", Bytes: n} })
	if err != nil {
		return err
	}
	t := &Table{Title: fmt.Sprintf("Bulk, %d MiB from the server in writes of 1 MiB", n>>20),
		Note:    "The postgres rows are DataRow messages of 1 KiB, each of which wirewait frames.",
		Columns: []string{"", "MB/s", "CPU ms/GB", "MB/s / relay", "CPU / relay"}}
	b.report.Tables = append(b.report.Tables, t)
	speed := func(o outcome) float64 { return megabytes(o, n) }
	work := func(o outcome) float64 { return float64(o.CPU.Milliseconds()) * 1e9 / float64(n) }
	for _, x := range targets {
		var used Spread
		if x.pid != 0 {
			used = spread(got.column(x.name, work))
		}
		faster := got.ratio(x, speed)
		t.add(x.name, spread(got.column(x.name, speed)), used, faster, got.ratio(x, work))
		if x.name == wirewaitTCP {
			b.report.goal("bulk throughput / relay, tcp", faster, "x", 1, true)
		}
		if x.name == untraced {
			b.report.goal("bulk throughput / relay, postgres", faster, "x", 1, true)
		}
	}
	if b.wirewaitPath == "" {
		return nil
	}
	return b.bulkDelayed()
}

// bulkDelay is the one-way delay of a long, fat path.
const bulkDelay = 500 * time.Millisecond

// bulkDelayed streams through a delay so long that the line's bound matters:
// at most bound / delay can pass.
func (b *bench) bulkDelayed() error {
	var targets []target
	for _, w := range []struct {
		name string
		args []string
	}{{wirewaitTCP, nil}, {"wirewait tcp, 500 ms", []string{"--delay-to-client", bulkDelay.String()}}} {
		p, err := b.wirewait(b.server.Addr, nil, append(w.args, "--protocol", "tcp")...)
		if err != nil {
			return err
		}
		targets = append(targets, target{w.name, p.Addr, p.pid(), false, wirewaitTCP})
	}
	n := int64(b.pick(3<<30, 1<<30))
	got, err := b.interleave(b.pick(6, 2), targets, func(target) job { return job{Kind: "stream", Bytes: n} })
	if err != nil {
		return err
	}
	bound := float64(lineBound()) / 1e6 / bulkDelay.Seconds()
	t := &Table{Title: fmt.Sprintf("Bulk under 500 ms one way, %d MiB, default bound of the line", n>>20),
		Note: fmt.Sprintf("The bound of the line is %d MiB, so that at most %.0f MB/s can pass. "+
			"Counted from the first byte that arrives.", lineBound()>>20, bound),
		Columns: []string{"", "MB/s", "of the possible"}}
	b.report.Tables = append(b.report.Tables, t)
	speed := func(o outcome) float64 { return megabytes(o, n) }
	plain, late := got.column(targets[0].name, speed), got.column(targets[1].name, speed)
	possible := make([]float64, len(plain))
	for i, v := range plain {
		possible[i] = min(v, bound)
	}
	share := spread(ratios(late, possible))
	t.add(targets[0].name, spread(plain), Spread{})
	t.add(targets[1].name, spread(late), share)
	b.report.goal("bulk under 500 ms / possible", share, "x", 0.8, true)
	for _, p := range targets {
		b.fleet.end(p.pid) // it holds up to a gigabyte
	}
	return nil
}

// lineBound is wirewait's default: 1 GiB, or half of the control group's
// memory. (GOMEMLIMIT is taken from its environment here.)
func lineBound() int64 {
	bound := int64(1 << 30)
	if m := memoryLimit(); m > 0 {
		bound = min(bound, m/2)
	}
	return bound
}
