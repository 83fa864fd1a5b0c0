package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// docChart draws columns of a table.
type docChart struct {
	name, table string
	column      string // of dots; empty: lines over all columns that are numbers
	title       string
	unit        string
	baseline    string // what the value 1 is; empty: the values are no ratios
}

func (c docChart) file() string { return "performance-" + c.name + ".svg" }

// charts are all that docs/performance.md shows.
var charts = []docChart{
	{"roundtrip", "pingpong-1", "p50 / relay", "Median round trip on one connection, against a bare relay", "ratio of the same round", "relay"},
	{"cpu", "pingpong-16", "CPU / relay", "Processor time per round trip on 16 connections, against a bare relay", "ratio of the same round", "relay"},
	{"bulk", "bulk", "MB/s / relay", "Bulk throughput, against a bare relay", "ratio of the same round", "relay"},
	{"delay", "delay", "median", "Error of an injected delay, as the client sees it", "µs, median of all pings", ""},
	{"steady", "steady", "median", "Error of a delay of 5 ms at 10,000 messages a second on 64 connections", "µs, median", ""},
	{"idle", "idle", "RSS", "Resident memory of an idle connection", "KiB", ""},
	{"connections", "connections", "", "Processor time per exchange, by the number of connections", "µs", ""},
	{"links", "links", "", "Processor time per exchange, by the number of links", "µs", ""},
	{"pgbench", "pgbench", "tps / PgBouncer", "pgbench -S with 8 clients, against PgBouncer", "transactions per second, ratio of the same round", "PgBouncer"},
}

// draw is nil if the report lacks what the chart shows.
func (c docChart) draw(r *Report) []byte {
	for _, t := range r.Tables {
		if t.ID != c.table {
			continue
		}
		if c.column == "" {
			return c.lines(t)
		}
		return c.dots(t, r.Figures)
	}
	return nil
}

// colour is a class by what a row is, so that one thing has one colour on all
// charts. Every mark has its name beside it as well.
func colour(row string) string {
	switch {
	case strings.HasPrefix(row, "wirewait") && strings.Contains(row, ", net"):
		return "c1"
	case strings.HasPrefix(row, "wirewait"):
		return "c0"
	case strings.HasPrefix(row, haProxy), strings.HasPrefix(row, pgBouncer):
		return "c3"
	case strings.HasPrefix(row, toxiProxy):
		return "c4"
	}
	return "c2"
}

// writeDocs writes the page, its charts and the results they come from.
func (r *Report) writeDocs(dir string) error {
	files, err := r.docs()
	if err != nil {
		return err
	}
	for _, c := range charts { // one that was drawn of an earlier run
		if files[c.file()] == nil {
			if err := os.Remove(filepath.Join(dir, c.file())); err != nil && !os.IsNotExist(err) {
				return fmt.Errorf("remove an old chart: %w", err)
			}
		}
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return fmt.Errorf("write the page: %w", err)
		}
	}
	return nil
}

// docs is the content of each file by its name.
func (r *Report) docs() (map[string][]byte, error) {
	results, err := r.json()
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"performance.json": results}
	for _, c := range charts {
		if b := c.draw(r); b != nil {
			files[c.file()] = b
		}
	}
	var tables bytes.Buffer
	r.markdown(&tables)
	files["performance.md"] = []byte(strings.Replace(page, "RESULTS\n", tables.String(), 1))
	return files, nil
}

// sizeOf reads a column that is a number.
func sizeOf(column string) (float64, bool) {
	n, err := strconv.ParseFloat(column, 64)
	return n, err == nil && n > 0
}
