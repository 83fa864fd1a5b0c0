package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/wirewait/wirewait/internal/study"
)

// reportSchema changes when a field changes its meaning or goes away.
const reportSchema = 1

// Report is everything that a run found out; bench-out/bench.json holds it.
type Report struct {
	Schema  int      `json:"schema"`
	Machine Machine  `json:"machine"`
	Quick   bool     `json:"quick"`
	Seconds float64  `json:"seconds"` // that measuring took
	Tables  []*Table `json:"tables"`
	Figures []Figure `json:"figures"`
	// Missing says what could not be measured, and why.
	Missing []string `json:"missing,omitempty"`
}

// Machine is where and what was measured.
type Machine struct {
	Processor string    `json:"processor"`
	Cores     int       `json:"cores"`
	Kernel    string    `json:"kernel"`
	Go        string    `json:"go"`
	Commit    string    `json:"commit"`
	Load      string    `json:"load_before,omitempty"`
	Date      time.Time `json:"date"`
}

func (m Machine) String() string {
	s := fmt.Sprintf("%s, %d cores, %s, %s, commit %s, %s",
		m.Processor, m.Cores, m.Kernel, m.Go, m.Commit, m.Date.Format(time.DateOnly))
	if m.Load != "" {
		s += "; load average before: " + m.Load
	}
	return s
}

// Table is one measurement: a row for each thing measured.
type Table struct {
	ID      string   `json:"id"` // by which charts find it
	Title   string   `json:"title"`
	Note    string   `json:"note,omitempty"`
	Columns []string `json:"columns"` // without that of the rows' names
	Rows    []Row    `json:"rows"`
}

// Row has a cell for each column.
type Row struct {
	Name  string         `json:"name"`
	Cells []study.Spread `json:"cells"`
}

// table begins the next one.
func (r *Report) table(id, title string, columns ...string) *Table {
	t := &Table{ID: id, Title: title, Columns: columns}
	r.Tables = append(r.Tables, t)
	return t
}

func (r *Report) last() *Table { return r.Tables[len(r.Tables)-1] }

func (t *Table) add(name string, cells ...study.Spread) {
	t.Rows = append(t.Rows, Row{name, cells})
}

// Cell is a value and where it stands.
type Cell struct {
	Table        string `json:"table"`
	Row          string `json:"row"`
	Column       string `json:"column"`
	study.Spread `json:"value"`
}

// cell finds a value; one that isn't there has no rounds.
func (t *Table) cell(row, column string) Cell {
	c := Cell{Table: t.ID, Row: row, Column: column}
	at := slices.Index(t.Columns, column)
	for _, r := range t.Rows {
		if r.Name == row && at >= 0 && at < len(r.Cells) {
			c.Spread = r.Cells[at]
		}
	}
	return c
}

// Figure is a cell that has a goal.
type Figure struct {
	Name string  `json:"name"`
	Cell Cell    `json:"cell"`
	Unit string  `json:"unit,omitempty"`
	Goal float64 `json:"goal"`
	// AtLeast: the goal is a lower bound, else an upper one.
	AtLeast bool `json:"at_least,omitempty"`
	// Verdict is "met", "missed", or either with a question mark when the
	// interval holds the goal.
	Verdict string `json:"verdict"`
}

// goal judges a value and keeps it; one that was not measured gets no verdict.
func (r *Report) goal(name string, value Cell, unit string, goal float64, atLeast bool) {
	if value.Rounds == 0 {
		return
	}
	f := Figure{Name: name, Cell: value, Unit: unit, Goal: goal, AtLeast: atLeast}
	reached := func(v float64) bool {
		if atLeast {
			return v >= goal
		}
		return v <= goal
	}
	f.Verdict = "missed"
	if reached(value.Median) {
		f.Verdict = "met"
	}
	if reached(value.Low) != reached(value.High) {
		f.Verdict += "?"
	}
	r.Figures = append(r.Figures, f)
}

// Want is the goal in words.
func (f Figure) Want() string {
	word := "at most"
	if f.AtLeast {
		word = "at least"
	}
	return fmt.Sprintf("%s %g%s", word, f.Goal, unitSuffix(f.Unit))
}

// Got is the value in words.
func (f Figure) Got() string { return f.Cell.String() + unitSuffix(f.Unit) }

func unitSuffix(unit string) string {
	if unit == "" || unit == "x" {
		return unit
	}
	return " " + unit
}

// outDir is where a run leaves its results, in the repository's root.
const outDir = "bench-out"

func (r *Report) json() ([]byte, error) {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the results down: %w", err)
	}
	return append(b, '\n'), nil
}

func (r *Report) save(root string) (string, error) {
	b, err := r.json()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, outDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("save the results: %w", err)
	}
	path := filepath.Join(dir, "bench.json")
	return path, os.WriteFile(path, b, 0o644)
}

// loadReport reads what save wrote.
func loadReport(path string) (*Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("no results there (measure without -from first): %w", err)
	}
	defer f.Close()
	var r Report
	d := json.NewDecoder(f)
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return nil, fmt.Errorf("%s holds no results that can be read (measure again): %w", path, err)
	}
	if r.Schema != reportSchema {
		return nil, fmt.Errorf("%s has schema %d, and this is %d: measure again", path, r.Schema, reportSchema)
	}
	return &r, nil
}
