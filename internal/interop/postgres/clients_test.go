package postgres

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wirewait/wirewait/internal/interop/rig"
	"github.com/wirewait/wirewait/internal/testenv"
)

const clients = "../clients"

// run runs a command to its end, untouched by the caller's PG* variables.
func run(t *testing.T, cmd *exec.Cmd) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	env := cmd.Env
	cmd.Env = nil
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PG") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(append(cmd.Env, "LC_ALL=C.UTF-8"), env...)
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	return outcome{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// must is run for what cannot fail; it returns the output.
func must(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	o := run(t, cmd)
	if o.Code != 0 {
		t.Fatalf("%v: exit code %d\n%s\n%s", cmd.Args, o.Code, tail(o.Out), tail(o.Err))
	}
	return o.Out
}

// program is a client that is a program in a language of its own: it takes a
// connection string, or --version.
type program func(t *testing.T, args ...string) *exec.Cmd

func (p program) version(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(must(t, p(t, "--version")))
}

// scenario runs the program against a database, with more arguments.
func (p program) scenario(more ...string) func(t *testing.T, addr, db string) outcome {
	return func(t *testing.T, addr, db string) outcome {
		t.Helper()
		return run(t, p(t, append([]string{url(addr, db)}, more...)...))
	}
}

func python(name string) program {
	return func(t *testing.T, args ...string) *exec.Cmd {
		t.Helper()
		return exec.CommandContext(t.Context(), rig.Installed(t, name, "bin/python"),
			append([]string{filepath.Join(clients, name, "main.py")}, args...)...)
	}
}

func nodePostgres(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), onPath(t, "node", "nodejs"),
		append([]string{filepath.Join(clients, "node-postgres", "main.js")}, args...)...)
	cmd.Env = []string{"NODE_PATH=" + rig.Installed(t, "node-postgres", "node_modules"), "NODE_NO_WARNINGS=1"}
	return cmd
}

// buildJDBC compiles the Java program.
func buildJDBC(t *testing.T) program {
	t.Helper()
	const pkg = "openjdk-17-jdk-headless"
	javac, java := onPath(t, "javac", pkg), onPath(t, "java", pkg)
	dir, jars := t.TempDir(), filepath.Join(rig.Installed(t, "jdbc", "lib"), "*")
	quick := []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"} // short runs
	must(t, exec.Command(javac, "-J"+quick[0], "-J"+quick[1], "-cp", jars, "-d", dir, filepath.Join(clients, "jdbc", "Main.java")))
	return func(t *testing.T, args ...string) *exec.Cmd {
		t.Helper()
		args = append(append(quick[:2:2], "-cp", dir+":"+jars, "Main"), args...)
		return exec.CommandContext(t.Context(), java, args...)
	}
}

// buildLibpq compiles the C program against the machine's libpq.
func buildLibpq(t *testing.T) program {
	t.Helper()
	gcc, config := onPath(t, "gcc", "gcc"), onPath(t, "pg_config", "libpq-dev")
	include := strings.TrimSpace(must(t, exec.Command(config, "--includedir")))
	if _, err := os.Stat(filepath.Join(include, "libpq-fe.h")); err != nil {
		testenv.Missing(t, "no libpq-fe.h here: apt-get install libpq-dev")
	}
	exe := filepath.Join(t.TempDir(), "libpq-pipeline")
	must(t, exec.Command(gcc, "-Wall", "-Werror", filepath.Join(clients, "libpq-pipeline", "main.c"),
		"-I"+include, "-L"+strings.TrimSpace(must(t, exec.Command(config, "--libdir"))), "-lpq", "-o", exe))
	return func(t *testing.T, args ...string) *exec.Cmd { return exec.CommandContext(t.Context(), exe, args...) }
}

// onPath finds a program, or says which package of Debian's has it.
func onPath(t *testing.T, name, pkg string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		testenv.Missing(t, "no "+name+" here: apt-get install "+pkg)
	}
	return path
}
