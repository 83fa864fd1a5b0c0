package main

import (
	"fmt"
	"time"
)

func megabytes(o outcome) float64 { return float64(o.Bytes) / 1e6 / o.Elapsed.Seconds() }

// cpuPerGB is in milliseconds.
func cpuPerGB(o outcome) float64 { return o.CPU.Seconds() * 1e12 / float64(o.Bytes) }

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
		targets = append(targets, target{untraced, p.Addr, p.pid(), "postgres", relayPostgres})
	}
	n := int64(b.pick(512<<20, 128<<20))
	got, err := b.interleave(b.pick(9, 4), targets, func(target) job { return job{Kind: "stream", Bytes: n} })
	if err != nil {
		return err
	}
	b.reportBulk(n, targets, got)
	if b.wirewaitPath == "" {
		return nil
	}
	return b.bulkDelayed()
}

func (b *bench) reportBulk(n int64, targets []target, got rounds) {
	t := &Table{Title: fmt.Sprintf("Bulk, %d MiB from the server in writes of 1 MiB", n>>20),
		Note:    "The postgres rows are DataRow messages of 1 KiB, each of which wirewait frames.",
		Columns: []string{"", "MB/s", "CPU ms/GB", "MB/s / relay", "CPU / relay"}}
	b.report.Tables = append(b.report.Tables, t)
	for _, x := range targets {
		var used Spread
		if x.pid != 0 {
			used = spread(got.column(x.name, cpuPerGB))
		}
		faster := got.ratio(x, megabytes)
		t.add(x.name, spread(got.column(x.name, megabytes)), used, faster, got.ratio(x, cpuPerGB))
		switch x.name {
		case wirewaitTCP:
			b.report.goal("bulk throughput / relay, tcp", faster, "x", 1, true)
		case untraced:
			b.report.goal("bulk throughput / relay, postgres", faster, "x", 1, true)
		}
	}
}

// bulkDelay is the one-way delay of a long, fat path.
const bulkDelay = 500 * time.Millisecond

const (
	delayedBulk = "wirewait tcp, 500 ms"
	toxicBulk   = "Toxiproxy, 500 ms"
)

// bulkDelayed streams through a delay so long that the line's bound matters:
// at most bound / delay can pass.
func (b *bench) bulkDelayed() error {
	plain, err := b.wirewait(b.server.Addr, nil, "--protocol", "tcp")
	if err != nil {
		return err
	}
	late, err := b.wirewait(b.server.Addr, nil, "--protocol", "tcp", "--delay-to-client", bulkDelay.String())
	if err != nil {
		return err
	}
	targets := []target{{name: wirewaitTCP, addr: plain.Addr}, {name: delayedBulk, addr: late.Addr}}
	if program := find("toxiproxy-server"); program == "" {
		b.missing("bulk under delay against Toxiproxy: toxiproxy-server is not on PATH")
	} else {
		p, err := b.toxiproxy(program, bulkDelay)
		if err != nil {
			return err
		}
		targets = append(targets, target{name: toxicBulk, addr: p.Addr})
	}
	n := int64(b.pick(2<<30, 512<<20))
	got, err := b.interleave(b.pick(6, 2), targets, func(t target) job {
		if t.name == toxicBulk {
			// Enough that the 32 MiB in its queues hardly count.
			return job{Kind: "stream", Bytes: int64(b.pick(192<<20, 96<<20))}
		}
		return job{Kind: "stream", Bytes: n}
	})
	if err != nil {
		return err
	}
	b.reportDelayed(n, got)
	return nil
}

func (b *bench) reportDelayed(n int64, got rounds) {
	bound := float64(lineBound()) / 1e6 / bulkDelay.Seconds()
	t := &Table{Title: fmt.Sprintf("Bulk under 500 ms one way, %d MiB, default bound of the line", n>>20),
		Note: fmt.Sprintf("The line's bound is %d MiB, so that at most %.0f MB/s can pass; possible is that "+
			"or the undelayed rate of the round. Counted from the first byte that arrives.", lineBound()>>20, bound),
		Columns: []string{"", "MB/s", "of the possible", "MB/s / Toxiproxy"}}
	b.report.Tables = append(b.report.Tables, t)
	plain, late, toxic := got.column(wirewaitTCP, megabytes), got.column(delayedBulk, megabytes), got.column(toxicBulk, megabytes)
	possible := make([]float64, len(plain))
	for i, v := range plain {
		possible[i] = min(v, bound)
	}
	share, faster := spread(ratios(late, possible)), spread(ratios(late, toxic))
	t.add(wirewaitTCP, spread(plain), Spread{}, Spread{})
	t.add(delayedBulk, spread(late), share, faster)
	if len(toxic) > 0 {
		t.add(toxicBulk, spread(toxic), Spread{}, Spread{})
	}
	b.report.goal("bulk under 500 ms / possible", share, "x", 0.8, true)
	b.report.goal("bulk under 500 ms / Toxiproxy", faster, "x", 3, true)
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
