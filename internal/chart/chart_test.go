package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// elements reads a drawing, and fails where it isn't well-formed, loads
// something, or has a number that is none.
func elements(t *testing.T, drawing []byte) (count map[string]int, words string) {
	t.Helper()
	count = map[string]int{}
	d := xml.NewDecoder(bytes.NewReader(drawing))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return count, words
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			count[e.Name.Local]++
			for _, a := range e.Attr {
				if a.Name.Local == "href" || a.Name.Local == "src" || strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Errorf("<%s %s=%q>", e.Name.Local, a.Name.Local, a.Value)
				}
			}
		case xml.CharData:
			words += string(e)
		}
	}
}

func TestLines(t *testing.T) {
	c := Lines{Title: "T <&>", Note: "ms", Panels: []Panel{
		{Caption: "one", LogX: true, LogY: true, Ticks: []float64{1, 100}, XName: "clients", Lines: []Line{
			{Name: "a", Class: Class(0), Points: []Point{At(1, 0), At(100, 30)}},
			{Name: "b", Class: Class(1), Points: []Point{{X: 1, Y: 2, Low: 1, High: 3}}},
			{Name: "absent"},
		}},
		{Caption: "nothing", Lines: []Line{{Name: "absent"}}},
		{Caption: "two", Bands: []Band{{From: 2, To: 3, Class: Class(3)}}, Lines: []Line{{Name: "c", Class: Class(7), Points: []Point{At(1, 1), At(2, -1)}, Plain: true}}},
	}}
	count, words := elements(t, c.SVG())
	if count["polyline"] != 3 || count["circle"] != 3 || count["rect"] != 1 {
		t.Errorf("%v", count)
	}
	for _, want := range []string{"T <&>", "one", "two", "clients", "a: 30", "b: 2", "c: -1"} {
		if !strings.Contains(words, want) {
			t.Errorf("no %q in %q", want, words)
		}
	}
	if strings.Contains(words, "absent") || strings.Contains(words, "nothing") {
		t.Errorf("what has no points is named: %q", words)
	}
	if (&Lines{Title: "T"}).SVG() != nil || (&Dots{Title: "T"}).SVG() != nil {
		t.Error("a chart of nothing is drawn")
	}
}

func TestLines_NamesDontOverlap(t *testing.T) {
	p := Panel{Lines: []Line{{Name: "a", Points: []Point{At(0, 5)}}, {Name: "absent"}, {Name: "b", Points: []Point{At(0, 5)}}, {Name: "c", Points: []Point{At(0, 9)}}}}
	y, _ := linear([]float64{10}, 200, 0)
	if at := p.labels(y); at[2]-at[0] != 15 || at[3] >= at[0] {
		t.Errorf("names stand at %v", at)
	}
}

func TestDots(t *testing.T) {
	goal := 40.0
	c := Dots{Title: "T", Rows: []Dot{{Name: "a", Class: Class(0), Low: 1, Median: 2, High: 3, Goal: &goal, Label: "2 ms"}, {Name: "b", Class: Class(1)}}}
	count, words := elements(t, c.SVG())
	if count["circle"] != 2 || !strings.Contains(words, "2 ms") || !strings.Contains(words, "40") {
		t.Errorf("%v %q", count, words)
	}
}
