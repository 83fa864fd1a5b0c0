package main

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

const (
	linesTop    = 62.0
	linesBottom = 300.0
	linesLeft   = 56.0
	linesRight  = chartWidth - 190
)

// series is one row of a chart of lines: its points, left to right.
type series struct {
	row    string
	points []point // one for each column that was measured
	label  float64 // where its name stands, from above
}

type point struct {
	x float64
	Cell
}

// lines draws each row over the columns that are numbers, on a logarithmic
// axis, with the interval of every point.
func (c chart) lines(t *Table) []byte {
	sizes, values, all := readSeries(t)
	if len(sizes) == 0 || len(values) == 0 {
		return nil
	}
	s := &svg{width: chartWidth, height: linesBottom + 44}
	y, ticks := span(values, linesBottom, linesTop)
	x := scale{math.Log10(sizes[0]), math.Log10(sizes[len(sizes)-1]), linesLeft + 16, linesRight - 8}
	if x.low == x.high {
		x.high++
	}
	s.text(12, 24, "title", "", c.title)
	var cells []Cell
	for _, line := range all {
		for _, p := range line.points {
			cells = append(cells, p.Cell)
		}
	}
	s.text(12, 43, "mute", "", marks(c.unit, cells, 0))
	for _, v := range ticks {
		s.line(linesLeft, y.at(v), linesRight, y.at(v), "grid")
		s.text(linesLeft-8, y.at(v)+4, "mute", "end", tickText(v))
	}
	s.line(linesLeft, y.at(0), linesRight, y.at(0), "axis")
	for _, n := range sizes {
		s.text(x.at(math.Log10(n)), linesBottom+18, "mute", "middle", tickText(n))
	}
	for i := range all {
		all[i].label = y.at(all[i].points[len(all[i].points)-1].Median)
	}
	spreadLabels(all)
	for i, line := range all {
		s.put(`<g class="%s">`, colour(line.row))
		var path []string
		for _, p := range line.points {
			// Aside by a little for each line, so that no bar hides another.
			at := x.at(math.Log10(p.x)) + 4*(float64(i)-float64(len(all)-1)/2)
			s.line(at, y.at(p.Low), at, y.at(p.High), "bar")
			s.dot(at, y.at(p.Median), "mark")
			path = append(path, tickText(math.Round(at*10)/10)+","+tickText(math.Round(y.at(p.Median)*10)/10))
		}
		s.put(`<polyline class="line" points="%s"/>`, strings.Join(path, " "))
		s.put("</g>")
		last := line.points[len(line.points)-1]
		s.text(linesRight+16, line.label+4, "", "", line.row+": "+tickText(math.Round(last.Median*10)/10))
	}
	return s.bytes(c.title)
}

func readSeries(t *Table) (sizes, values []float64, all []series) {
	for _, column := range t.Columns {
		if n, ok := sizeOf(column); ok {
			sizes = append(sizes, n)
		}
	}
	for _, row := range t.Rows {
		line := series{row: row.Name}
		for _, column := range t.Columns {
			n, ok := sizeOf(column)
			if cell := t.cell(row.Name, column); ok && cell.Rounds > 0 {
				line.points = append(line.points, point{n, cell})
				values = append(values, cell.Low, cell.Median, cell.High)
			}
		}
		if len(line.points) > 0 {
			all = append(all, line)
		}
	}
	return sizes, values, all
}

// spreadLabels moves names down until none stands on another.
func spreadLabels(all []series) {
	order := make([]*series, len(all))
	for i := range all {
		order[i] = &all[i]
	}
	slices.SortFunc(order, func(a, b *series) int { return cmp.Compare(a.label, b.label) })
	for i := 1; i < len(order); i++ {
		order[i].label = max(order[i].label, order[i-1].label+15)
	}
}
