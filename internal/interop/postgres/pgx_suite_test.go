package postgres

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// pgxPackages are those of pgx whose tests talk to a database.
var pgxPackages = []string{".", "./pgconn", "./pgtype/...", "./pgxpool", "./stdlib", "./tracelog"}

// odd tests are run through a link of their own, without delay: one makes
// 100,000 round trips, one after the other, and the other sends 100,000
// statements in one pipeline.
const odd = "^(TestListenNotifyWhileBusyIsSafe|TestConnExecBatchHuge)$"

// pgx's own tests pass, fail and skip through the link as they do without it.
// The others make some 100,000 round trips, too: the link is faster than that of
// the other clients.
func TestPgxSuite(t *testing.T) {
	s := startServer(t, machine)
	version, dir := copyPgx(t)
	must(t, inPgx(t, dir, "go", append([]string{"test", "-vet=off", "-run=^$"}, pgxPackages...)...)) // build once
	play := func(addr, oddAddr string) map[string]string {
		const db = "pgx_test"
		s.freshDatabase(t, db)
		// As pgx's CONTRIBUTING.md asks.
		s.exec(t, db, "create extension hstore", "create extension ltree", "create domain uint64 as numeric(20,0)")
		outcomes := map[string]string{}
		pgxTests(t, dir, url(addr, db), outcomes, append([]string{"-skip=" + odd}, pgxPackages...)...)
		pgxTests(t, dir, url(oddAddr, db), outcomes, "-run="+odd, ".", "./pgconn")
		return outcomes
	}
	direct := play(s.Addr(), s.Addr())
	passed := 0
	for _, outcome := range direct {
		if outcome == "pass" {
			passed++
		}
	}
	if passed < 1000 {
		t.Fatalf("only %d tests passed directly", passed)
	}
	l := startSlow(t, s.Addr(), time.Millisecond, 200*time.Microsecond)
	undelayed := startSlow(t, s.Addr(), 0, 0)
	through := play(l.Addr(), undelayed.Addr())
	if again := differing(direct, through); len(again) > 0 && len(again) < 10 {
		t.Logf("another try, both ways, for %v", again)
		for pkg, tests := range byPackage(again) {
			run := "-run=^(" + strings.Join(tests, "|") + ")$"
			pgxTests(t, dir, url(s.Addr(), "pgx_test"), direct, run, pkg)
			pgxTests(t, dir, url(undelayed.Addr(), "pgx_test"), through, run, pkg)
		}
	}
	for _, name := range differing(direct, through) {
		t.Errorf("%s: %q, directly %q", name, through[name], direct[name])
	}
	undelayed.finish()
	if undelayed.all < 200_000 {
		t.Errorf("%d exchanges of the tests that make more than 200,000", undelayed.all)
	}
	writes := l.finish()
	for _, op := range []string{"INSERT", "UPDATE", "DELETE", "COPY", "COMMIT", "CREATE TABLE"} {
		if writes[op] == 0 {
			t.Errorf("no %s among the writes %v", op, writes)
		}
	}
	report(t, row{
		Client: "pgx's own test suite", Version: version, Server: s.Version(), Writes: writes, Exchanges: l.all,
		Does: fmt.Sprintf("its tests of %s, with 1 ms ± 0.2 ms of round trip", strings.Join(pgxPackages, " ")),
		Note: fmt.Sprintf("%d tests pass, as directly; one of them sends 100,000 statements in a pipeline", passed),
	})
}

// differing are the tests with two outcomes. Some of pgx's are of times, and on a
// busy machine they fail now and then, directly or not.
func differing(direct, through map[string]string) (names []string) {
	all := maps.Clone(direct)
	maps.Copy(all, through)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if direct[name] != through[name] {
			names = append(names, name)
		}
	}
	return names
}

// byPackage are the top-level tests of PACKAGE TEST/ROW, by package.
func byPackage(names []string) map[string][]string {
	all := map[string][]string{}
	for _, name := range names {
		pkg, test, _ := strings.Cut(name, " ")
		test, _, _ = strings.Cut(test, "/")
		if !slices.Contains(all[pkg], test) {
			all[pkg] = append(all[pkg], test)
		}
	}
	return all
}

// temporary is a directory's number, which some tests have in their names.
var temporary = regexp.MustCompile(`\d{6,}`)

// copyPgx copies the module, which go keeps read-only.
func copyPgx(t *testing.T) (version, dir string) {
	t.Helper()
	version, from := pgxModule(t)
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(path, 0o755)
	})
	if err != nil {
		t.Fatal(err)
	}
	return version, dir
}

func inPgx(t *testing.T, dir, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, []string{"GOWORK=off", "GOFLAGS="}
	return cmd
}

// pgxTests runs tests and adds pass, fail or skip by package and test.
func pgxTests(t *testing.T, dir, url string, outcomes map[string]string, args ...string) {
	t.Helper()
	cmd := inPgx(t, dir, "go", append([]string{"test", "-json", "-vet=off", "-count=1", "-timeout=30m"}, args...)...)
	cmd.Env = append(cmd.Env, "PGX_TEST_DATABASE="+url, "PGX_TEST_TCP_CONN_STRING="+url)
	o := run(t, cmd)
	said := map[string]*strings.Builder{}
	lines := bufio.NewScanner(strings.NewReader(o.Out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct{ Action, Package, Test, Output string }
		if err := json.Unmarshal(bytes.TrimSpace(lines.Bytes()), &e); err != nil {
			t.Fatalf("go test -json printed %q: %v", lines.Text(), err)
		}
		name := temporary.ReplaceAllString(e.Package+" "+e.Test, "N")
		switch e.Action {
		case "output":
			if said[name] == nil {
				said[name] = new(strings.Builder)
			}
			said[name].WriteString(e.Output)
		case "pass", "fail", "skip":
			if e.Test == "" {
				continue // the package's: its tests tell
			}
			outcomes[name] = e.Action
			if e.Action == "fail" && said[name] != nil {
				t.Logf("%s fails at %s:\n%s", name, url, said[name])
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}
