package chart

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Lines is a chart of lines over a number, in one panel or several below each
// other.
type Lines struct {
	Title, Note string
	Panels      []Panel
}

// Panel is one pair of axes.
type Panel struct {
	Caption string // above it; empty: no room is left for one
	Lines   []Line
	// Ticks of the x axis. LogX and LogY make an axis logarithmic.
	Ticks      []float64
	LogX, LogY bool
	// XName says below the panel what x is; empty: nothing.
	XName string
	// Bands are stretches of x that are shaded.
	Bands []Band
}

// Line is a row of points, from left to right.
type Line struct {
	Name, Class string
	Points      []Point
	// Plain lines have no dots and no intervals: for many points.
	Plain bool
	// Label at the right end; empty: the name and the last value.
	Label string
}

// Point is a value and an interval around it.
type Point struct{ X, Y, Low, High float64 }

// At is a point without an interval.
func At(x, y float64) Point { return Point{x, y, y, y} }

// Band is a stretch of x, from From to To, in a class's colour. Its name stands
// within it at the top, or Row lines below.
type Band struct {
	From, To    float64
	Class, Name string
	Row         int
}

const (
	panelHeight = 238.0
	linesLeft   = 56.0
	linesRight  = Width - 190
)

// SVG draws it; nil if no panel has a point.
func (c *Lines) SVG() []byte {
	d, drawn := &drawing{width: Width}, false
	d.text(12, 24, "title", "", c.Title)
	d.text(12, 43, "mute", "", c.Note)
	at := top
	for _, p := range c.Panels {
		if p.empty() {
			continue
		}
		drawn = true
		if p.Caption != "" {
			d.text(12, at+10, "", "", p.Caption)
			at += 24
		}
		p.draw(d, at, at+panelHeight)
		at += panelHeight + 44
		if p.XName != "" {
			at += 14
		}
	}
	if !drawn {
		return nil
	}
	d.height = at
	return d.bytes(c.Title)
}

func (p *Panel) empty() bool {
	for _, l := range p.Lines {
		if len(l.Points) > 0 {
			return false
		}
	}
	return true
}

// axes are the scales that hold everything.
func (p *Panel) axes(from, to float64) (x, y scale, yTicks []float64) {
	var xs, ys []float64
	for _, l := range p.Lines {
		for _, q := range l.Points {
			xs, ys = append(xs, q.X), append(ys, q.Low, q.Y, q.High)
		}
	}
	xs = append(xs, p.Ticks...)
	x = scale{low: slices.Min(xs), high: slices.Max(xs), from: linesLeft + 16, to: linesRight - 8, logarithmic: p.LogX}
	if p.LogX {
		x.low, x.high = math.Log10(x.low), math.Log10(x.high)
	}
	if x.low == x.high {
		x.high++
	}
	if p.LogY {
		y, yTicks = logarithmic(ys, to, from)
	} else {
		y, yTicks = linear(ys, to, from)
	}
	return x, y, yTicks
}

func (p *Panel) draw(d *drawing, from, to float64) {
	x, y, yTicks := p.axes(from, to)
	for _, b := range p.Bands {
		left, right := max(x.at(b.From), linesLeft), min(x.at(b.To), linesRight)
		d.put(`<g class="%s"><rect class="mark" opacity="0.2" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/></g>`, b.Class, left, from, max(right-left, 1.5), to-from)
		if b.Name != "" {
			d.text(left+4, from+13+14*float64(b.Row), "mute", "", b.Name)
		}
	}
	for _, v := range yTicks {
		d.line(linesLeft, y.at(v), linesRight, y.at(v), "grid")
		d.text(linesLeft-8, y.at(v)+4, "mute", "end", Number(v))
	}
	floor := to
	if !p.LogY {
		floor = y.at(0)
	}
	d.line(linesLeft, floor, linesRight, floor, "axis")
	for _, v := range p.Ticks {
		d.text(x.at(v), to+18, "mute", "middle", Number(v))
	}
	if p.XName != "" {
		d.text((linesLeft+linesRight)/2, to+36, "mute", "middle", p.XName)
	}
	labels := p.labels(y)
	for i, l := range p.Lines {
		if len(l.Points) == 0 {
			continue
		}
		// Aside by a little for each line, so that no bar hides another.
		l.draw(d, x, y, 4*(float64(i)-float64(len(p.Lines)-1)/2))
		left := linesRight + 16
		if l.Plain { // its end may be anywhere
			d.put(`<g class="%s">`, l.Class)
			d.line(left, labels[i], left+14, labels[i], "bar")
			d.put("</g>")
			left += 20
		}
		d.text(left, labels[i]+4, "", "", l.label())
	}
}

func (l *Line) draw(d *drawing, x, y scale, aside float64) {
	d.put(`<g class="%s">`, l.Class)
	var path []string
	for _, q := range l.Points {
		at := x.at(q.X)
		if !l.Plain {
			at += aside
			d.line(at, y.at(q.Low), at, y.at(q.High), "bar")
			d.dot(at, y.at(q.Y), "mark")
		}
		path = append(path, Number(math.Round(at*10)/10)+","+Number(math.Round(y.at(q.Y)*10)/10))
	}
	d.put(`<polyline class="line" points="%s"/>`, strings.Join(path, " "))
	d.put("</g>")
}

func (l *Line) last() float64 { return l.Points[len(l.Points)-1].Y }

func (l *Line) label() string {
	if l.Label != "" {
		return l.Label
	}
	last := math.Round(l.last()*10) / 10
	if last >= 1000 {
		last = math.Round(last)
	}
	return l.Name + ": " + Number(last)
}

// labels are where the lines' names stand: each at its line's right end, or
// further down if another stands there.
func (p *Panel) labels(y scale) []float64 {
	at := make([]float64, len(p.Lines))
	var order []int
	for i, l := range p.Lines {
		if len(l.Points) > 0 {
			at[i] = y.at(l.last())
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(at[a], at[b]) })
	for i := 1; i < len(order); i++ {
		at[order[i]] = max(at[order[i]], at[order[i-1]]+15)
	}
	return at
}
