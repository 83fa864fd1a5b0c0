// Package chart draws small SVG charts for documents: lines over numbers, and
// rows of dots with their intervals. It loads nothing, works on light and dark
// pages, and gives every mark its name in words beside its colour.
//
//	Lines   title                              Dots   title
//	        note                                      note
//	        caption of a panel                        name |   --o--    :  | label
//	        |      __.--o name: value                 name | --o--      :  | label
//	        | o--''                                        0    1    2
//	        1     10    100
//	        ... more panels below
package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
)

// Width of all charts, in pixels.
const Width = 820.0

// Colours is how many classes of colour there are; see Class.
const Colours = 5

// Class is the class of the i-th colour, over and over.
func Class(i int) string { return fmt.Sprintf("c%d", i%Colours) }

// drawing is an SVG file in the making. Colours are classes, which the style
// below gives for light and for dark pages; nothing is loaded from elsewhere.
type drawing struct {
	body          bytes.Buffer
	width, height float64
}

const style = `<style>
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

func (d *drawing) put(format string, args ...any) { fmt.Fprintf(&d.body, format+"\n", args...) }

// text is set from its left end, or as anchor says ("middle", "end").
func (d *drawing) text(x, y float64, class, anchor, words string) {
	var escaped strings.Builder
	_ = xml.EscapeText(&escaped, []byte(words)) // a Builder takes everything
	attributes := ""
	if class != "" {
		attributes += ` class="` + class + `"`
	}
	if anchor != "" {
		attributes += ` text-anchor="` + anchor + `"`
	}
	d.put(`<text x="%.1f" y="%.1f"%s>%s</text>`, x, y, attributes, escaped.String())
}

func (d *drawing) line(x1, y1, x2, y2 float64, class string) {
	d.put(`<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, class, x1, y1, x2, y2)
}

func (d *drawing) dot(x, y float64, class string) {
	d.put(`<circle class="%s" cx="%.1f" cy="%.1f" r="4.5"/>`, class, x, y)
}

// bytes is the whole file.
func (d *drawing) bytes(title string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f">`+"\n<title>",
		d.width, d.height, d.width, d.height)
	_ = xml.EscapeText(&b, []byte(title)) // a Buffer takes everything
	fmt.Fprintf(&b, "</title>\n%s\n%s</svg>\n", style, d.body.Bytes())
	return b.Bytes()
}
