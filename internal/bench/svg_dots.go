package main

// The layout of a chart of dots, in pixels:
//
//	title
//	what the marks are
//	name of a row |   --o--     :   | value [interval]
//	...           |                 |
//	              0    1    2    3
const (
	chartWidth = 820.0
	namesWidth = 264.0
	dotsTop    = 62.0
	rowHeight  = 22.0
	dotsRight  = chartWidth - 170
)

// dots draws a column: for each row its median, the interval, and its goal if
// it has one.
func (c chart) dots(t *Table, figures []Figure) []byte {
	var rows []Cell
	var values []float64
	goals := map[string]float64{}
	for _, f := range figures {
		if f.Cell.Table == t.ID && f.Cell.Column == c.column {
			goals[f.Cell.Row] = f.Goal
			values = append(values, f.Goal)
		}
	}
	for _, row := range t.Rows {
		if cell := t.cell(row.Name, c.column); cell.Rounds > 0 {
			rows = append(rows, cell)
			values = append(values, cell.Low, cell.Median, cell.High)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	bottom := dotsTop + rowHeight*float64(len(rows))
	s := &svg{width: chartWidth, height: bottom + 44}
	x, ticks := span(values, namesWidth, dotsRight)
	s.text(12, 24, "title", "", c.title)
	s.text(12, 43, "mute", "", marks(c.unit, rows, len(goals)))
	for _, v := range ticks {
		s.line(x.at(v), dotsTop, x.at(v), bottom, "grid")
		s.text(x.at(v), bottom+16, "mute", "middle", tickText(v))
	}
	zero := 0.0
	if c.baseline != "" {
		zero = 1
		s.text(x.at(1), bottom+33, "mute", "middle", "1 = "+c.baseline)
	}
	s.line(x.at(zero), dotsTop, x.at(zero), bottom, "axis")
	for i, cell := range rows {
		y := dotsTop + rowHeight*(float64(i)+0.5)
		s.text(namesWidth-12, y+4, "", "end", cell.Row)
		s.put(`<g class="%s">`, colour(cell.Row))
		s.line(x.at(cell.Low), y, x.at(cell.High), y, "bar")
		s.dot(x.at(cell.Median), y, "mark")
		s.put("</g>")
		if goal, ok := goals[cell.Row]; ok {
			s.line(x.at(goal), y-9, x.at(goal), y+9, "goal")
		}
		s.text(dotsRight+12, y+4, "", "", cell.String())
	}
	return s.bytes(c.title)
}

// marks says what is drawn; spread tells what an interval is.
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
