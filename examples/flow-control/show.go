package main

import (
	"fmt"
	"time"

	"github.com/wirewait/wirewait/internal/chart"
	"github.com/wirewait/wirewait/internal/study"
	"github.com/wirewait/wirewait/internal/study/cluster"
	"github.com/wirewait/wirewait/trace"
)

// within are the moments that began in a stretch of time.
func within(all []cluster.Moment, from, to time.Duration) (some []cluster.Moment) {
	for _, m := range all {
		if m.From >= from && m.From < to {
			some = append(some, m)
		}
	}
	return some
}

// summary of a measure in a phase; all are nil where the server doesn't say.
func (s *flowStudy) summary(p *phase, m trace.Measure) (least, mean, most any) {
	moments := within(s.server.Series(m), p.from, p.to)
	if len(moments) == 0 {
		return nil, nil, nil
	}
	low, high, sum := moments[0].Value, moments[0].Value, 0.0
	for _, x := range moments {
		low, high, sum = min(low, x.Value), max(high, x.Value), sum+x.Value
	}
	return low, sum / float64(len(moments)), high
}

func (s *flowStudy) table() *study.Table {
	t := &study.Table{
		Title:   fmt.Sprintf("Inserts with w: 1 by %d clients, by how fast the secondaries are", s.clients),
		Columns: []string{"phase", "seconds", "writes/s", "p50 ms", "p99 ms", "most lag ms", "slowed down %", "least tickets/s", "waiting ms/s"},
		Left:    1,
		Note: "lag: of what a majority has, behind the primary. slowed down: of the looks at the server, those that\n" +
			"found flow control lagging. tickets: what it gives out. waiting: how long writes waited for them in each second.",
	}
	for _, p := range s.phases {
		got := study.Between(s.writes, p.from, p.to)
		_, _, lag := s.summary(p, trace.MajorityLag)
		_, slowed, _ := s.summary(p, trace.FlowControl)
		if share, ok := slowed.(float64); ok {
			slowed = 100 * share
		}
		least, _, _ := s.summary(p, trace.FlowControlRate)
		_, waiting, _ := s.summary(p, trace.FlowControlWait)
		t.Add(p.name, p.length.Seconds(), got.Throughput(), got.Quantile(0.5), got.Quantile(0.99), lag, slowed, least, waiting)
	}
	return t
}

func (s *flowStudy) end() time.Duration { return s.phases[len(s.phases)-1].to }

// timeline has a row for each look at the server.
func (s *flowStudy) timeline() *study.Table {
	t := &study.Table{Columns: []string{"second", "writes/s", "p99 ms", "lag ms"}}
	for _, m := range within(s.server.Series(trace.MajorityLag), 0, s.end()) {
		got := study.Between(s.writes, m.From, m.To)
		t.Add(m.From.Seconds(), got.Throughput(), got.Quantile(0.99), m.Value)
	}
	return t
}

// draw has the writes above the lag.
func (s *flowStudy) draw() []byte {
	writes := chart.Line{Class: chart.Class(0), Plain: true, Label: "writes a second"}
	p99 := chart.Line{Class: chart.Class(1), Plain: true, Label: "p99 of them, ms"}
	for _, w := range study.Windows(s.writes, s.every, s.end()) {
		writes.Points = append(writes.Points, chart.At(w.From.Seconds(), w.Throughput()))
		if len(w.Latencies) > 0 {
			p99.Points = append(p99.Points, chart.At(w.From.Seconds(), w.Quantile(0.99).Seconds()*1e3))
		}
	}
	lag := chart.Line{Class: chart.Class(2), Plain: true, Label: "a majority's lag, s"}
	for _, m := range within(s.server.Series(trace.MajorityLag), 0, s.end()) {
		lag.Points = append(lag.Points, chart.At(m.To.Seconds(), m.Value/1e3))
	}
	c := chart.Lines{Title: "Writes, and a majority that can't follow", Note: "shaded: orange, the secondaries are slow; purple, flow control slows writes down"}
	for _, l := range []chart.Line{writes, p99, lag} {
		c.Panels = append(c.Panels, chart.Panel{Caption: l.Label, Ticks: study.Ticks(s.end().Seconds()), Lines: []chart.Line{l}, Bands: s.bands()})
	}
	c.Panels[len(c.Panels)-1].XName = "seconds"
	return c.SVG()
}

func (s *flowStudy) bands() (all []chart.Band) {
	for _, p := range s.phases {
		if p.rate > 0 {
			all = append(all, chart.Band{From: p.from.Seconds(), To: p.to.Seconds(), Class: chart.Class(3), Name: "slow"})
		}
	}
	for i, m := range s.server.Marks(trace.FlowControl) {
		band := chart.Band{From: m.From.Seconds(), To: m.To.Seconds(), Class: chart.Class(4), Row: 1}
		if i == 0 { // one name will do where they are many and narrow
			band.Name = "flow control"
		}
		all = append(all, band)
	}
	return all
}
