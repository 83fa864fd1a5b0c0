package toxiproxy

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wirewait/wirewait/internal/interop/rig"
	"github.com/wirewait/wirewait/internal/testenv"
)

// programs is where what the tests run was built; empty: nothing was.
var programs string

func TestMain(m *testing.M) {
	code := m.Run()
	if programs != "" {
		os.RemoveAll(programs)
	}
	os.Exit(code)
}

// build builds Toxiproxy's server and command line, and wirewait, once for all
// tests.
var build = sync.OnceValue(func() error {
	var err error
	if programs, err = os.MkdirTemp("", "wirewait-toxiproxy-"); err != nil {
		return err
	}
	ours := []string{"build", "-C", "../../..", "-o", programs + "/"}
	if testenv.Race {
		ours = append(ours, "-race")
	}
	for _, args := range [][]string{
		{"build", "-o", programs + "/", "github.com/Shopify/toxiproxy/v2/cmd/server", "github.com/Shopify/toxiproxy/v2/cmd/cli"},
		append(ours, "./cmd/wirewait"),
	} {
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("go %v: %w: %s", args, err, out)
		}
	}
	return nil
})

func program(t *testing.T, name string) string {
	t.Helper()
	if err := build(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(programs, name)
}

// server is a running one of the two kinds.
type server struct {
	real    bool // Toxiproxy's
	addr    string
	process *rig.Process
}

// patience is how long to wait for what is to come: with Toxiproxy until it's
// clear that it doesn't.
func (s *server) patience() time.Duration {
	if s.real {
		return 3 * time.Second
	}
	return 20 * time.Second
}

// kinds are the two, for tests that run on both.
var kinds = []struct {
	name string
	real bool
}{{"toxiproxy", true}, {"wirewait", false}}

// start starts a server with further flags and waits until it answers.
func start(t *testing.T, real bool, flags ...string) *server {
	t.Helper()
	s := &server{real: real, addr: rig.FreeAddr(t)}
	host, port, _ := net.SplitHostPort(s.addr)
	s.run(t, command(t, real, append([]string{"-host", host, "-port", port}, flags...)...))
	return s
}

// run starts a server's process and waits until it answers. It ends with the test.
func (s *server) run(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	s.process = rig.StartProcess(t, cmd)
	if s.real { // one that hangs takes half a minute to stop
		t.Cleanup(func() { _ = cmd.Process.Kill() })
	} else {
		t.Cleanup(func() { s.stopsWell(t, cmd) })
	}
	ready := func() bool {
		code, _, err := s.try(http.MethodGet, "/version", "")
		return err == nil && code == http.StatusOK
	}
	if !s.process.Until(ready) {
		t.Fatalf("no answer from %s:\n%s", s, s.process.Log.String())
	}
}

// stopsWell wants an interrupt to end it, without an error, a panic or a race.
func (s *server) stopsWell(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	s.process.Stop()
	log := s.process.Log.String()
	if code := cmd.ProcessState.ExitCode(); code != 0 || strings.Contains(log, "DATA RACE") || strings.Contains(log, "panic:") {
		t.Errorf("%s ended with %d:\n%s", s, code, log)
	}
}

func command(t *testing.T, real bool, flags ...string) *exec.Cmd {
	t.Helper()
	if real {
		return exec.Command(program(t, "server"), flags...)
	}
	return exec.Command(program(t, "wirewait"), append([]string{"toxiproxy"}, flags...)...)
}

func (s *server) String() string {
	if s.real {
		return "toxiproxy"
	}
	return "wirewait"
}

// dead waits for the server's end for as long as it may take a crash.
func (s *server) dead(patience time.Duration) bool {
	select {
	case <-s.process.Ended:
		return true
	case <-time.After(patience):
		return false
	}
}
