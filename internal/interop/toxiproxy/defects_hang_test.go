package toxiproxy

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hangingDefects are of calls that wait for connections.
var hangingDefects = []defect{
	{name: "a client that doesn't read holds up the API", check: func(t *testing.T, s *server) error {
		full := make(chan struct{})
		addr := s.proxy(t, "p", serve(t, func(c *net.TCPConn) { fill(c, full) }))
		s.toxic(t, "p", `{"name":"t","type":"latency","attributes":{"latency":1}}`)
		dial(t, addr)
		<-full
		return answers(s, "DELETE /proxies/p/toxics/t", "GET /proxies", "DELETE /proxies/p")
	}},
	{name: "an upstream that doesn't answer holds up the API", check: func(t *testing.T, s *server) error {
		upstream := unreachable(t)
		dial(t, s.proxy(t, "p", upstream))
		for deadline := time.Now().Add(time.Minute); !connecting(t, upstream); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("nobody dials the upstream")
			}
		}
		return answers(s, "DELETE /proxies/p", "GET /proxies")
	}},
	{name: "a reset to come holds up the API", check: func(t *testing.T, s *server) error {
		addr := s.proxy(t, "p", echo(t))
		for range 3 { // the toxic may not have had the byte when it's removed
			s.toxic(t, "p", `{"name":"t","type":"reset_peer","attributes":{"timeout":6000}}`)
			c := dial(t, addr)
			if _, err := c.Write([]byte{'x'}); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			s.do(t, "DELETE", "/proxies/p/toxics/t", "")
			if took := time.Since(began); took > 4*time.Second {
				return fmt.Errorf("it took %v to remove a reset_peer of 6 s", took)
			}
		}
		return nil
	}},
}

// answers wants each call to come back in time.
func answers(s *server, calls ...string) error {
	hurried := &http.Client{Timeout: s.patience(), Transport: web.Transport}
	for _, call := range calls {
		method, path, _ := strings.Cut(call, " ")
		if code, _, err := s.tryWith(hurried, method, path, ""); err != nil || code >= 300 {
			return fmt.Errorf("%s: %d, %w", call, code, err)
		}
	}
	return nil
}

// fill writes until nobody has read for a second.
func fill(c *net.TCPConn, full chan struct{}) {
	chunk := make([]byte, 1<<16)
	for {
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		if _, err := c.Write(chunk); err != nil {
			break
		}
	}
	close(full)
	_, _ = io.Copy(io.Discard, c)
}

// unreachable is an address to which connecting takes for ever: of a socket that
// nobody accepts from, whose queue is full.
func unreachable(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	for range 16 {
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			return addr
		}
		t.Cleanup(func() { c.Close() })
	}
	t.Fatal("the queue of a socket that nobody accepts from doesn't fill")
	return ""
}

// connecting reports whether somebody is, to an address. proc_pid_net(5), tcp.
func connecting(t *testing.T, addr string) bool {
	t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	to, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	const synSent = "02"
	return bytes.Contains(table, fmt.Appendf(nil, " 0100007F:%04X %s ", to.Port, synSent))
}
