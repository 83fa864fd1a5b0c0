package toxiproxy

import (
	"bytes"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
)

// TestCLI runs the commands of toxiproxy-cli with their aliases and mistakes.
func TestCLI(t *testing.T) {
	t.Parallel()
	var said [2]string
	var passed [2][]exchange
	for i, k := range kinds {
		r := record(t, start(t, k.real))
		said[i] = cliCalls(t, r.addr)
		passed[i] = r.exchanges()
	}
	sameExchanges(t, passed[0], passed[1], 40)
	if said[0] != said[1] {
		t.Errorf("the commands say with toxiproxy:\n%s\nwith wirewait:\n%s", said[0], said[1])
	}
	for _, want := range []string{"Created new proxy orders", "Added upstream latency toxic 'slow'", "Removed toxic", "Deleted proxy orders"} {
		if !strings.Contains(said[0], want) {
			t.Errorf("%q is missing from what they say:\n%s", want, said[0])
		}
	}
}

func cliCalls(t *testing.T, addr string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	upstream := l.Addr().String()
	var said strings.Builder
	var n names
	for _, args := range [][]string{
		{"list"},
		{"create", "--listen", "localhost:0", "--upstream", upstream, "orders"},
		{"c", "-l", "127.0.0.1:0", "-u", upstream, "stock"},
		{"new", "-l", "127.0.0.1:0", "-u", upstream, "stock"},
		{"create", "-l", upstream, "-u", upstream, "taken"},
		{"create", "-l", "127.0.0.1", "-u", upstream, "no-port"},
		{"create", "-l", "127.0.0.1:0", "no-upstream"},
		{"create", "-l", "127.0.0.1:0", "-u", upstream},
		{"l"}, {"li"}, {"ls"},
		{"inspect", "orders"}, {"i", "nobody"}, {"ins"},
		{"toxic", "add", "-t", "latency", "-n", "slow", "-a", "latency=100", "-a", "jitter=5", "--upstream", "orders"},
		{"t", "a", "--type", "bandwidth", "--toxicity", "0.5", "-a", "rate=100", "-d", "orders"},
		{"toxic", "add", "-t", "slicer", "-n", "pieces", "-a", "average_size=64", "-a", "size_variation=32", "-a", "delay=10", "orders"},
		{"toxic", "add", "-t", "reset_peer", "-a", "timeout=2000", "--tox", "0", "orders"},
		{"toxic", "add", "-t", "latency", "-n", "slow", "orders"},
		{"toxic", "add", "-t", "nothing", "orders"},
		{"toxic", "add", "-t", "latency", "-a", "latency=0.5", "-n", "half", "orders"},
		{"toxic", "add", "-t", "latency", "-a", "latency=soon", "-n", "bad", "orders"},
		{"toxic", "add", "-t", "latency", "-u", "-d", "orders"},
		{"toxic", "add", "-t", "latency", "--toxicity", "2", "orders"},
		{"toxic", "add", "-t", "latency", "nobody"},
		{"toxic", "add", "orders"},
		{"list"}, {"inspect", "orders"},
		{"toxic", "update", "-n", "slow", "-a", "jitter=25", "--toxicity", "0.75", "orders"},
		{"t", "u", "-n", "slow", "-a", "latency=7", "orders"},
		{"toxic", "update", "-n", "nobody", "orders"},
		{"toxic", "update", "-n", "slow", "-a", "latency=soon", "orders"},
		{"inspect", "orders"},
		{"toxic", "remove", "-n", "slow", "orders"},
		{"t", "r", "-n", "slow", "orders"},
		{"toxic", "delete", "-n", "bandwidth_downstream", "orders"},
		{"t", "d", "-n", "pieces", "nobody"},
		{"toggle", "orders"}, {"list"}, {"tog", "orders"}, {"toggle", "nobody"}, {"toggle"},
		{"delete", "orders"}, {"d", "orders"}, {"list"},
	} {
		out, errs, code := cli(t, addr, args...)
		fmt.Fprintf(&said, "$ toxiproxy-cli %s\n%s%s(%d)\n", strings.Join(args, " "), out, errs, code)
	}
	return n.of(said.String())
}

// cli runs one command to its end.
func cli(t *testing.T, addr string, args ...string) (out, errs string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t, "cli"), args...)
	cmd.Env = append(cmd.Environ(), "TOXIPROXY_URL=http://"+addr, "NO_PROXY=*")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}
