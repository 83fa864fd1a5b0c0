// Package imports holds no code but a test: who may import what.
//
//	cmd -> trace/otlp -> trace -> wire
//	cmd -> proxy -> {trace, inject, wire/mongo, wire/postgres} -> wire
//
// wire and below, inject and proxy/pump do no I/O, ask no clock and start no
// goroutine, so that all they do can be tested with plain values.
package imports

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/wirewait/wirewait/"

// goPackage is what the rules look at: one package of this module.
type goPackage struct {
	path  string // without the module
	files []goFile
}

type goFile struct {
	name    string
	test    bool
	imports []string // our own ones without the module
	clock   []string // calls that ask the time or start something: "time.Now", "go"
}

func TestImports(t *testing.T) {
	packages := load(t)
	if len(packages) < 8 {
		t.Fatalf("only %d packages found: this test looks at the wrong place", len(packages))
	}
	for _, complaint := range check(packages) {
		t.Error(complaint)
	}
}

// load lists this module's packages and parses their files.
func load(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,GoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles", "./...")
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath, Dir                                    string
			GoFiles, IgnoredGoFiles, TestGoFiles, XTestGoFiles []string
		}
		if err := dec.Decode(&p); err == io.EOF {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		gp := goPackage{path: strings.TrimPrefix(p.ImportPath, module)}
		for _, name := range slices.Concat(p.GoFiles, p.IgnoredGoFiles, p.TestGoFiles, p.XTestGoFiles) {
			gp.files = append(gp.files, parse(t, filepath.Join(p.Dir, name), nil))
		}
		packages = append(packages, gp)
	}
}

// parse reads a file, or src if that is given.
func parse(t *testing.T, name string, src any) goFile {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	g := goFile{name: filepath.Base(name), test: strings.HasSuffix(name, "_test.go")}
	clock := "" // what the file calls package time
	for _, spec := range f.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if path == "time" {
			if clock = "time"; spec.Name != nil {
				clock = spec.Name.Name
			}
		}
		g.imports = append(g.imports, strings.TrimPrefix(path, module))
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			g.clock = append(g.clock, "go")
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && clock != "" && x.Name == clock && asksTime(n.Sel.Name) {
				g.clock = append(g.clock, "time."+n.Sel.Name)
			}
		}
		return true
	})
	return g
}

func asksTime(name string) bool {
	return slices.Contains([]string{
		"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Timer", "Ticker",
	}, name)
}
