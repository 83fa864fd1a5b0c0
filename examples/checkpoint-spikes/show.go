package main

import (
	"fmt"
	"time"

	"github.com/wirewait/wirewait/internal/chart"
	"github.com/wirewait/wirewait/internal/study"
)

func (s *spikes) table() *study.Table {
	t := &study.Table{
		Title: fmt.Sprintf("%.0f updates a second to %d rows, by what begins a checkpoint", s.rate, s.rows),
		Columns: []string{"checkpoints", "timed", "requested", "updates", "p50 ms", "p99 ms", "max ms",
			"p99 during ms", "p99 between ms", "dirty buffers", "WAL MB"},
		Left: 1,
		Note: "during, between: of the updates that were due while a checkpoint ran, and of the others.\n" +
			"dirty buffers: the most that were counted at a time. An update counts from when it was due.",
	}
	for _, p := range s.phases {
		var during, between study.Samples
		checkpoints := p.checkpoints()
		for _, w := range p.writes {
			into := &between
			if within(checkpoints, w.Due) {
				into = &during
			}
			into.Latencies = append(into.Latencies, w.Took)
		}
		all := study.Between(p.writes, 0, p.length)
		first, last := p.samples[0], p.samples[len(p.samples)-1]
		var dirty any
		if most := p.mostDirty(); most >= 0 {
			dirty = most
		}
		t.Add(p.name, last.timed-first.timed, last.requested-first.requested, len(all.Latencies),
			all.Quantile(0.5), all.Quantile(0.99), all.Quantile(1), p99(during), p99(between), dirty, last.wal-first.wal)
	}
	return t
}

// p99 is nil without any.
func p99(s study.Samples) any {
	if len(s.Latencies) == 0 {
		return nil
	}
	return s.Quantile(0.99)
}

func (p *phase) mostDirty() int64 {
	most := int64(-1)
	for _, s := range p.samples {
		most = max(most, s.dirty)
	}
	return most
}

// window is a stretch between two samples, and the updates that were due in it.
type window struct {
	from, to sample
	study.Samples
}

func (p *phase) windows() (all []window) {
	for i := 1; i < len(p.samples); i++ {
		from, to := p.samples[i-1], p.samples[i]
		w := window{from, to, study.Between(p.writes, from.at, to.at)}
		if len(w.Latencies) > 0 {
			all = append(all, w)
		}
	}
	return all
}

// timeline has a row for each window of each phase.
func (s *spikes) timeline() *study.Table {
	t := &study.Table{Columns: []string{"checkpoints", "second", "updates", "p50 ms", "p99 ms", "max ms", "running", "dirty buffers", "WAL MB"}}
	for _, p := range s.phases {
		checkpoints := p.checkpoints()
		for _, w := range p.windows() {
			running := 0
			if within(checkpoints, w.from.at) {
				running = 1
			}
			t.Add(p.name, w.from.at.Seconds(), len(w.Latencies), w.Quantile(0.5), w.Quantile(0.99), w.Quantile(1), running, w.to.dirty, w.to.wal-w.from.wal)
		}
	}
	return t
}

// drawLatency has a panel for each phase.
func (s *spikes) drawLatency() []byte {
	c := chart.Lines{Title: "A steady stream of updates, and checkpoints", Note: "ms, of the updates due in each second; shaded: a checkpoint runs"}
	for _, p := range s.phases {
		panel := p.panel(p.name)
		panel.LogY = true
		for i, q := range []struct {
			name string
			q    float64
		}{{"p50", 0.5}, {"p99", 0.99}} {
			line := chart.Line{Class: chart.Class(i), Plain: true, Label: q.name}
			for _, w := range p.windows() {
				line.Points = append(line.Points, chart.At(w.from.at.Seconds(), milliseconds(w.Quantile(q.q))))
			}
			panel.Lines = append(panel.Lines, line)
		}
		c.Panels = append(c.Panels, panel)
	}
	return c.SVG()
}

// drawBuffers has a panel for each phase.
func (s *spikes) drawBuffers() []byte {
	c := chart.Lines{Title: "Dirty buffers and WAL, and checkpoints", Note: "MB: dirty buffers at the time, WAL of each second times ten; shaded: a checkpoint runs"}
	for _, p := range s.phases {
		dirty := chart.Line{Class: chart.Class(0), Plain: true, Label: "dirty buffers"}
		wal := chart.Line{Class: chart.Class(1), Plain: true, Label: "WAL, MB/s × 10"}
		for _, w := range p.windows() {
			at := w.to.at.Seconds()
			if w.to.dirty >= 0 {
				dirty.Points = append(dirty.Points, chart.At(at, float64(w.to.dirty)*bufferMB))
			}
			wal.Points = append(wal.Points, chart.At(at, 10*(w.to.wal-w.from.wal)/(w.to.at-w.from.at).Seconds()))
		}
		panel := p.panel(p.name)
		panel.Lines = []chart.Line{dirty, wal}
		c.Panels = append(c.Panels, panel)
	}
	return c.SVG()
}

// bufferMB is a buffer's size (BLCKSZ, 8 kB unless the server was built
// otherwise).
const bufferMB = 8.0 / 1024

// panel has the phase's checkpoints marked.
func (p *phase) panel(caption string) chart.Panel {
	panel := chart.Panel{Caption: caption, Ticks: study.Ticks(p.length.Seconds())}
	for _, c := range p.checkpoints() {
		band := chart.Band{From: c.from.Seconds(), To: c.to.Seconds(), Class: chart.Class(3), Name: "timed"}
		if c.requested {
			band.Class, band.Name = chart.Class(4), "requested"
		}
		panel.Bands = append(panel.Bands, band)
	}
	return panel
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
