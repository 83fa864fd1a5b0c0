package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/wirewait/wirewait/internal/testenv"
)

func readDoc(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestDocs_PromisesNameTestsThatExist: each row of these tables says which test
// shows it, as `DIRECTORY`: `TEST`, `TEST`.
func TestDocs_PromisesNameTestsThatExist(t *testing.T) {
	tests := testenv.Tests(t)
	for page, least := range map[string]int{"reliability.md": 33, "tls.md": 12} {
		rows, table := 0, false
		for line := range strings.Lines(readDoc(t, "docs", page)) {
			cells := strings.Split(strings.TrimSpace(line), "|")
			if len(cells) < 3 {
				table = false
				continue
			}
			last := cells[len(cells)-2]
			if strings.TrimSpace(last) == "shown by" {
				table = true
				continue
			}
			if !table || strings.HasPrefix(last, "---") {
				continue
			}
			rows++
			directory, named := "", 0
			for _, word := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(last, -1) {
				if !strings.HasPrefix(word[1], "Test") && !strings.HasPrefix(word[1], "Fuzz") {
					directory = word[1]
					continue
				}
				named++
				if !tests.Has(directory + "." + word[1]) {
					t.Errorf("docs/%s: %s has no %s", page, directory, word[1])
				}
			}
			if named == 0 {
				t.Errorf("docs/%s: no test in %q", page, line)
			}
		}
		if rows < least {
			t.Errorf("docs/%s: only %d rows were found", page, rows)
		}
	}
}

// TestDocs_NameTestsThatExist: whatever page names a test.
func TestDocs_NameTestsThatExist(t *testing.T) {
	tests := testenv.Tests(t)
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil || len(pages) < 8 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range append(pages, filepath.Join("..", "..", "README.md")) {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z0-9]*_\\w+)`").FindAllSubmatch(b, -1) {
			if !tests.HasAnywhere(string(word[1])) {
				t.Errorf("%s: there is no %s", filepath.Base(page), word[1])
			}
		}
	}
}

// TestDocs_DriversStayOnTheProxy: a MongoDB driver that is given the
// address of one link alone leaves it for the members that a set's hello names.
func TestDocs_DriversStayOnTheProxy(t *testing.T) {
	found := 0
	for _, pattern := range []string{"README.md", "docs/*.md", "examples/*/*.md", "examples/*/*.go"} {
		pages, err := filepath.Glob(filepath.Join("..", "..", pattern))
		if err != nil || len(pages) == 0 {
			t.Fatalf("%s: %d pages, %v", pattern, len(pages), err)
		}
		for _, page := range pages {
			b, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, uri := range regexp.MustCompile("mongodb://[a-z0-9.]+:27117[^\\s\"`]*").FindAllString(string(b), -1) {
				found++
				set := strings.Contains(uri, ",127.0.0.1:27118") && strings.Contains(uri, "replicaSet=")
				if !set && !strings.HasSuffix(uri, "/?") && !strings.Contains(uri, "directConnection=true") {
					t.Errorf("%s: %s lacks directConnection=true", filepath.Base(page), uri)
				}
			}
		}
	}
	if found < 4 {
		t.Errorf("only %d addresses were found", found)
	}
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
