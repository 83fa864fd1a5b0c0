//go:build unix

package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/wirewait/wirewait/wire"
)

// childVariable makes the test binary a proxy with few descriptors.
const childVariable = "WIREWAIT_TEST_FEW_FILES"

func child() {
	limit := syscall.Rlimit{Cur: 24, Max: 24}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		fmt.Println("error", err)
		return
	}
	var log logBuffer
	p, err := Start(context.Background(), Config{Log: log.logger(), Links: []LinkConfig{
		{Listen: "127.0.0.1:0", Upstream: os.Getenv(childVariable), Protocol: wire.TCP}}})
	if err != nil {
		fmt.Println("error", err)
		return
	}
	fmt.Println(p.Links()[0].Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
	fmt.Println("accept failures:", p.Counters().AcceptFailures > 0 || p.Counters().DialFailures > 0,
		"said:", log.count("cannot accept")+log.count("cannot reach the upstream"))
	_ = p.Shutdown(context.Background())
}

func TestProxy_OutOfDescriptorsAndBack(t *testing.T) {
	up := server(t, "tcp", "127.0.0.1:0", echo)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+up)
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	line, _ := r.ReadString('\n')
	addr := strings.TrimSpace(line)

	roundTrip := func(c net.Conn) bool {
		if _, err := c.Write([]byte("x")); err != nil {
			return false
		}
		_, err := io.ReadFull(c, make([]byte, 1))
		return err == nil
	}
	first, err := net.Dial("tcp", addr)
	if err != nil || !roundTrip(first) {
		t.Fatalf("first connection: %v", err)
	}
	var held []net.Conn
	for range 40 { // far more than it has descriptors for
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
	}
	if !roundTrip(first) {
		t.Error("a connection that was there suffered")
	}
	for _, c := range held {
		c.Close()
	}
	soon(t, "new connections work again", func() bool {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		defer c.Close()
		return roundTrip(c)
	})
	first.Close()
	in.Close()
	if line, _ = r.ReadString('\n'); !strings.HasPrefix(line, "accept failures: true said: ") || strings.HasSuffix(line, " 0\n") {
		t.Errorf("the child says %q", line)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
