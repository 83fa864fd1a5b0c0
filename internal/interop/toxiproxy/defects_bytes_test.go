package toxiproxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"time"
)

// bytesDefects are of what becomes of connections.
var bytesDefects = []defect{
	{name: "half a close loses the reply", check: func(t *testing.T, s *server) error {
		c := dial(t, s.proxy(t, "p", serve(t, func(c *net.TCPConn) {
			asked, _ := io.ReadAll(c)
			_, _ = fmt.Fprintf(c, "%d bytes", len(asked))
		})))
		if _, err := io.WriteString(c, "question"); err != nil {
			t.Fatal(err)
		}
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		if got, err := io.ReadAll(c); string(got) != "8 bytes" {
			return fmt.Errorf("the reply is %q, %v", got, err)
		}
		return nil
	}},
	{name: "traffic restarts timeout", check: func(t *testing.T, s *server) error {
		var err error
		for range 3 { // this process may have stood still for long
			var gap time.Duration
			if gap, err = underTraffic(t, s, time.Second); err != nil || gap < 500*time.Millisecond {
				break
			}
		}
		return err
	}},
	{name: "reset_peer ends open connections in peace", check: func(t *testing.T, s *server) error {
		c := dial(t, s.proxy(t, "p", echo(t)))
		if err := echoes(c, "open"); err != nil {
			t.Fatal(err)
		}
		s.toxic(t, "p", `{"type":"reset_peer","attributes":{"timeout":0}}`)
		return wantEnd(c, "x", syscall.ECONNRESET)
	}},
	{name: "reset_peer resets though it isn't drawn", check: func(t *testing.T, s *server) error {
		addr := s.proxy(t, "p", serve(t, func(c *net.TCPConn) { _, _ = io.CopyN(c, c, 5) }))
		s.toxic(t, "p", `{"type":"reset_peer","toxicity":0}`)
		c := dial(t, addr)
		if err := echoes(c, "hello"); err != nil {
			return err
		}
		return wantEnd(c, "", io.EOF)
	}},
}

// underTraffic sends a byte every 20 ms through a timeout toxic, which must end
// the connection nevertheless. gap is the longest time between two.
func underTraffic(t *testing.T, s *server, timeout time.Duration) (gap time.Duration, err error) {
	t.Helper()
	name := fmt.Sprint("p", time.Now().UnixNano())
	addr := s.proxy(t, name, sink(t))
	s.toxic(t, name, fmt.Sprintf(`{"type":"timeout","stream":"upstream","attributes":{"timeout":%d}}`, timeout.Milliseconds()))
	c := dial(t, addr)
	ended := make(chan struct{})
	go func() {
		_, _ = c.Read(make([]byte, 1))
		close(ended)
	}()
	begin := time.Now()
	for last := begin; ; {
		_, _ = c.Write([]byte{'x'})
		gap, last = max(gap, time.Since(last)), time.Now()
		select {
		case <-ended:
			return gap, nil
		case <-time.After(20 * time.Millisecond):
		}
		if time.Since(begin) > s.patience() {
			return gap, fmt.Errorf("a timeout of %v hasn't come after %v", timeout, s.patience())
		}
	}
}

// wantEnd sends text and wants the connection to end so, without a byte before.
func wantEnd(c *net.TCPConn, text string, end error) error {
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(c, text); err != nil {
		return err
	}
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, end) {
		return fmt.Errorf("%d bytes and %v came, want %v", n, err, end)
	}
	return nil
}
