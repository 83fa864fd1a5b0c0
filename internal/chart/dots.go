package chart

// Dots is a chart of rows, each a dot with an interval around it:
//
//	title
//	note
//	name of a row |   --o--     :   | label
//	...           |                 |
//	              0    1    2    3
type Dots struct {
	Title, Note string
	Rows        []Dot
	// Axis is where the axis stands, which is drawn more strongly than the grid,
	// and AxisName what stands below it.
	Axis     float64
	AxisName string
}

// Dot is one row.
type Dot struct {
	Name, Class       string
	Low, Median, High float64
	Goal              *float64 // dashes, which the note should explain; nil: none
	Label             string   // at the right end
}

const (
	namesWidth = 264.0
	top        = 62.0
	rowHeight  = 22.0
	dotsRight  = Width - 170
)

// SVG draws it; nil if it has no rows.
func (c *Dots) SVG() []byte {
	if len(c.Rows) == 0 {
		return nil
	}
	values := []float64{c.Axis}
	for _, r := range c.Rows {
		values = append(values, r.Low, r.Median, r.High)
		if r.Goal != nil {
			values = append(values, *r.Goal)
		}
	}
	bottom := top + rowHeight*float64(len(c.Rows))
	d := &drawing{width: Width, height: bottom + 44}
	x, ticks := linear(values, namesWidth, dotsRight)
	d.text(12, 24, "title", "", c.Title)
	d.text(12, 43, "mute", "", c.Note)
	for _, v := range ticks {
		d.line(x.at(v), top, x.at(v), bottom, "grid")
		d.text(x.at(v), bottom+16, "mute", "middle", Number(v))
	}
	if c.AxisName != "" {
		d.text(x.at(c.Axis), bottom+33, "mute", "middle", c.AxisName)
	}
	d.line(x.at(c.Axis), top, x.at(c.Axis), bottom, "axis")
	for i, r := range c.Rows {
		r.draw(d, x, top+rowHeight*(float64(i)+0.5))
	}
	return d.bytes(c.Title)
}

func (r *Dot) draw(d *drawing, x scale, y float64) {
	d.text(namesWidth-12, y+4, "", "end", r.Name)
	d.put(`<g class="%s">`, r.Class)
	d.line(x.at(r.Low), y, x.at(r.High), y, "bar")
	d.dot(x.at(r.Median), y, "mark")
	d.put("</g>")
	if r.Goal != nil {
		d.line(x.at(*r.Goal), y-9, x.at(*r.Goal), y+9, "goal")
	}
	d.text(dotsRight+12, y+4, "", "", r.Label)
}
