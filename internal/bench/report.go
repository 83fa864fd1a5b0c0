package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Report is everything that a run found out; bench-out/bench.json holds it.
type Report struct {
	Machine Machine  `json:"machine"`
	Quick   bool     `json:"quick"`
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
	Title   string   `json:"title"`
	Note    string   `json:"note,omitempty"`
	Columns []string `json:"columns"`
	Rows    []Row    `json:"rows"`
}

// Row has a cell for each column after the first, which is its name.
type Row struct {
	Name  string   `json:"name"`
	Cells []Spread `json:"cells"`
}

func (t *Table) add(name string, cells ...Spread) {
	t.Rows = append(t.Rows, Row{name, cells})
}

// Figure is a result that has a goal.
type Figure struct {
	Name  string  `json:"name"`
	Value Spread  `json:"value"`
	Unit  string  `json:"unit,omitempty"`
	Goal  float64 `json:"goal"`
	// AtLeast: the goal is a lower bound, else an upper one.
	AtLeast bool `json:"at_least,omitempty"`
	// Verdict is "met", "missed", or either with a question mark when the
	// interval holds the goal.
	Verdict string `json:"verdict"`
}

// goal judges a value and keeps it.
func (r *Report) goal(name string, value Spread, unit string, goal float64, atLeast bool) {
	if value.Rounds == 0 {
		return
	}
	f := Figure{Name: name, Value: value, Unit: unit, Goal: goal, AtLeast: atLeast}
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
func (f Figure) Got() string { return f.Value.String() + unitSuffix(f.Unit) }

func unitSuffix(unit string) string {
	if unit == "" || unit == "x" {
		return unit
	}
	return " " + unit
}

// outDir is where a run leaves its results, in the repository's root.
const outDir = "bench-out"

func (r *Report) save(root string) (string, error) {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return "", fmt.Errorf("save the results: %w", err)
	}
	dir := filepath.Join(root, outDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("save the results: %w", err)
	}
	path := filepath.Join(dir, "bench.json")
	return path, os.WriteFile(path, append(b, '\n'), 0o644)
}

func loadReport(root string) (*Report, error) {
	b, err := os.ReadFile(filepath.Join(root, outDir, "bench.json"))
	if err != nil {
		return nil, fmt.Errorf("no results yet (run without -markdown first): %w", err)
	}
	var r Report
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("read the results: %w", err)
	}
	return &r, nil
}
