package main

import (
	"fmt"
	"time"
)

// writesPerSecond is the load under which no span may be dropped.
const writesPerSecond = 20_000

// writes sends a steady load of writes and counts the spans that arrive.
func (b *bench) writes() error {
	if len(b.drivers) == 0 {
		return nil
	}
	t := b.report.table("writes", fmt.Sprintf("%d writes a second asked, 16 connections, each traced", writesPerSecond),
		"writes/s", "writes", "spans", "dropped", "counted", "CPU µs/write")
	t.Note = "Dropped: writes less spans received by the end, after a graceful stop. Counted: what /metrics said of it before the stop."
	for _, driver := range b.drivers {
		if err := b.writesThrough(t, driver); err != nil {
			return fmt.Errorf("%s: %w", label(everyWrite, driver), err)
		}
	}
	return nil
}

func (b *bench) writesThrough(t *Table, driver string) error {
	receiver, err := b.fleet.role("receiver")
	if err != nil {
		return err
	}
	admin, err := freeAddress()
	if err != nil {
		return err
	}
	p, err := b.wirewait(driver, b.server.Addr, tracing(receiver), "--protocol", "postgres", "--admin", admin)
	if err != nil {
		return err
	}
	o, err := b.client.ask(job{Kind: "ping", Addr: p.Addr, Speak: "postgres", Conns: 16, Rate: writesPerSecond,
		Warm: time.Second, For: time.Duration(b.pick(8, 2)) * time.Second, Watch: p.pid()})
	if err != nil {
		return err
	}
	counted, err := scrape(admin, "wirewait_spans_dropped_total", "wirewait_exchanges_dropped_total")
	if err != nil {
		return err
	}
	b.fleet.end(p.pid()) // which flushes
	spans, err := receiver.ask(job{})
	if err != nil {
		return err
	}
	name := label(everyWrite, driver)
	t.add(name, exactly(rate(o), 1), exactly(float64(o.All), 1), exactly(float64(spans.Count), 1),
		exactly(float64(o.All-spans.Count), 1), exactly(counted, 1), exactly(cpu(o), 1))
	if rate(o) < 0.99*writesPerSecond {
		b.missing("%d writes a second, %s: this machine made %.0f with everything on it", writesPerSecond, name, rate(o))
	}
	b.report.goal(label(fmt.Sprintf("spans dropped at %.0f writes/s", rate(o)), driver), t.cell(name, "dropped"), "", 0, false)
	return nil
}
