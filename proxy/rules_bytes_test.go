//go:build unix

package proxy_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/wire"
)

// echoServer sends back what it gets, and says how each connection ended.
func echoServer(t *testing.T) (addr string, ends chan error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	ends = make(chan error, 16)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				_, err := io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c})
				c.Close()
				ends <- err
			}()
		}
	}()
	return ln.Addr().String(), ends
}

// bytesRig is an echo behind a link that knows no protocol, with one rule.
func bytesRig(t *testing.T, driver string, e inject.Effect, w inject.With, ways inject.Ways) (*ruledRig, net.Conn, chan error) {
	t.Helper()
	addr, ends := echoServer(t)
	r := newRuledRig(t, driver, proxy.LinkConfig{Upstream: addr, Protocol: wire.TCP},
		inject.Rule{Name: "r", Effect: e, With: w, When: inject.When{Direction: ways}})
	c, err := net.Dial("tcp", r.addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return r, c, ends
}

func send(t *testing.T, c net.Conn, b string) {
	t.Helper()
	if _, err := io.WriteString(c, b); err != nil {
		t.Fatal(err)
	}
}

func wantEcho(t *testing.T, c net.Conn, want string) {
	t.Helper()
	b := make([]byte, len(want))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != want {
		t.Fatalf("%q, %v; want %q", b, err, want)
	}
}

func TestRules_BytesResetPeer(t *testing.T) {
	onDrivers(t, func(t *testing.T, driver string) {
		const after = 50 * time.Millisecond
		began := time.Now() // the time counts from the connection's beginning on
		r, c, ends := bytesRig(t, driver, inject.EffectResetPeer, inject.With{After: after}, inject.BothWays)
		send(t, c, "hello")
		_, err := c.Read(make([]byte, 1))
		if !errors.Is(err, syscall.ECONNRESET) || time.Since(began) < after {
			t.Errorf("after %v the client got %v, want a reset after %v", time.Since(began), err, after)
		}
		if err := <-ends; !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the server got %v, want a reset", err)
		}
		r.wantHits("r", 1)
	})
}

func TestRules_BytesTimeout(t *testing.T) {
	onDrivers(t, func(t *testing.T, driver string) {
		const after = 60 * time.Millisecond
		began := time.Now() // the time counts from the connection's beginning on
		_, c, ends := bytesRig(t, driver, inject.EffectTimeout, inject.With{After: after}, inject.OnlyToClient)
		stop := make(chan struct{})
		go func() { // steady traffic puts the end off no longer
			for {
				select {
				case <-stop:
					return
				case <-time.After(5 * time.Millisecond):
					_, _ = io.WriteString(c, "hello")
				}
			}
		}()
		n, err := c.Read(make([]byte, 1))
		close(stop)
		if n != 0 || err == nil || time.Since(began) < after {
			t.Errorf("after %v the client got %d bytes, %v; want the end after %v", time.Since(began), n, err, after)
		}
		<-ends
	})
}

func TestRules_BytesLimitData(t *testing.T) {
	onDrivers(t, func(t *testing.T, driver string) {
		_, c, ends := bytesRig(t, driver, inject.EffectLimitData, inject.With{Bytes: 8}, inject.OnlyToClient)
		send(t, c, "hello")
		wantEcho(t, c, "hello")
		send(t, c, "hello")
		wantEcho(t, c, "hel")
		if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("%d bytes more, %v", n, err)
		}
		<-ends
	})
}

func TestRules_BytesSlicerAndLatency(t *testing.T) {
	onDrivers(t, func(t *testing.T, driver string) {
		const gap = 2 * time.Millisecond
		_, c, _ := bytesRig(t, driver, inject.EffectSlicer, inject.With{Size: 10, Variation: 3, Delay: gap}, inject.OnlyToServer)
		began := time.Now()
		sent := string(bytes.Repeat([]byte("0123456789"), 20))
		send(t, c, sent)
		wantEcho(t, c, sent)
		if took, least := time.Since(began), 14*gap; took < least { // 200 bytes in at least 15 slices
			t.Errorf("it took %v, want %v at least", took, least)
		}
	})
}

func TestRules_BytesSlowClose(t *testing.T) {
	onDrivers(t, func(t *testing.T, driver string) {
		const late = 80 * time.Millisecond
		_, c, ends := bytesRig(t, driver, inject.EffectSlowClose, inject.With{Delay: late}, inject.OnlyToServer)
		send(t, c, "hello")
		wantEcho(t, c, "hello")
		began := time.Now()
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if err := <-ends; err != nil || time.Since(began) < late {
			t.Errorf("after %v the server saw the end, %v; want it after %v", time.Since(began), err, late)
		}
		if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("the client got %d bytes, %v", n, err)
		}
	})
}

// A rule that comes and goes is felt by connections that exist.
func TestRules_BytesHoldComesAndGoes(t *testing.T) {
	onDrivers(t, func(t *testing.T, driver string) {
		r, c, _ := bytesRig(t, driver, inject.EffectLatency, inject.With{Delay: time.Microsecond}, inject.BothWays)
		hold := []inject.Rule{{Name: "hold", Effect: inject.EffectHold}}
		for range 20 {
			send(t, c, "a")
			wantEcho(t, c, "a")
			if err := r.SetRules(hold); err != nil {
				t.Fatal(err)
			}
			send(t, c, "b")
			_ = c.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
			if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("through the partition came %d bytes, %v", n, err)
			}
			_ = c.SetReadDeadline(time.Now().Add(time.Minute))
			if err := r.SetRules(nil); err != nil {
				t.Fatal(err)
			}
			wantEcho(t, c, "b")
		}
	})
}
