package testenv

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Index is the tests and fuzz targets of the checkout, as DIRECTORY.TEST, each
// with the strings that stand in it. It's for what names tests: pages of docs,
// and tables of what is covered.
type Index map[string]map[string]bool

// Tests reads the index from the sources, whatever they are built for.
func Tests(t testing.TB) Index {
	t.Helper()
	root, index := checkout(t), Index{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && isTest(fn.Name.Name) {
				index[filepath.ToSlash(dir)+"."+fn.Name.Name] = literals(fn)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(index) < 300 {
		t.Fatalf("only %d tests were found below %s", len(index), root)
	}
	return index
}

func isTest(name string) bool {
	return strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz")
}

func literals(n ast.Node) map[string]bool {
	all := map[string]bool{}
	ast.Inspect(n, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if s, err := strconv.Unquote(l.Value); err == nil {
				all[s] = true
			}
		}
		return true
	})
	return all
}

// Has reports whether there is DIRECTORY.TEST, or DIRECTORY.TEST/ROW, where ROW
// is a string that must stand in the test.
func (x Index) Has(name string) bool {
	at := max(strings.Index(name, ".Test"), strings.Index(name, ".Fuzz")) // a directory has slashes too
	if at < 0 {
		return false
	}
	base, row, some := strings.Cut(name[at:], "/")
	stand, ok := x[name[:at]+base]
	return ok && (!some || stand[row])
}

// HasAnywhere reports whether some package has a test of that name.
func (x Index) HasAnywhere(test string) bool {
	for name := range x {
		if strings.HasSuffix(name, "."+test) {
			return true
		}
	}
	return false
}
