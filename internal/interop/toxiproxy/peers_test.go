package toxiproxy

import (
	"io"
	"net"
	"testing"
)

// serve listens until the test ends and handles each connection, which is closed
// after it.
func serve(t *testing.T, handle func(*net.TCPConn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				handle(c.(*net.TCPConn))
			}()
		}
	}()
	return l.Addr().String()
}

// sink accepts, reads and says nothing.
func sink(t *testing.T) string {
	t.Helper()
	return serve(t, func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) })
}

// echo sends back what it reads, and ends when its client does.
func echo(t *testing.T) string {
	t.Helper()
	return serve(t, func(c *net.TCPConn) { _, _ = io.Copy(c, c) })
}

func dial(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}
