package toxiproxy

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wirewait/wirewait/internal/interop/rig"
)

// both runs a check on each kind of server, to hold what it returns against each
// other.
func both(t *testing.T, check func(t *testing.T, real bool) string) {
	t.Helper()
	if real, ours := check(t, true), check(t, false); real != ours {
		t.Errorf("with toxiproxy:\n%s\nwith wirewait:\n%s", real, ours)
	}
}

func TestCommand_Version(t *testing.T) {
	number := regexp.MustCompile(`version \S+\n$`)
	for _, flag := range []string{"-version", "--version"} {
		both(t, func(t *testing.T, real bool) string {
			out, err := command(t, real, flag).Output()
			if err != nil || !number.Match(out) {
				t.Errorf("%s: %q, %v", flag, out, err)
			}
			return number.ReplaceAllString(string(out), "<version>")
		})
	}
}

func TestCommand_UnknownFlag(t *testing.T) {
	both(t, func(t *testing.T, real bool) string {
		err := command(t, real, "-nonsense").Run()
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			t.Fatalf("%v", err)
		}
		return exit.ProcessState.String()
	})
}

// TestCommand_Signals: each ends it well, whatever is open.
func TestCommand_Signals(t *testing.T) {
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		for _, k := range kinds {
			host, port, _ := net.SplitHostPort(rig.FreeAddr(t))
			// two dashes, and values behind a space
			cmd := command(t, k.real, "--host", host, "--port", port)
			s := &server{real: k.real, addr: net.JoinHostPort(host, port)}
			s.run(t, cmd)
			if err := echoes(dial(t, s.proxy(t, "p", echo(t))), "open"); err != nil {
				t.Error(err)
			}
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if !s.dead(time.Minute) {
				t.Fatalf("%s: %v doesn't end it", k.name, signal)
			}
			if code := cmd.ProcessState.ExitCode(); code != 0 {
				t.Errorf("%s: %v ends it with %d:\n%s", k.name, signal, code, s.process.Log.String())
			}
		}
	}
}

// TestCommand_File: as Testcontainers starts it.
func TestCommand_File(t *testing.T) {
	both(t, func(t *testing.T, real bool) string {
		file := filepath.Join(t.TempDir(), "tc-toxiproxy.json")
		upstream := echo(t)
		config := `[{"name":"orders","listen":"127.0.0.1:0","upstream":"` + upstream + `"},
			{"name":"off","listen":"0.0.0.0:8667","upstream":"` + upstream + `","enabled":false}]`
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		var n names
		n.of(upstream)
		return n.of(start(t, real, "-host=0.0.0.0", "-config="+file).do(t, "GET", "/proxies", ""))
	})
}

// TestCommand_LogLevel: a level that there isn't is no reason not to start.
func TestCommand_LogLevel(t *testing.T) {
	for _, level := range []string{"error", "trace", "disabled", "nonsense", ""} {
		t.Setenv("LOG_LEVEL", level)
		for _, k := range kinds {
			start(t, k.real).do(t, "GET", "/version", "")
		}
	}
}

// TestCommand_Metrics: the names and labels are the same once a connection ended.
func TestCommand_Metrics(t *testing.T) {
	value := regexp.MustCompile(` [0-9.e+]+$`)
	both(t, func(t *testing.T, real bool) string {
		s := start(t, real, "-proxy-metrics")
		upstream := echo(t)
		addr := s.proxy(t, "p", upstream)
		c := dial(t, addr)
		if err := echoes(c, "twelve bytes"); err != nil {
			t.Error(err)
		}
		_ = c.CloseWrite()
		_, _ = io.Copy(io.Discard, c)
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			got := s.do(t, "GET", "/metrics", "")
			if missingMetric(got, addr) != "" {
				if time.Now().After(deadline) {
					t.Fatalf("%s is missing from\n%s", missingMetric(got, addr), got)
				}
				continue
			}
			var lines []string
			for line := range strings.Lines(got) {
				if strings.HasPrefix(line, "toxiproxy_") || strings.HasPrefix(line, "# TYPE toxiproxy_") {
					lines = append(lines, value.ReplaceAllString(strings.TrimSpace(line), ""))
				}
			}
			slices.Sort(lines)
			var n names
			n.of(addr + " " + upstream)
			return n.of(strings.Join(lines, "\n"))
		}
	})
}

func TestCommand_RuntimeMetrics(t *testing.T) {
	for _, k := range kinds {
		got := start(t, k.real, "-runtime-metrics").do(t, "GET", "/metrics", "")
		for _, name := range []string{"go_info{", "go_goroutines ", "go_build_info{", "process_cpu_seconds_total "} {
			if !strings.Contains(got, "\n"+name) {
				t.Errorf("%s: no %s in\n%s", k.name, name, got)
			}
		}
	}
}
