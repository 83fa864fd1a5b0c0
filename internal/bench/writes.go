package main

import (
	"fmt"
	"time"
)

// writesPerSecond is the load under which no span may be dropped.
const writesPerSecond = 20_000

// writes sends a steady load of writes and counts the spans that arrive.
func (b *bench) writes() error {
	if b.wirewaitPath == "" {
		return nil
	}
	t := &Table{Title: fmt.Sprintf("%d writes a second asked, 16 connections, each traced", writesPerSecond),
		Note:    "Dropped: writes less spans received by the end, after a graceful stop. Counted: what /metrics said of it before the stop.",
		Columns: []string{"", "writes/s", "writes", "spans", "dropped", "counted", "CPU µs/write"}}
	b.report.Tables = append(b.report.Tables, t)
	receiver, err := b.fleet.role("receiver")
	if err != nil {
		return err
	}
	admin, err := freeAddress()
	if err != nil {
		return err
	}
	p, err := b.wirewait(b.server.Addr, tracing(receiver), "--protocol", "postgres", "--admin", admin)
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
	lost := float64(o.All - spans.Count)
	t.add(everyWrite, exactly(rate(o), 1), exactly(float64(o.All), 1), exactly(float64(spans.Count), 1),
		exactly(lost, 1), exactly(counted, 1), exactly(cpu(o), 1))
	if rate(o) < 0.99*writesPerSecond {
		b.missing("%d writes a second: this machine made %.0f with everything on it", writesPerSecond, rate(o))
	}
	b.report.goal(fmt.Sprintf("spans dropped at %.0f writes/s", rate(o)), exactly(lost, 1), "", 0, false)
	return nil
}
