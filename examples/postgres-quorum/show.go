package main

import (
	"fmt"
	"slices"

	"github.com/wirewait/wirewait/internal/chart"
	"github.com/wirewait/wirewait/internal/study"
)

// matrix has a row for each rule and lag, and a column for each level.
func (s *quorumStudy) matrix() *study.Table {
	t := &study.Table{
		Title:   fmt.Sprintf("Commits by synchronous_standby_names, by who lags, and by level: p50 of %d, in ms", s.rounds),
		Columns: append(append([]string{"names", "lags", "released by"}, levels...), "theory ms"),
		Left:    3,
		Note: "released by: at level on.\n" +
			"theory: the lag of the standby that counts, which remote_write, on and remote_apply add to local.",
	}
	on := slices.Index(levels, "on")
	for _, c := range s.cells {
		row := []any{c.names, c.lags, c.released[on].String()}
		for i := range levels {
			row = append(row, c.samples[i].Quantile(0.5))
		}
		t.Add(append(row, c.theory[on])...)
	}
	return t
}

// long has a row for each rule, lag and level.
func (s *quorumStudy) long() *study.Table {
	t := &study.Table{Columns: []string{"names", "lags", "level", "released by", "expected", "commits", "theory ms", "p50 ms", "p95 ms"}}
	for _, c := range s.cells {
		for i, level := range levels {
			t.Add(c.names, c.lags, level, c.released[i].String(), c.expected[i], len(c.samples[i].Latencies),
				c.theory[i], c.samples[i].Quantile(0.5), c.samples[i].Quantile(0.95))
		}
	}
	return t
}

// draw has a row for each rule, lag and level that waits.
func (s *quorumStudy) draw() []byte {
	d := chart.Dots{
		Title: "A commit's wait, by rule, lag and level",
		Note:  "ms; dot: p50, bar: p5 to p95, dashes: the lag of the standby that counts",
	}
	for _, c := range s.cells {
		for i, level := range levels {
			if level == "off" {
				continue
			}
			ms := func(q float64) float64 { return c.samples[i].Quantile(q).Seconds() * 1e3 }
			goal := c.theory[i].Seconds() * 1e3
			d.Rows = append(d.Rows, chart.Dot{
				Name: c.names + ", lag " + c.lags + ": " + level, Class: chart.Class(i), Low: ms(0.05), Median: ms(0.5), High: ms(0.95), Goal: &goal,
				Label: fmt.Sprintf("%.1f, %s", ms(0.5), c.released[i].Most()),
			})
		}
	}
	return d.SVG()
}
