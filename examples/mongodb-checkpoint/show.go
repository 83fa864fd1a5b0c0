package main

import (
	"fmt"
	"time"

	"github.com/wirewait/wirewait/internal/chart"
	"github.com/wirewait/wirewait/internal/study"
	"github.com/wirewait/wirewait/internal/study/cluster"
	"github.com/wirewait/wirewait/trace"
)

// running reports whether a checkpoint was, at a moment.
func running(marks []cluster.Moment, at time.Duration) bool {
	for _, m := range marks {
		if at >= m.From && at < m.To {
			return true
		}
	}
	return false
}

// state is what happened while a checkpoint ran, or while none did.
type state struct {
	name                     string
	samples                  study.Samples
	looks                    int
	syncs, syncTime, journal float64 // of all looks
}

// states divides the time between the looks at the server.
func (s *checkpointStudy) states() [2]*state {
	all := [2]*state{{name: "no checkpoint"}, {name: "a checkpoint runs"}}
	marks := s.server.Marks(trace.Checkpoint)
	at := func(when time.Duration) *state {
		if running(marks, when) {
			return all[1]
		}
		return all[0]
	}
	for _, w := range s.writes {
		to := at(w.Due)
		to.samples.Latencies = append(to.samples.Latencies, w.Took)
	}
	for _, m := range s.server.Series(trace.JournalSyncs) {
		to := at(m.From)
		to.looks++
		to.syncs += m.Value
	}
	for _, m := range s.server.Series(trace.JournalTime) {
		at(m.From).syncTime += m.Value
	}
	for _, m := range s.server.Series(trace.JournalBytes) {
		at(m.From).journal += m.Value
	}
	return all
}

func (s *checkpointStudy) table() *study.Table {
	t := &study.Table{
		Title:   fmt.Sprintf("%.0f inserts a second with j: true", s.rate),
		Columns: []string{"while", "inserts", "p50 ms", "p99 ms", "max ms", "syncs/s", "sync ms", "journal kB/s"},
		Left:    1,
		Note:    "An insert counts from when it was due. syncs, journal: means of the looks at the server.",
	}
	for _, a := range s.states() {
		row := []any{a.name, len(a.samples.Latencies), a.samples.Quantile(0.5), a.samples.Quantile(0.99), a.samples.Quantile(1)}
		if n := float64(a.looks); a.looks > 0 {
			row = append(row, a.syncs/n, a.syncTime/n, a.journal/n/1e3)
		} else {
			row = append(row, nil, nil, nil)
		}
		t.Add(row...)
	}
	return t
}

func (s *checkpointStudy) timeline() *study.Table {
	t := &study.Table{Columns: []string{"second", "inserts", "p50 ms", "p99 ms", "checkpoint", "journal kB/s"}}
	marks := s.server.Marks(trace.Checkpoint)
	for _, m := range s.server.Series(trace.JournalBytes) {
		got, mark := study.Between(s.writes, m.From, m.To), 0
		if running(marks, m.From) {
			mark = 1
		}
		t.Add(m.From.Seconds(), len(got.Latencies), got.Quantile(0.5), got.Quantile(0.99), mark, m.Value/1e3)
	}
	return t
}

// draw has the latency above what the journal does.
func (s *checkpointStudy) draw() []byte {
	var bands []chart.Band
	for _, m := range s.server.Marks(trace.Checkpoint) {
		bands = append(bands, chart.Band{From: m.From.Seconds(), To: m.To.Seconds(), Class: chart.Class(3), Name: "checkpoint"})
	}
	latency := chart.Panel{Caption: "an insert, ms", LogY: true, Bands: bands}
	for i, q := range []struct {
		name string
		q    float64
	}{{"p50", 0.5}, {"p99", 0.99}} {
		line := chart.Line{Class: chart.Class(i), Plain: true, Label: q.name}
		for _, w := range study.Windows(s.writes, s.every, s.length) {
			if len(w.Latencies) > 0 {
				line.Points = append(line.Points, chart.At(w.From.Seconds(), w.Quantile(q.q).Seconds()*1e3))
			}
		}
		latency.Lines = append(latency.Lines, line)
	}
	c := chart.Lines{Title: "Journalled inserts, and checkpoints", Note: "of each second; shaded: a checkpoint runs", Panels: []chart.Panel{latency}}
	for _, panel := range []struct {
		caption string
		measure trace.Measure
		scale   float64
	}{{"a sync of the journal, ms", trace.JournalTime, 1}, {"journal, kB a second", trace.JournalBytes, 1e-3}} {
		line := chart.Line{Class: chart.Class(2), Plain: true, Label: panel.caption}
		for _, m := range s.server.Series(panel.measure) {
			line.Points = append(line.Points, chart.At(m.From.Seconds(), m.Value*panel.scale))
		}
		c.Panels = append(c.Panels, chart.Panel{Caption: panel.caption, Bands: bands, Lines: []chart.Line{line}})
	}
	for i := range c.Panels {
		c.Panels[i].Ticks = study.Ticks(s.length.Seconds())
	}
	c.Panels[len(c.Panels)-1].XName = "seconds"
	return c.SVG()
}
