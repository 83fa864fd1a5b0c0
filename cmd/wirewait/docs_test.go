package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func readDoc(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestDocs_ReliabilityNamesTestsThatExist: each row says which test shows it.
func TestDocs_ReliabilityNamesTestsThatExist(t *testing.T) {
	rows := 0
	for line := range strings.Lines(readDoc(t, "docs", "reliability.md")) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.Contains(cells[3], "`") {
			continue
		}
		rows++
		directory, found := "", 0
		for _, word := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[3], -1) {
			if !strings.HasPrefix(word[1], "Test") && !strings.HasPrefix(word[1], "Fuzz") {
				directory = word[1]
				continue
			}
			found++
			if !hasTest(t, directory, word[1]) {
				t.Errorf("%s has no %s", directory, word[1])
			}
		}
		if found == 0 {
			t.Errorf("no test in %q", line)
		}
	}
	if rows < 15 {
		t.Errorf("only %d rows were found", rows)
	}
}

func hasTest(t *testing.T, directory, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", directory, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}

func TestDocs_RunningNamesEveryFlag(t *testing.T) {
	doc := readDoc(t, "docs", "running.md")
	for _, f := range runFlags() {
		if name := f.Names()[0]; !strings.Contains(doc, "| `--"+name+"`") && !strings.Contains(doc, ", `--"+name+"`") {
			t.Errorf("docs/running.md has no row for --%s", name)
		}
	}
}

// TestDocs_SpansNamesEveryAttribute: docs/spans.md has each key in full, or its
// end behind another one (`.j`).
func TestDocs_SpansNamesEveryAttribute(t *testing.T) {
	doc := readDoc(t, "docs", "spans.md")
	keys := regexp.MustCompile(`attribute\.Key\("([^"]+)"\)`).FindAllStringSubmatch(readDoc(t, "trace", "otlp", "attributes.go"), -1)
	if len(keys) < 30 {
		t.Fatalf("only %d keys were found", len(keys))
	}
	for _, k := range keys {
		end := k[1][strings.LastIndexByte(k[1], '.'):]
		if !strings.Contains(doc, "`"+k[1]+"`") && !strings.Contains(doc, "`"+end+"`") {
			t.Errorf("docs/spans.md doesn't name %s", k[1])
		}
	}
}
