package study

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/wirewait/wirewait/trace"
)

// Table is what an experiment found: for a person at a terminal, and as CSV.
// Times are in milliseconds in both, and a column's name says so: "p50 ms" at
// the terminal, p50_ms in the file.
type Table struct {
	Title string
	// Note stands below the table at the terminal; empty: nothing does.
	Note    string
	Columns []string
	// Left is how many of the columns are words, and stand first.
	Left int

	rows [][]any
}

// Add appends a row with a cell for each column: a string, an int, a float64, a
// time.Duration, or nil where there is nothing to say.
func (t *Table) Add(cells ...any) { t.rows = append(t.rows, cells) }

// Text prints it.
func (t *Table) Text(w io.Writer) {
	cells := [][]string{t.Columns}
	for _, row := range t.rows {
		words := make([]string, len(t.Columns))
		for i := range words {
			words[i] = shown(row, i)
		}
		cells = append(cells, words)
	}
	fmt.Fprintf(w, "\n%s\n\n", t.Title)
	for line := range strings.Lines(trace.Align(cells, t.Left)) {
		fmt.Fprintf(w, "  %s\n", strings.TrimRight(line, " \n"))
	}
	if t.Note != "" {
		fmt.Fprintf(w, "\n%s\n", t.Note)
	}
}

// CSV writes it with a header, and with all digits.
func (t *Table) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	var names []string
	for _, name := range t.Columns {
		names = append(names, strings.NewReplacer(" ", "_", "/", "_per_", "%", "percent").Replace(name))
	}
	_ = c.Write(names) // Error has it
	for _, row := range t.rows {
		words := make([]string, len(t.Columns))
		for i := range words {
			words[i] = exact(row, i)
		}
		_ = c.Write(words)
	}
	c.Flush()
	if err := c.Error(); err != nil {
		return fmt.Errorf("write a table as CSV: %w", err)
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// shown is a cell in as many digits as a person reads.
func shown(row []any, i int) string {
	if i >= len(row) {
		return ""
	}
	switch v := row[i].(type) {
	case nil:
		return "-"
	case time.Duration:
		return number(milliseconds(v))
	case float64:
		return number(v)
	default:
		return fmt.Sprint(v)
	}
}

func exact(row []any, i int) string {
	if i >= len(row) {
		return ""
	}
	switch v := row[i].(type) {
	case nil:
		return ""
	case time.Duration:
		return strconv.FormatFloat(milliseconds(v), 'f', -1, 64)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}

// number has three or four digits that matter.
func number(v float64) string { return strconv.FormatFloat(v, 'f', decimals(v), 64) }

// Ticks are round numbers of seconds for an axis that ends at end.
func Ticks(end float64) (ticks []float64) {
	step := 1.0
	for _, s := range []float64{2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600} {
		if end/step > 8 {
			step = s
		}
	}
	for v := 0.0; v <= end; v += step {
		ticks = append(ticks, v)
	}
	return ticks
}
