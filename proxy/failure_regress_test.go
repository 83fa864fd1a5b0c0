//go:build linux

package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// abort closes a TCP connection so that its peer is reset.
func abort(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

// A kernel tells of a reset once. Here a write to the server is told, since
// nobody reads from it while the client doesn't; the client must see a reset
// all the same, behind all that was accepted.
func TestFailure_ResetThatAWriteWasTold(t *testing.T) { eachDriver(t, resetThatAWriteWasTold) }

func resetThatAWriteWasTold(t *testing.T, on driverName) {
	gone := make(chan struct{})
	up := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		// Far more than the line's bound and all buffers take.
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		_, err := c.Write(make([]byte, 64<<20))
		if !isTimeout(err) {
			t.Errorf("the server wrote all: %v", err)
		}
		abort(c)
		close(gone)
	})
	p, l := on.start(t, LinkConfig{Protocol: wire.TCP, Upstream: up})
	c := dialLink(t, l)
	<-gone
	soon(t, "the reset is told to a write", func() bool {
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		return broken(p)
	})
	n, err := io.Copy(io.Discard, c)
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after %d bytes the client saw %v, want a reset", n, err)
	}
	if got := p.Counters().Bytes[wire.ToClient]; uint64(n) != got || n < 4<<20 {
		t.Errorf("%d bytes arrived of %d written", n, got)
	}
}

// broken reports whether a write on the only connection met a reset.
func broken(p *Proxy) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.mu.Lock()
		b := c.driver != nil && c.driver.broken()
		c.mu.Unlock()
		return b
	}
	return false
}

// A reset throws away what its kernel has not sent, so it must wait for a
// client that reads late.
func TestFailure_ResetWaitsForASlowReader(t *testing.T) { eachDriver(t, resetWaitsForASlowReader) }

func resetWaitsForASlowReader(t *testing.T, on driverName) {
	const size = 3 << 20 // less than the line's backlog and the kernels' buffers
	sent := make(chan struct{})
	up := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		_, err := c.Write(bytes.Repeat([]byte{7}, size))
		if err != nil {
			t.Error(err)
		}
		soon(t, "the proxy's kernel has it all", func() bool { return undelivered(c) == 0 })
		abort(c)
		close(sent)
	})
	p, l := on.start(t, LinkConfig{Protocol: wire.TCP, Upstream: up})
	c := dialLink(t, l)
	<-sent
	soon(t, "all is in the kernel's hands", func() bool {
		return p.Counters().Bytes[wire.ToClient] == size && p.Counters().BytesLive == 0 || p.Counters().BytesLive > 0
	})
	b, err := io.ReadAll(c)
	if len(b) != size || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%d bytes of %d, then %v; want all and a reset", len(b), size, err)
	}
	soon(t, "the connection is gone", func() bool { return p.Counters().ConnectionsOpen == 0 })
}

// lateDeadline sets its second deadline for reading, the one after a read, only
// after a stop has set its own, if it can: as a goroutine does that was held up.
type lateDeadline struct {
	*net.TCPConn
	entered, past chan struct{}
	calls         int
}

func (c *lateDeadline) SetDeadline(d time.Time) error {
	err := c.TCPConn.SetDeadline(d)
	if d.Before(time.Now()) {
		close(c.past)
	}
	return err
}

func (c *lateDeadline) SetReadDeadline(d time.Time) error {
	if c.calls++; c.calls == 2 {
		close(c.entered)
		select {
		case <-c.past:
		case <-time.After(200 * time.Millisecond):
		}
	}
	return c.TCPConn.SetReadDeadline(d)
}

// The deadline by which a stop ends all waiting must not be undone by one for
// the silence of a half-closed peer.
func TestFailure_StopIsNotUndoneByALinger(t *testing.T) {
	entered, half := make(chan struct{}), make(chan struct{})
	up := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		<-half
		_, _ = c.Write([]byte("x"))
		<-t.Context().Done() // neither closes nor speaks any more
	})
	p, err := newProxy(Config{Linger: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	dial := p.dial
	p.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &lateDeadline{TCPConn: nc.(*net.TCPConn), entered: entered, past: make(chan struct{})}, nil
	}
	if err := p.Reload([]LinkConfig{{Listen: "127.0.0.1:0", Protocol: wire.TCP, Upstream: up}}); err != nil {
		t.Fatal(err)
	}
	l := p.Links()[0]
	c := dialLink(t, l)
	_ = c.(*net.TCPConn).CloseWrite()
	soon(t, "the half-close is passed on", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for c := range p.conns {
			return c.half.Load()
		}
		return false
	})
	close(half)
	<-entered
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- p.Shutdown(ctx) }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the stop hangs")
	}
}

// A reader that stands still because the line is full must not take the silence
// that it made itself for the peer's.
func TestFailure_PausedReaderDoesNotTakeItselfForASilentPeer(t *testing.T) {
	eachDriver(t, pausedReaderDoesNotTakeItselfForASilentPeer)
}

func pausedReaderDoesNotTakeItselfForASilentPeer(t *testing.T, on driverName) {
	const size, linger = 32 << 20, 3 * time.Second // longer than a busy machine stands still
	up := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		_, _ = io.Copy(io.Discard, c) // the client's half-close
		_, _ = c.Write(make([]byte, size))
	})
	p, l := on.start(t, LinkConfig{Protocol: wire.TCP, Upstream: up}, func(c *Config) { c.Linger = linger })
	c := dialLink(t, l)
	_ = c.(*net.TCPConn).CloseWrite()
	soon(t, "the line is full", func() bool { return p.Counters().BytesLive >= 4<<20 })
	time.Sleep(linger + linger/2) // the time that must not count
	n, err := io.Copy(io.Discard, c)
	if n != size || err != nil {
		t.Errorf("%d bytes of %d, %v", n, size, err)
	}
}

// What is cut short ends by a reset: after an orderly end the client would take
// it for all there was.
func TestFailure_CutConnectionsAreReset(t *testing.T) { eachDriver(t, cutConnectionsAreReset) }

func cutConnectionsAreReset(t *testing.T, on driverName) {
	up := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		_, _ = c.Write([]byte("half"))
		_, _ = io.Copy(io.Discard, c)
	})
	p, l := on.start(t, LinkConfig{Protocol: wire.TCP, Upstream: up, Delay: inject.Settings{
		Delay: [2]inject.Delay{wire.ToClient: {Base: time.Hour}}, FreeConnect: true}})
	c := dialLink(t, l)
	soon(t, "the answer waits", func() bool { return p.Counters().BytesLive == 4 })
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = p.Shutdown(ctx)
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client saw %v, want a reset", err)
	}
}
