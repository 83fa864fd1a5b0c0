package toxiproxy

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/internal/interop/rig"
)

// programs of internal/interop/clients make every call of their client. They
// print a line for each, and "done" at the end.
func TestNodeClient(t *testing.T) {
	modules := rig.Installed(t, "toxiproxy-node", "node_modules")
	home := t.TempDir()
	// Node looks for modules beside the program.
	for from, to := range map[string]string{modules: "node_modules", clientSource(t, "toxiproxy-node/main.js"): "main.js"} {
		symlink(t, from, filepath.Join(home, to))
	}
	sameClient(t, 20, "node", "--preserve-symlinks", "--preserve-symlinks-main", filepath.Join(home, "main.js"))
}

func TestPythonClient(t *testing.T) {
	sameClient(t, 20, rig.Installed(t, "toxiproxy-python", "bin/python"), "-B", clientSource(t, "toxiproxy-python/main.py"))
}

func TestJavaClient(t *testing.T) {
	jars := filepath.Join(rig.Installed(t, "toxiproxy-java", "lib"), "*")
	// One JIT and the small collector: it starts faster, and runs for seconds.
	sameClient(t, 40, "java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", jars, clientSource(t, "toxiproxy-java/Main.java"))
}

func symlink(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Symlink(from, to); err != nil {
		t.Fatal(err)
	}
}

func clientSource(t *testing.T, path string) string {
	t.Helper()
	p, err := filepath.Abs(filepath.Join("..", "clients", path))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sameClient runs a program against both servers, with HOST PORT UPSTREAM as its
// arguments.
func sameClient(t *testing.T, atLeast int, command ...string) {
	t.Helper()
	t.Parallel()
	var said [2]string
	var passed [2][]exchange
	for i, k := range kinds {
		r := record(t, start(t, k.real))
		said[i] = runClient(t, r.addr, command)
		passed[i] = r.exchanges()
	}
	sameExchanges(t, passed[0], passed[1], atLeast)
	if said[0] != said[1] {
		t.Errorf("it says with toxiproxy:\n%s\nwith wirewait:\n%s", said[0], said[1])
	}
}

func runClient(t *testing.T, addr string, command []string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	host, port, _ := strings.Cut(addr, ":")
	cmd := exec.CommandContext(ctx, command[0], append(command[1:], host, port, sink(t))...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "NO_PROXY=*", "no_proxy=*")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || !strings.HasSuffix(string(out), "\ndone\n") {
		t.Fatalf("%s: %v\n%s\n%s", command[0], err, out, stderr.String())
	}
	var n names
	return n.of(string(out))
}
