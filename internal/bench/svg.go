package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strings"
)

// svg is a drawing. Colours are classes, which the style below gives for light
// and for dark pages; nothing is loaded from elsewhere.
type svg struct {
	body          bytes.Buffer
	width, height float64
}

const svgStyle = `<style>
svg{background:#fff}
text{font:12px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#1f2328}
.title{font-size:15px;font-weight:600}.mute{fill:#59636e}
.grid{stroke:#d8dee4}.axis{stroke:#59636e}.goal{stroke:#1f2328;stroke-dasharray:2 2;stroke-width:2}
.c0{color:#0a63d1}.c1{color:#0f8a6d}.c2{color:#6e7781}.c3{color:#c05a00}.c4{color:#a8327e}
.mark{fill:currentColor}.bar{stroke:currentColor;stroke-width:2}.line{stroke:currentColor;stroke-width:2;fill:none}
@media(prefers-color-scheme:dark){svg{background:#0d1117}text{fill:#e6edf3}.mute{fill:#9198a1}
.grid{stroke:#2d333b}.axis{stroke:#9198a1}.goal{stroke:#e6edf3}
.c0{color:#58a6ff}.c1{color:#3fc7a0}.c2{color:#9198a1}.c3{color:#f0883e}.c4{color:#e06bb4}}
</style>`

func (s *svg) put(format string, args ...any) { fmt.Fprintf(&s.body, format+"\n", args...) }

// text is set from its left end, or as anchor says ("middle", "end").
func (s *svg) text(x, y float64, class, anchor, words string) {
	var escaped strings.Builder
	_ = xml.EscapeText(&escaped, []byte(words)) // a Builder takes everything
	attributes := ""
	if class != "" {
		attributes += ` class="` + class + `"`
	}
	if anchor != "" {
		attributes += ` text-anchor="` + anchor + `"`
	}
	s.put(`<text x="%.1f" y="%.1f"%s>%s</text>`, x, y, attributes, escaped.String())
}

func (s *svg) line(x1, y1, x2, y2 float64, class string) {
	s.put(`<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, class, x1, y1, x2, y2)
}

func (s *svg) dot(x, y float64, class string) {
	s.put(`<circle class="%s" cx="%.1f" cy="%.1f" r="4.5"/>`, class, x, y)
}

// bytes is the whole file.
func (s *svg) bytes(title string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f">`+"\n<title>",
		s.width, s.height, s.width, s.height)
	_ = xml.EscapeText(&b, []byte(title)) // a Buffer takes everything
	fmt.Fprintf(&b, "</title>\n%s\n%s</svg>\n", svgStyle, s.body.Bytes())
	return b.Bytes()
}

// scale is a linear axis from low to high, at pixels from to to.
type scale struct{ low, high, from, to float64 }

func (a scale) at(v float64) float64 { return a.from + (v-a.low)/(a.high-a.low)*(a.to-a.from) }

// span is a scale that holds zero and all values, and its ticks.
func span(values []float64, from, to float64) (scale, []float64) {
	low, high := 0.0, 0.0
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	if low == high {
		high = low + 1
	}
	step := tickStep((high - low) / 5)
	low, high = math.Floor(low/step)*step, math.Ceil(high/step)*step
	var ticks []float64
	for i := range int(math.Round((high-low)/step)) + 1 {
		ticks = append(ticks, low+float64(i)*step)
	}
	return scale{low, high, from, to}, ticks
}

// tickStep is the first of 1, 2 and 5 times a power of ten that is no less.
func tickStep(least float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= least {
			return m * power
		}
	}
	return 10 * power
}

// tickText is a tick in as few digits as it needs.
func tickText(v float64) string { return fmt.Sprintf("%g", math.Round(v*1e6)/1e6) }
