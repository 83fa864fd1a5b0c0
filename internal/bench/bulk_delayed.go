package main

import (
	"fmt"
	"time"

	"github.com/wirewait/wirewait/internal/study"
)

// bulkDelay is the one-way delay of a long, fat path.
const bulkDelay = 500 * time.Millisecond

// bulkDelayed streams through a delay so long that the line's bound matters:
// at most bound / delay can pass. Each target's baseline is what the same
// program does without the delay.
func (b *bench) bulkDelayed() error {
	var targets []target
	for _, driver := range b.drivers {
		plain, err := b.wirewait(driver, b.server.Addr, nil, "--protocol", "tcp")
		if err != nil {
			return err
		}
		late, err := b.wirewait(driver, b.server.Addr, nil, "--protocol", "tcp", "--delay-to-client", bulkDelay.String())
		if err != nil {
			return err
		}
		targets = append(targets, target{kind: wirewaitTCP, driver: driver, addr: plain.Addr},
			target{kind: wirewaitTCP + ", 500 ms", driver: driver, addr: late.Addr, baseline: label(wirewaitTCP, driver)})
	}
	if path, err := b.toxiproxyServer(); err != nil {
		b.missing("Toxiproxy: %v", err)
	} else {
		p, err := b.toxiproxy(path, b.server.Addr, "downstream", bulkDelay)
		if err != nil {
			return err
		}
		targets = append(targets, target{kind: toxicBulk, addr: p.Addr})
	}
	n := int64(b.pick(2<<30, 512<<20))
	got, err := b.interleave(b.pick(6, 2), targets, func(t target) job {
		if t.kind == toxicBulk {
			// Enough that the 32 MiB in its queues hardly count.
			return job{Kind: "stream", Bytes: int64(b.pick(192<<20, 96<<20))}
		}
		return job{Kind: "stream", Bytes: n}
	})
	if err != nil {
		return err
	}
	b.reportDelayed(n, targets, got)
	return nil
}

const toxicBulk = toxiProxy + ", 500 ms"

func (b *bench) reportDelayed(n int64, targets []target, got rounds) {
	bound := float64(lineBound()) / 1e6 / bulkDelay.Seconds()
	t := b.report.table("bulk-delayed", fmt.Sprintf("Bulk under 500 ms one way, %d MiB, default bound of the line", n>>20),
		"MB/s", "of the possible", "MB/s / Toxiproxy")
	t.Note = fmt.Sprintf("The line's bound is %d MiB, so that at most %.0f MB/s can pass; possible is that "+
		"or the undelayed rate of the same program in the round. Counted from the first byte that arrives.", lineBound()>>20, bound)
	toxic := got.column(toxicBulk, megabytes)
	for _, x := range targets {
		reached := got.column(x.name(), megabytes)
		if x.baseline == "" {
			t.add(x.name(), study.SpreadOf(reached), study.Spread{}, study.Spread{})
			continue
		}
		possible := got.column(x.baseline, megabytes)
		for i, v := range possible {
			possible[i] = min(v, bound)
		}
		t.add(x.name(), study.SpreadOf(reached), study.SpreadOf(study.Ratios(reached, possible)), study.SpreadOf(study.Ratios(reached, toxic)))
		b.report.goal(label("bulk under 500 ms / possible", x.driver), t.cell(x.name(), "of the possible"), "x", 0.8, true)
		b.report.goal(label("bulk under 500 ms / Toxiproxy", x.driver), t.cell(x.name(), "MB/s / Toxiproxy"), "x", 3, true)
	}
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
