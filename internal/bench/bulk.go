package main

import (
	"fmt"

	"github.com/wirewait/wirewait/internal/study"
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
	more, err := b.targets(b.server.Addr, relayPostgres, b.wirewaits(untraced, "postgres"))
	if err != nil {
		return err
	}
	targets = append(targets, more...)
	n := int64(b.pick(512<<20, 128<<20))
	got, err := b.interleave(b.pick(7, 4), targets, func(target) job { return job{Kind: "stream", Bytes: n} })
	if err != nil {
		return err
	}
	b.reportBulk(n, targets, got)
	return nil
}

func (b *bench) reportBulk(n int64, targets []target, got rounds) {
	t := b.report.table("bulk", fmt.Sprintf("Bulk, %d MiB from the server in writes of 1 MiB", n>>20),
		"MB/s", "CPU ms/GB", "MB/s / relay", "CPU / relay")
	t.Note = "The postgres rows are DataRow messages of 1 KiB, each of which wirewait frames."
	for _, x := range targets {
		var used study.Spread
		if x.pid != 0 {
			used = study.SpreadOf(got.column(x.name(), cpuPerGB))
		}
		t.add(x.name(), study.SpreadOf(got.column(x.name(), megabytes)), used, got.ratio(x, megabytes), got.ratio(x, cpuPerGB))
		if x.kind == wirewaitTCP || x.kind == untraced {
			b.report.goal("bulk throughput / relay, "+x.name(), t.cell(x.name(), "MB/s / relay"), "x", 1, true)
		}
	}
}
