package main

import "github.com/wirewait/wirewait/internal/chart"

// lines draws each row over the columns that are numbers, on a logarithmic
// axis, with the interval of every point.
func (c docChart) lines(t *Table) []byte {
	panel := chart.Panel{LogX: true}
	var cells []Cell
	for _, column := range t.Columns {
		if n, ok := sizeOf(column); ok {
			panel.Ticks = append(panel.Ticks, n)
		}
	}
	for _, row := range t.Rows {
		line := chart.Line{Name: row.Name, Class: colour(row.Name)}
		for _, column := range t.Columns {
			n, ok := sizeOf(column)
			if cell := t.cell(row.Name, column); ok && cell.Rounds > 0 {
				line.Points = append(line.Points, chart.Point{X: n, Y: cell.Median, Low: cell.Low, High: cell.High})
				cells = append(cells, cell)
			}
		}
		if len(line.Points) > 0 {
			panel.Lines = append(panel.Lines, line)
		}
	}
	drawn := chart.Lines{Title: c.title, Note: marks(c.unit, cells, 0), Panels: []chart.Panel{panel}}
	return drawn.SVG()
}
