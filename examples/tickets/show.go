package main

import (
	"fmt"

	"github.com/wirewait/wirewait/internal/chart"
	"github.com/wirewait/wirewait/internal/study"
)

func (s *ticketStudy) queueTable() *study.Table {
	t := &study.Table{
		Title:   fmt.Sprintf("Reads that hold one of %d tickets for %v", s.tickets, s.hold),
		Columns: []string{"clients", "reads", "reads/s", "theory ms", "p50 ms", "p95 ms", "longest queue"},
		Note:    "theory: clients / tickets × hold, and at least hold.",
	}
	for _, q := range s.queues {
		t.Add(q.clients, len(q.samples.Latencies), q.samples.Throughput(), s.theory(q.clients), q.samples.Quantile(0.5), q.samples.Quantile(0.95), q.queue)
	}
	return t
}

func (s *ticketStudy) limitTable() *study.Table {
	t := &study.Table{
		Title:   fmt.Sprintf("The same by %d clients with maxTimeMS", s.limited),
		Columns: []string{"maxTimeMS", "limit ms", "done/s", "cut off/s", "p50 ms", "p95 ms", "p95 of all ms"},
		Left:    1,
		Note:    "p50, p95: of those that were done. A client that is cut off tries again at once.",
	}
	for _, l := range s.limits {
		var shown any
		if l.limit > 0 {
			shown = l.limit
		}
		seconds := l.elapsed.Seconds()
		t.Add(l.name, shown, float64(len(l.done.Latencies))/seconds, float64(l.cut)/seconds, l.done.Quantile(0.5), l.done.Quantile(0.95), l.all.Quantile(0.95))
	}
	return t
}

func (s *ticketStudy) documentTable() *study.Table {
	t := &study.Table{
		Title:   fmt.Sprintf("Updates by %d clients", s.writers),
		Columns: []string{"of", "updates/s", "p50 ms", "p95 ms", "conflicts"},
		Left:    1,
		Note:    "conflicts: how many updates began anew, as the server counts them, between the first and the last question.",
	}
	for _, d := range s.documents {
		t.Add(d.name, d.samples.Throughput(), d.samples.Quantile(0.5), d.samples.Quantile(0.95), d.conflicts)
	}
	return t
}

// draw has the latency over the clients, beside what theory says.
func (s *ticketStudy) draw() []byte {
	measured := chart.Line{Name: "measured", Class: chart.Class(0)}
	theory := chart.Line{Class: chart.Class(2), Plain: true, Label: "clients / tickets × hold"}
	rate := chart.Line{Name: "reads a second", Class: chart.Class(1)}
	var ticks []float64
	for _, q := range s.queues {
		ms := func(p float64) float64 { return q.samples.Quantile(p).Seconds() * 1e3 }
		n := float64(q.clients)
		ticks = append(ticks, n)
		measured.Points = append(measured.Points, chart.Point{X: n, Y: ms(0.5), Low: ms(0.05), High: ms(0.95)})
		rate.Points = append(rate.Points, chart.At(n, q.samples.Throughput()))
		if s.tickets > 0 {
			theory.Points = append(theory.Points, chart.At(n, s.theory(q.clients).Seconds()*1e3))
		}
	}
	c := chart.Lines{
		Title: fmt.Sprintf("%d tickets, each held for %v, by more and more clients", s.tickets, s.hold),
		Note:  "dot: p50, bar: p5 to p95",
		Panels: []chart.Panel{
			{Caption: "a read, ms", LogX: true, LogY: true, Ticks: ticks, Lines: []chart.Line{measured, theory}},
			{Caption: "reads a second", LogX: true, Ticks: ticks, Lines: []chart.Line{rate}, XName: "clients"},
		},
	}
	return c.SVG()
}
