package mongodb

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wirewait/wirewait/internal/interop/rig"
)

// client is a program under internal/interop/clients.
type client struct {
	name string
	dir  string // there, and in the cache of what is installed
	// command runs the program; home is an empty directory to live in.
	command func(t *testing.T, c *client, home string) []string
	without string // compressors that it can't be given here
}

var clients = []*client{
	{name: "Go driver", dir: "go-mongodb", command: goCommand},
	{name: "Node.js driver", dir: "node-mongodb", command: nodeCommand},
	{name: "mongosh", dir: "mongosh", command: mongoshCommand, without: "snappy,zstd"},
	{name: "PyMongo", dir: "pymongo", command: pythonCommand},
	{name: "Java sync driver", dir: "java-mongodb", command: javaCommand},
}

// source is a client's directory in the tree.
func (c *client) source(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "clients", c.dir))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// goDir is where the Go client was built; empty: it wasn't.
var goDir string

// buildGo builds the Go client once, for all tests.
var buildGo = sync.OnceValue(func() error {
	var err error
	if goDir, err = os.MkdirTemp("", "wirewait-go-mongodb-"); err != nil {
		return err
	}
	out, err := exec.Command("go", "build", "-o", goDir+"/", "../clients/go-mongodb").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if goDir != "" {
		os.RemoveAll(goDir)
	}
	os.Exit(code)
}

func goCommand(t *testing.T, c *client, _ string) []string {
	if err := buildGo(); err != nil {
		t.Fatal(err)
	}
	return []string{filepath.Join(goDir, c.dir)}
}

func nodeCommand(t *testing.T, c *client, home string) []string {
	// Node looks for modules beside the program.
	symlink(t, rig.Installed(t, c.dir, "node_modules"), filepath.Join(home, "node_modules"))
	symlink(t, filepath.Join(c.source(t), "main.js"), filepath.Join(home, "main.js"))
	return []string{"node", "--preserve-symlinks", "--preserve-symlinks-main", filepath.Join(home, "main.js")}
}

func symlink(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Symlink(from, to); err != nil {
		t.Fatal(err)
	}
}

func mongoshCommand(t *testing.T, c *client, _ string) []string {
	shell := rig.Installed(t, c.dir, "node_modules/mongosh/bin/mongosh.js")
	return []string{"node", shell, "--quiet", "--norc", "--nodb", "--file", filepath.Join(c.source(t), "main.js")}
}

func pythonCommand(t *testing.T, c *client, _ string) []string {
	return []string{rig.Installed(t, c.dir, "bin/python"), "-B", filepath.Join(c.source(t), "main.py")}
}

func javaCommand(t *testing.T, c *client, _ string) []string {
	jars := filepath.Join(rig.Installed(t, c.dir, "lib"), "*")
	// One JIT and the small collector: it starts faster, and runs for seconds.
	return []string{"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", jars, filepath.Join(c.source(t), "Main.java")}
}

// run runs the program to its end and returns what it printed, and its exit
// code. Standard error is shown if that isn't 0: drivers warn of this and that.
func (c *client) run(t *testing.T, args ...string) (string, int) {
	t.Helper()
	home := t.TempDir()
	argv := c.command(t, c, home)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "HOME="+home, "NO_COLOR=1")
	if c.dir == "mongosh" { // takes no arguments for its script
		cmd.Env = append(cmd.Env, "WIREWAIT_ARGS="+strings.Join(args, " "))
	} else {
		cmd.Args = append(cmd.Args, args...)
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	if err != nil {
		t.Logf("%s: %v, standard error: %s", c.name, err, errs.String())
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// version is what the program says of its driver.
func (c *client) version(t *testing.T) string {
	t.Helper()
	out, code := c.run(t, "--version")
	fields := strings.Fields(out)
	if code != 0 || len(fields) == 0 {
		t.Fatalf("%s --version: exit %d, %q", c.name, code, out)
	}
	return fields[len(fields)-1]
}

// sent reads a transcript's last line: how often the client sent which command.
func sent(t *testing.T, transcript string) map[string]int {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(transcript), "\n")
	text, ok := strings.CutPrefix(lines[len(lines)-1], "sent ")
	counts := map[string]int{}
	if err := json.Unmarshal([]byte(text), &counts); !ok || err != nil {
		t.Fatalf("the transcript does not end with what was sent: %q", lines[len(lines)-1])
	}
	return counts
}

func ferretVersion(t *testing.T) string {
	return moduleVersion(t, "github.com/FerretDB/FerretDB")
}

// moduleVersion is that of a module which these tests are built with.
func moduleVersion(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "v")
}

// secantusVersion is what its installation says.
func secantusVersion(t *testing.T) string {
	t.Helper()
	python := rig.Installed(t, "secantusdb", "bin/python")
	out, err := exec.Command(python, "-c", "from importlib.metadata import version; print(version('SecantusDB'))").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
