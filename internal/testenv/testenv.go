// Package testenv is what tests need and the repository doesn't hold: programs,
// and recorded traffic.
//
// Beside each recorded stream NAME.bin stands NAME.msgs.tsv, the messages that
// another program found in it, one a line:
//
//	offset TAB length TAB kind TAB what it read of it, as a JSON object
package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Missing ends a test for which something must be installed first; what says
// what, and how. In CI (WIREWAIT_CI=1) that is a failure, elsewhere it skips.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("WIREWAIT_CI") == "1" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// Mongod is the program of a MongoDB server, as make test-mongod gives it in
// WIREWAIT_MONGOD. Otherwise the test skips, in CI too: no package of Debian's has
// it.
func Mongod(t testing.TB) string {
	t.Helper()
	program := os.Getenv("WIREWAIT_MONGOD")
	if program == "" {
		t.Skip("no mongod was asked for: run make test-mongod")
	}
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("no mongod: install MongoDB 8.0 (https://www.mongodb.com/docs/manual/installation/), or run make test-mongod MONGOD=its path: %v", err)
	}
	return path
}

// Captures is the directory of recorded traffic: WIREWAIT_CAPTURES, else
// shared/captures beside the checkout. A test that calls it where there is none
// ends as by Missing.
func Captures(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("WIREWAIT_CAPTURES")
	if dir == "" {
		dir = filepath.Join(checkout(t), "..", "shared", "captures")
	}
	if _, err := os.Stat(filepath.Join(dir, "INDEX.md")); err != nil {
		Missing(t, "no captures in "+dir+": set WIREWAIT_CAPTURES to their directory")
	}
	return dir
}

// checkout is the directory of the module under test.
func checkout(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return d
		}
		if d == filepath.Dir(d) {
			t.Fatalf("%s is in no module", dir)
		}
	}
}

// Message is one of a recorded stream, by that other program's word.
type Message struct {
	Offset, Length int    // no length is 0
	Kind           string // empty: it could make nothing of what stands there
	JSON           string // may be cut short
}

// Messages are those of the stream in the file NAME.bin; none if it has no list,
// as empty streams have none.
func Messages(t testing.TB, file string) (list []Message) {
	t.Helper()
	b, err := os.ReadFile(strings.TrimSuffix(file, ".bin") + ".msgs.tsv")
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimRight(line, "\n"), "\t", 4)
		if len(f) != 4 {
			t.Fatalf("%s: %q has no four fields", file, line)
		}
		m := Message{Kind: f[2], JSON: f[3]}
		if m.Offset, err = strconv.Atoi(f[0]); err == nil && f[1] != "" {
			m.Length, err = strconv.Atoi(f[1])
		}
		if err != nil {
			t.Fatalf("%s: %q: %v", file, line, err)
		}
		list = append(list, m)
	}
	return list
}
