package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// node is one running server with its data directory.
type node struct {
	port      int
	dir       string
	socketDir string
	logPath   string
	process   *process
}

// nodeSettings are every node's. fsync stays on, as in life: the difference
// between synchronous_commit's levels is what the lab is there to show.
var nodeSettings = map[string]string{
	"listen_addresses": "127.0.0.1",
	"shared_buffers":   "16MB",
	"wal_level":        "replica",
	"max_wal_senders":  "10",
	"min_wal_size":     "4MB",
	"max_wal_size":     "64MB",
	"autovacuum":       "off",
}

// startNode starts a server on dir and waits until it accepts connections.
func (w *workspace) startNode(ctx context.Context, dir string, settings map[string]string) (*node, error) {
	conf, err := os.ReadFile(filepath.Join(dir, "postgresql.conf"))
	if err != nil {
		return nil, err
	}
	const tries = 5
	for try := 1; ; try++ {
		n, err := w.startOnce(ctx, dir, string(conf), settings)
		if err == nil {
			return n, nil
		}
		// Between our look at the port and the server's bind another process
		// may have taken it.
		if ctx.Err() != nil || try == tries || n == nil || isFree(n.port) {
			return nil, err
		}
	}
}

// startOnce returns a node together with an error if the server was started
// and has ended.
func (w *workspace) startOnce(ctx context.Context, dir, conf string, settings map[string]string) (*node, error) {
	n := &node{dir: dir, socketDir: dir, logPath: dir + ".log"}
	var err error
	if n.port, err = freePort(); err != nil {
		return nil, err
	}
	// A unix socket's address holds 103 bytes on macOS, 107 on Linux.
	if len(filepath.Join(dir, ".s.PGSQL.12345")) > 103 {
		n.socketDir = ""
	}
	own := maps.Clone(nodeSettings)
	own["port"] = strconv.Itoa(n.port)
	own["unix_socket_directories"] = n.socketDir
	maps.Copy(own, settings)
	text, err := renderSettings(own)
	if err != nil {
		return nil, err
	}
	if err := w.account.writeFile(filepath.Join(dir, "postgresql.conf"), []byte(conf+text)); err != nil {
		return nil, err
	}
	if err := w.launch(ctx, n); err != nil {
		if n.process == nil {
			return nil, err
		}
		return n, errors.Join(err, n.stop())
	}
	return n, nil
}

// launch runs the server of a node that is laid out, and waits until it accepts
// connections. What it says is added to the node's log.
func (w *workspace) launch(ctx context.Context, n *node) error {
	logFile, err := os.OpenFile(n.logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer logFile.Close()
	cmd := w.command("postgres", "-D", n.dir)
	cmd.Stdout, cmd.Stderr = logFile, logFile
	if n.process, err = spawn(cmd); err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	return n.waitReady(ctx)
}

// waitReady returns when the server says in postmaster.pid, line 8, that it
// accepts connections, which is what pg_ctl -w looks at
// (src/include/utils/pidfile.h).
func (n *node) waitReady(ctx context.Context) error {
	for {
		if lines := n.pidFile(); len(lines) >= 8 && strings.TrimSpace(lines[7]) == "ready" {
			return nil
		}
		select {
		case <-n.process.done:
			return fmt.Errorf("postgres ended at its start (%v): %s", n.process.err, n.log())
		default:
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return fmt.Errorf("wait for postgres: %w: %s", err, n.log())
		}
	}
}

func (n *node) addr() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(n.port))
}

func (n *node) pidFile() []string {
	b, err := os.ReadFile(filepath.Join(n.dir, "postmaster.pid"))
	if err != nil {
		return nil
	}
	return strings.Split(string(b), "\n")
}

func (n *node) log() string {
	b, _ := os.ReadFile(n.logPath)
	return strings.TrimSpace(string(b))
}

// stop ends the server, with more force as time goes by: SIGINT ends sessions
// and shuts down, SIGQUIT leaves at once; after SIGKILL the children notice
// that their parent is gone.
func (n *node) stop() error {
	if n.process == nil {
		return nil
	}
	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGINT, fastStop}, {syscall.SIGQUIT, immediateStop}} {
		n.process.signal(step.signal)
		if n.process.wait(step.wait) {
			return nil
		}
	}
	n.process.kill()
	if !n.process.wait(immediateStop) {
		return fmt.Errorf("postgres (pid %d) can't be killed", n.process.pid())
	}
	return nil
}

var settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

// renderSettings writes settings as lines of postgresql.conf, in order of name.
func renderSettings(settings map[string]string) (string, error) {
	var b strings.Builder
	b.WriteByte('\n')
	quote := strings.NewReplacer(`'`, `''`, `\`, `\\`)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		value := settings[name]
		if !settingName.MatchString(name) || strings.ContainsAny(value, "\n\r\x00") {
			return "", fmt.Errorf("setting %q = %q can't stand in postgresql.conf", name, value)
		}
		fmt.Fprintf(&b, "%s = '%s'\n", name, quote.Replace(value))
	}
	return b.String(), nil
}

// freePort finds a port that nobody listens on, below the range (usually from
// 32768) from which the kernel takes the ports of outgoing connections.
func freePort() (int, error) {
	const low, high = 20000, 32000
	for range 200 {
		if port := low + rand.IntN(high-low); isFree(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d", low, high)
}

func isFree(port int) bool {
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	l.Close()
	return true
}
