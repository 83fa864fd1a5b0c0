package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/internal/study"
)

var update = flag.Bool("update", false, "write the golden files anew")

// sample is a report with something of everything.
func sample() *Report {
	r := &Report{Schema: reportSchema, Seconds: 90, Machine: Machine{Processor: "P", Cores: 2, Kernel: "Linux 6", Go: "go1.26", Commit: "abc", Load: "0 0 0",
		Date: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)}, Missing: []string{"a cat"}}
	t := r.table("pingpong-16", "Ping-pong", "p50 µs", "CPU / relay")
	t.Note = "A note."
	t.add(direct, study.SpreadOf([]float64{8, 9, 10}), study.Spread{})
	t.add(relayTCP, study.SpreadOf([]float64{20, 30, 40}), exactly(1, 7))
	t.add(haProxy+" <&>", around(31.5, 30, 33, 7), around(0.9, 0.85, 0.97, 7))
	t.add(label(everyWrite, "epoll"), around(25, 21, 29, 7), around(0.95, 0.9, 1.05, 7))
	t.add(label(everyWrite, "net"), around(35, 31, 39, 7), around(1.45, 1.4, 1.6, 7))
	r.goal("CPU / relay, epoll", t.cell(label(everyWrite, "epoll"), "CPU / relay"), "x", 1, false)
	r.goal("p50, net", t.cell(label(everyWrite, "net"), "p50 µs"), "µs", 40, false)
	t = r.table("connections", "Connections", "1", "100", "10000", growth)
	t.add(relayTCP, around(20, 19, 21, 7), around(21, 20, 22, 7), around(25, 24, 29, 7), exactly(1.25, 7))
	t.add(label(wirewaitTCP, "epoll"), around(20, 18, 21, 7), around(19, 18, 22, 7), around(24, 23, 25, 7), exactly(1.2, 7))
	return r
}

// around is what so many rounds found.
func around(median, low, high float64, rounds int) study.Spread {
	return study.Spread{Median: median, Low: low, High: high, Rounds: rounds}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s has changed (if that is meant: go test ./internal/bench -update):\n%s", file, got)
	}
}

// What others read: the names of fields, and what charts look like.
func TestDocs_Golden(t *testing.T) {
	files, err := sample().docs()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 4 {
		t.Errorf("a report of two tables with charts makes %d files", len(files))
	}
	golden(t, "report.json", files["performance.json"])
	golden(t, "dots.svg", files["performance-cpu.svg"])
	golden(t, "lines.svg", files["performance-connections.svg"])
	_, results, _ := strings.Cut(string(files["performance.md"]), "## Results\n")
	results, _, _ = strings.Cut(results, "\n## Where the time goes")
	golden(t, "results.md", []byte(results))
}

func TestCharts_AreWellFormedAndLoadNothing(t *testing.T) {
	files, err := sample().docs()
	if err != nil {
		t.Fatal(err)
	}
	drawn := 0
	for name, b := range files {
		if !strings.HasSuffix(name, ".svg") {
			continue
		}
		drawn++
		d := xml.NewDecoder(bytes.NewReader(b))
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if e, ok := token.(xml.StartElement); ok {
				for _, a := range e.Attr {
					if a.Name.Local == "href" || a.Name.Local == "src" || strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
						t.Errorf("%s: <%s %s=%q>", name, e.Name.Local, a.Name.Local, a.Value)
					}
				}
			}
		}
	}
	if drawn != 2 {
		t.Errorf("%d charts were drawn", drawn)
	}
}

// The page says nothing but what its JSON says.
func TestDocs_AreGenerated(t *testing.T) {
	dir := filepath.Join("..", "..", "docs")
	r, err := loadReport(filepath.Join(dir, "performance.json"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := r.docs()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/%s isn't what its results make (%v): run go run ./internal/bench -docs -from docs/performance.json", name, err)
		}
	}
	all, err := filepath.Glob(filepath.Join(dir, "performance*"))
	if err != nil || len(all) != len(files) {
		t.Errorf("docs/ has %q, and %d files are generated", all, len(files))
	}
}

func TestReport_SurvivesItsFile(t *testing.T) {
	root := t.TempDir()
	r := sample()
	path, err := r.save(root)
	if err != nil {
		t.Fatal(err)
	}
	back, err := loadReport(path)
	if err != nil {
		t.Fatal(err)
	}
	var before, after bytes.Buffer
	r.text(&before)
	back.text(&after)
	if before.String() != after.String() {
		t.Errorf("what was read prints otherwise:\n%s\n%s", before.String(), after.String())
	}
	for _, wrong := range []string{`{"schema": 0}`, `{"schema": 1, "tabels": []}`, `{`} {
		if err := os.WriteFile(path, []byte(wrong), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := loadReport(path); err == nil {
			t.Errorf("%s was read", wrong)
		}
	}
}

func TestWriteDocs_RemovesChartsOfAnEarlierRun(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "performance-bulk.svg")
	if err := os.WriteFile(old, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := sample().writeDocs(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("a chart of nothing is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "performance-cpu.svg")); err != nil {
		t.Error(err)
	}
}

func TestReportSizes_Growth(t *testing.T) {
	b := &bench{report: &Report{}}
	at := func(us int64) []outcome {
		o := outcome{Count: 1, CPU: time.Duration(us) * time.Microsecond}
		return []outcome{o, o}
	}
	lanes := []*lane{{row: relayTCP}, {row: relayTCP}, {row: "x"}, {row: "x"}}
	table := b.reportSizes("connections", "T", "", []int{1, 1000}, lanes, [][]outcome{at(10), at(20), at(8), at(24)})
	for _, c := range []struct {
		row, column string
		want        float64
	}{
		{relayTCP, "1", 10}, {relayTCP, "1000", 20}, {relayTCP, growth, 2}, {relayTCP, growthToFirst, 1},
		{"x", "1", 8}, {"x", "1000", 24}, {"x", growth, 3}, {"x", growthToFirst, 1.5},
	} {
		if got := table.cell(c.row, c.column); got.Median != c.want || got.Rounds != 2 {
			t.Errorf("%s, %s: %v, want %v", c.row, c.column, got, c.want)
		}
	}
}
