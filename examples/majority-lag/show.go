package main

import (
	"fmt"
	"time"

	"github.com/wirewait/wirewait/internal/chart"
	"github.com/wirewait/wirewait/internal/study"
)

// theory is how much longer than without lag a write takes: majority of three is
// the primary and the faster secondary, everybody has the slower one too.
func (p *phase) theory(concern int) time.Duration {
	return []time.Duration{0, min(p.b, p.c), max(p.b, p.c)}[concern]
}

// cell is all writes of a phase and a concern, and how many secondaries did not
// show an acknowledged one.
func (s *lagStudy) cell(phase, concern int) (samples study.Samples, stale []int) {
	stale = make([]int, len(s.secondaries))
	for _, w := range s.writes {
		if w.phase != phase || w.concern != concern {
			continue
		}
		samples.Latencies = append(samples.Latencies, w.took)
		for i, missing := range w.stale {
			if missing {
				stale[i]++
			}
		}
	}
	return samples, stale
}

func (s *lagStudy) table() *study.Table {
	t := &study.Table{
		Title:   "Writes by who lags, and what they wait for",
		Columns: []string{"lags", "w", "released by", "writes", "theory ms", "p50 ms", "p95 ms"},
		Left:    3,
		Note: "theory: how much longer than without lag.\n" +
			"stale: of the acknowledged writes, the percentage that the member didn't show when asked at once.",
	}
	for _, m := range s.secondaries {
		t.Columns = append(t.Columns, "stale "+m.Name)
	}
	for i, p := range s.phases {
		for c, concern := range s.concerns {
			samples, stale := s.cell(i, c)
			by, theory := "", any(nil)
			if s.set.Lab != nil {
				by, theory = s.released[i][concern].String(), p.theory(c)
			}
			row := []any{p.name, concern, by, len(samples.Latencies), theory, samples.Quantile(0.5), samples.Quantile(0.95)}
			for _, n := range stale {
				row = append(row, float64(100*n)/float64(max(1, len(samples.Latencies))))
			}
			t.Add(row...)
		}
	}
	return t
}

// overTime draws every write, and what lagged when.
func (s *lagStudy) overTime() []byte {
	p := chart.Panel{Caption: "an insert, ms", LogY: true, XName: "seconds"}
	for c, concern := range s.concerns {
		line := chart.Line{Name: concern, Class: chart.Class(c), Plain: true, Label: "w: " + concern}
		for _, w := range s.writes {
			if w.concern == c {
				line.Points = append(line.Points, chart.At(w.at.Seconds(), w.took.Seconds()*1e3))
			}
		}
		p.Lines = append(p.Lines, line)
	}
	for _, ph := range s.phases {
		for row, lag := range []time.Duration{ph.b, ph.c} {
			if lag > 0 {
				p.Bands = append(p.Bands, chart.Band{From: ph.from.Seconds(), To: ph.to.Seconds(), Class: chart.Class(3 + row), Row: row, Name: string(rune('b' + row))})
			}
		}
	}
	p.Ticks = study.Ticks(s.phases[len(s.phases)-1].to.Seconds())
	c := chart.Lines{Title: "Whom a write concern follows", Note: "shaded: b lags, c, or both: first by the network, then by the stream of the log, then by the disk", Panels: []chart.Panel{p}}
	return c.SVG()
}

// againstTheory draws what each phase's writes took beside what they should.
func (s *lagStudy) againstTheory() []byte {
	if s.set.Lab == nil {
		return nil
	}
	c := chart.Dots{Title: "An insert by who lags, and what theory says of it", Note: "ms; dot: p50, bar: p5 to p95, dashes: the lag of the member that counts"}
	for i, p := range s.phases {
		for k, concern := range s.concerns {
			samples, _ := s.cell(i, k)
			ms := func(q float64) float64 { return samples.Quantile(q).Seconds() * 1e3 }
			goal := p.theory(k).Seconds() * 1e3
			c.Rows = append(c.Rows, chart.Dot{
				Name: p.name + ": w: " + concern, Class: chart.Class(k), Low: ms(0.05), Median: ms(0.5), High: ms(0.95), Goal: &goal,
				Label: fmt.Sprintf("%.1f, %s", ms(0.5), s.released[i][concern].Most()),
			})
		}
	}
	return c.SVG()
}
