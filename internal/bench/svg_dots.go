package main

import "github.com/wirewait/wirewait/internal/chart"

// dots draws a column: for each row its median, the interval, and its goal if
// it has one.
func (c docChart) dots(t *Table, figures []Figure) []byte {
	goals := map[string]*float64{}
	for _, f := range figures {
		if f.Cell.Table == t.ID && f.Cell.Column == c.column {
			goals[f.Cell.Row] = &f.Goal
		}
	}
	var cells []Cell
	drawn := chart.Dots{Title: c.title}
	for _, row := range t.Rows {
		cell := t.cell(row.Name, c.column)
		if cell.Rounds == 0 {
			continue
		}
		cells = append(cells, cell)
		drawn.Rows = append(drawn.Rows, chart.Dot{
			Name: cell.Row, Class: colour(cell.Row), Low: cell.Low, Median: cell.Median, High: cell.High,
			Goal: goals[cell.Row], Label: cell.String(),
		})
	}
	drawn.Note = marks(c.unit, cells, len(goals))
	if c.baseline != "" {
		drawn.Axis, drawn.AxisName = 1, "1 = "+c.baseline
	}
	return drawn.SVG()
}

// marks says what is drawn; study.Spread tells what an interval is.
func marks(unit string, cells []Cell, goals int) string {
	interval := "95 % interval"
	for _, c := range cells {
		if c.Rounds < 6 && c.Low != c.High {
			interval = "95 % interval (below six rounds the extremes)"
		}
	}
	words := unit + "; dot: median, bar: " + interval
	if goals > 0 {
		words += ", dashes: goal"
	}
	return words
}
