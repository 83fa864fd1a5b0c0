package toxiproxy

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/internal/interop/rig"
	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/internal/testenv"
)

const migration = "../../../examples/toxiproxy-migration"

// suites are those of examples/toxiproxy-migration: the tests of before, and those
// with toxics that Toxiproxy doesn't have.
var suites = []struct {
	name     string
	before   func(t *testing.T, dir string) *exec.Cmd
	protocol func(t *testing.T, dir string) *exec.Cmd
	passed   *regexp.Regexp // as often as there are tests
}{
	{"go", goSuite("^TestPlace_(Slow|Down|Cut|Reset)$"), goSuite("^TestPlace_(LostAcknowledgement|SerializationFailure|Refused)$"), regexp.MustCompile(`(?m)^--- PASS`)},
	{"node", nodeSuite("orders.test.js"), nodeSuite("protocol.test.js"), regexp.MustCompile(`(?m)^ok \d+ - [^#]*$`)},
	{"python", pythonSuite("test_orders"), pythonSuite("test_protocol"), regexp.MustCompile(`(?m) \.\.\. ok$`)},
}

// TestMigration: the suites of before pass with Toxiproxy and with wirewait, the
// others with wirewait.
func TestMigration(t *testing.T) {
	t.Parallel()
	pg, err := lab.StartPostgres(t.Context(), lab.PostgresOptions{Settings: map[string]string{"fsync": "off"}})
	if errors.Is(err, lab.ErrNoPostgres) {
		testenv.Missing(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pg.Stop() })
	real, ours := start(t, true), start(t, false)
	for _, suite := range suites {
		t.Run(suite.name, func(t *testing.T) {
			dir, err := filepath.Abs(filepath.Join(migration, suite.name))
			if err != nil {
				t.Fatal(err)
			}
			passes(t, suite.before(t, dir), pg, real, suite.passed, 4)
			passes(t, suite.before(t, dir), pg, ours, suite.passed, 4)
			passes(t, suite.protocol(t, dir), pg, ours, suite.passed, 3)
		})
	}
}

// passes runs a suite, of which so many tests must pass.
func passes(t *testing.T, cmd *exec.Cmd, pg *lab.Postgres, s *server, passed *regexp.Regexp, want int) {
	t.Helper()
	cmd.Env = append(os.Environ(), cmd.Env...)
	cmd.Env = append(cmd.Env, "DATABASE_URL="+pg.URL(pg.Addr()), "TOXIPROXY_URL=http://"+s.addr, "NO_PROXY=*", "no_proxy=*")
	out, err := cmd.CombinedOutput()
	if got := len(passed.FindAll(out, -1)); err != nil || got != want {
		t.Errorf("%s with %s: %d tests pass, want %d; %v\n%s\n%s", strings.Join(cmd.Args, " "), s, got, want, err, out, s.process.Log.String())
	}
}

func suiteCommand(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	return cmd
}

func goSuite(tests string) func(*testing.T, string) *exec.Cmd {
	return func(t *testing.T, dir string) *exec.Cmd {
		t.Helper()
		return suiteCommand(t, dir, "go", "test", "-count=1", "-v", "-run", tests, ".")
	}
}

func nodeSuite(file string) func(*testing.T, string) *exec.Cmd {
	return func(t *testing.T, dir string) *exec.Cmd {
		t.Helper()
		home := t.TempDir() // Node looks for modules beside the program
		for _, name := range []string{"orders.js", "rig.js", file} {
			symlink(t, filepath.Join(dir, name), filepath.Join(home, name))
		}
		symlink(t, rig.Installed(t, "toxiproxy-node", "node_modules"), filepath.Join(home, "node_modules"))
		return suiteCommand(t, home, "node", "--preserve-symlinks", "--preserve-symlinks-main", "--test-reporter=tap", "--test-concurrency=1", filepath.Join(home, file))
	}
}

func pythonSuite(module string) func(*testing.T, string) *exec.Cmd {
	return func(t *testing.T, dir string) *exec.Cmd {
		t.Helper()
		return suiteCommand(t, dir, rig.Installed(t, "toxiproxy-python", "bin/python"), "-B", "-m", "unittest", "-v", module)
	}
}
