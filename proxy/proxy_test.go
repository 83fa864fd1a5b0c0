//go:build unix

package proxy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// transports are the kinds of sockets, as [listen, upstream network, address].
func transports(t *testing.T) map[string][3]string {
	dir := t.TempDir()
	m := map[string][3]string{
		"ipv4": {"127.0.0.1:0", "tcp", "127.0.0.1:0"},
		"unix": {"unix:" + filepath.Join(dir, "l"), "unix", filepath.Join(dir, "u")},
	}
	if ln, err := net.Listen("tcp", "[::1]:0"); err == nil {
		ln.Close()
		m["ipv6"] = [3]string{"[::1]:0", "tcp", "[::1]:0"}
	}
	return m
}

func TestProxy_CarriesEveryByteBothWaysAndHalfCloses(t *testing.T) {
	eachDriver(t, carriesEveryByteBothWaysAndHalfCloses)
}

func carriesEveryByteBothWaysAndHalfCloses(t *testing.T, on driverName) {
	for name, tr := range transports(t) {
		for delay, set := range map[string]inject.Settings{"undelayed": {}, "delayed": inject.Symmetric(8*time.Millisecond, 4*time.Millisecond)} {
			t.Run(name+"/"+delay, func(t *testing.T) {
				tr := tr
				if tr[1] == "unix" {
					tr[0] += delay
					tr[2] += delay
				}
				// The server answers only after the client has ended its side: a
				// proxy that closes both sides on one EOF loses the answer.
				up := server(t, tr[1], tr[2], func(c net.Conn) {
					h := sha256.New()
					n, _ := io.Copy(h, c)
					_, _ = c.Write(h.Sum(nil))
					_, _ = io.CopyN(c, rand.NewChaCha8([32]byte{2}), n)
				})
				_, l := on.start(t, LinkConfig{Listen: tr[0], Protocol: wire.TCP, Upstream: up, Delay: set})
				c := dialLink(t, l)
				const size = 9<<20 + 17
				sent := sha256.New()
				go func() {
					_, _ = io.CopyN(io.MultiWriter(c, sent), rand.NewChaCha8([32]byte{1}), size)
					_ = c.(interface{ CloseWrite() error }).CloseWrite()
				}()
				answer, err := io.ReadAll(c)
				if err != nil {
					t.Fatal(err)
				}
				want := make([]byte, size)
				_, _ = io.ReadFull(rand.NewChaCha8([32]byte{2}), want)
				if !bytes.Equal(answer[:32], sent.Sum(nil)) {
					t.Error("the server got other bytes")
				}
				if !bytes.Equal(answer[32:], want) {
					t.Errorf("the client got other bytes: %d of them", len(answer)-32)
				}
			})
		}
	}
}

func TestProxy_ServerEndsFirst(t *testing.T) { eachDriver(t, serverEndsFirst) }

func serverEndsFirst(t *testing.T, on driverName) {
	got := make(chan string, 1)
	up := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		_, _ = c.Write([]byte("hello"))
		_ = c.(*net.TCPConn).CloseWrite()
		b, _ := io.ReadAll(c)
		got <- string(b)
	})
	_, l := on.start(t, LinkConfig{Protocol: wire.TCP, Upstream: up, Delay: rtt(2 * time.Millisecond)})
	c := dialLink(t, l)
	if b, err := io.ReadAll(c); string(b) != "hello" || err != nil {
		t.Fatalf("%q %v", b, err)
	}
	_, _ = c.Write([]byte("still here"))
	_ = c.(*net.TCPConn).CloseWrite()
	if s := <-got; s != "still here" {
		t.Fatalf("%q", s)
	}
}

func TestProxy_DelaysNoLessThanAsked(t *testing.T) { eachDriver(t, delaysNoLessThanAsked) }

func delaysNoLessThanAsked(t *testing.T, on driverName) {
	up := server(t, "tcp", "127.0.0.1:0", echo)
	_, l := on.start(t, LinkConfig{Protocol: wire.TCP, Upstream: up, Delay: rtt(30 * time.Millisecond)})
	began := time.Now()
	c := dialLink(t, l)
	for i, want := range []time.Duration{60 * time.Millisecond, 30 * time.Millisecond} { // with and without connecting
		_, _ = c.Write([]byte("x"))
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d < want {
			t.Fatalf("round trip %d took %v, want at least %v", i, d, want)
		}
		began = time.Now()
	}
	l.SetDelay(rtt(100 * time.Millisecond))
	_, _ = c.Write([]byte("x"))
	_, _ = io.ReadFull(c, make([]byte, 1))
	if d := time.Since(began); d < 100*time.Millisecond {
		t.Fatalf("after a change the round trip took %v", d)
	}
}

func TestProxy_PassesResetsOnBehindTheBytesBeforeThem(t *testing.T) {
	eachDriver(t, passesResetsOnBehindTheBytesBeforeThem)
}

func passesResetsOnBehindTheBytesBeforeThem(t *testing.T, on driverName) {
	reset := func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); c.Close() }
	t.Run("of the server", func(t *testing.T) {
		up := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
			_, _ = io.ReadFull(c, make([]byte, 1))
			_, _ = c.Write([]byte("last words"))
			time.Sleep(20 * time.Millisecond) // else the kernel drops what it has not sent
			reset(c)
		})
		_, l := on.start(t, LinkConfig{Protocol: wire.TCP, Upstream: up, Delay: rtt(4 * time.Millisecond)})
		c := dialLink(t, l)
		_, _ = c.Write([]byte("x"))
		b, err := io.ReadAll(c)
		if !errors.Is(err, syscall.ECONNRESET) || string(b) != "last words" {
			t.Fatalf("%q, %v; want the words and then a reset", b, err)
		}
	})
	t.Run("of the client", func(t *testing.T) {
		seen := make(chan error, 1)
		up := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
			_, err := io.ReadAll(c)
			seen <- err
		})
		p, l := on.start(t, LinkConfig{Protocol: wire.TCP, Upstream: up})
		c := dialLink(t, l)
		_, _ = c.Write([]byte("x"))
		soon(t, "the byte arrives", func() bool { return p.Counters().Bytes[wire.ToServer] == 1 })
		reset(c)
		if err := <-seen; !errors.Is(err, syscall.ECONNRESET) {
			t.Fatalf("the server saw %v, want a reset", err)
		}
		soon(t, "the connection is gone", func() bool { return p.Counters().ConnectionsOpen == 0 })
	})
}

func TestProxy_LastWordsSurviveUnreadRequests(t *testing.T) {
	eachDriver(t, lastWordsSurviveUnreadRequests)
}

func lastWordsSurviveUnreadRequests(t *testing.T, on driverName) {
	// The server says its last words and closes although the client goes on
	// sending: without a drain the kernel's reset would destroy them.
	up := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		_, _ = io.ReadFull(c, make([]byte, 10))
		_, _ = c.Write([]byte("FATAL: no"))
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, c)
	})
	_, l := on.start(t, LinkConfig{Protocol: wire.TCP, Upstream: up})
	for range 20 {
		c := dialLink(t, l)
		_, _ = c.Write(make([]byte, 100<<10))
		b, err := io.ReadAll(c)
		if string(b) != "FATAL: no" || err != nil {
			t.Fatalf("%q, %v", b, err)
		}
		c.Close()
	}
}

func TestProxy_RefusedUpstreamIsAResetACounterAndOneLine(t *testing.T) {
	eachDriver(t, refusedUpstreamIsAResetACounterAndOneLine)
}

func refusedUpstreamIsAResetACounterAndOneLine(t *testing.T, on driverName) {
	ln, _ := net.Listen("tcp", "127.0.0.1:0")
	dead := ln.Addr().String()
	ln.Close()
	var log logBuffer
	p, l := on.start(t, LinkConfig{Protocol: wire.TCP, Upstream: dead}, func(c *Config) { c.Log = log.logger() })
	for range 3 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err == nil { // else the reset came before the dial looked
			_, err = c.Read(make([]byte, 1))
			c.Close()
		}
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Fatalf("the client saw %v, want a reset", err)
		}
	}
	soon(t, "three dial failures are counted", func() bool { return p.Counters().DialFailures == 3 })
	soon(t, "one line is logged", func() bool { return log.count("cannot reach the upstream") == 1 })
}

func TestProxy_UpstreamThatHangsHoldsNobody(t *testing.T) {
	eachDriver(t, upstreamThatHangsHoldsNobody)
}

func upstreamThatHangsHoldsNobody(t *testing.T, on driverName) {
	up := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		_, _ = io.Copy(io.Discard, c) // accepts and never answers
	})
	p, l := on.start(t, LinkConfig{Protocol: wire.TCP, Upstream: up})
	c := dialLink(t, l)
	_, _ = c.Write([]byte("anyone?"))
	soon(t, "forwarded", func() bool { return p.Counters().Bytes[wire.ToServer] == 7 })
	c.Close()
	soon(t, "both sockets closed", func() bool { return p.Counters().ConnectionsOpen == 0 })
}

func TestProxy_PeerThatNeverReadsIsBounded(t *testing.T) { eachDriver(t, peerThatNeverReadsIsBounded) }

func peerThatNeverReadsIsBounded(t *testing.T, on driverName) {
	release := make(chan struct{})
	var got bytes.Buffer
	done := make(chan struct{})
	up := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		_ = c.(*net.TCPConn).SetReadBuffer(64 << 10)
		<-release
		_, _ = io.Copy(&got, c)
		close(done)
	})
	const limit = 3 << 20
	p, l := on.start(t, LinkConfig{Protocol: wire.TCP, Upstream: up, Delay: rtt(2 * time.Millisecond)}, func(c *Config) { c.LineLimit = limit })
	c := dialLink(t, l)
	const size = 64 << 20
	sent := make(chan error, 1)
	go func() {
		_, err := io.CopyN(c, rand.NewChaCha8([32]byte{1}), size)
		_ = c.(*net.TCPConn).CloseWrite()
		sent <- err
	}()
	soon(t, "the line is full", func() bool { return p.Counters().BytesLive >= limit })
	var worst int64
	for range 100 {
		worst = max(worst, p.Counters().BytesLive)
		time.Sleep(time.Millisecond)
	}
	if bound := int64(limit + 1<<20 + 2*bufferSize); worst > bound {
		t.Errorf("%d bytes waited, over the bound of %d", worst, bound)
	}
	close(release)
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	<-done
	want := make([]byte, size)
	_, _ = io.ReadFull(rand.NewChaCha8([32]byte{1}), want)
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%d of %d bytes arrived, or others", got.Len(), size)
	}
	if p.Counters().StalledSeconds[wire.ToServer] == 0 {
		t.Error("the stall was not counted")
	}
	soon(t, "closed", func() bool { return p.Counters().ConnectionsOpen == 0 })
	if p.lines.used.Load() != 0 {
		t.Errorf("%d bytes of the budget are still taken", p.lines.used.Load())
	}
}

func TestProxy_SilentHalfClosedConnectionEnds(t *testing.T) {
	eachDriver(t, silentHalfClosedConnectionEnds)
}

func silentHalfClosedConnectionEnds(t *testing.T, on driverName) {
	quit := make(chan struct{})
	up := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		_, _ = io.Copy(io.Discard, c)
		_, _ = c.Write([]byte("bye"))
		<-quit // neither closes nor speaks
	})
	p, l := on.start(t, LinkConfig{Protocol: wire.TCP, Upstream: up}, func(c *Config) { c.Linger = 2 * time.Second })
	c := dialLink(t, l)
	_ = c.(*net.TCPConn).CloseWrite()
	if b, err := io.ReadAll(c); string(b) != "bye" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	close(quit)
	soon(t, "closed", func() bool { return p.Counters().ConnectionsOpen == 0 })
}

func TestShutdown_DeliversWhatWaitsAndClosesTheIdle(t *testing.T) {
	eachDriver(t, deliversWhatWaitsAndClosesTheIdle)
}

func deliversWhatWaitsAndClosesTheIdle(t *testing.T, on driverName) {
	arrived := make(chan string, 2)
	up := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		b, _ := io.ReadAll(c)
		arrived <- string(b)
	})
	p, l := on.start(t, LinkConfig{Protocol: wire.TCP, Upstream: up, Delay: inject.Settings{
		Delay: [2]inject.Delay{{Base: 100 * time.Millisecond}}, FreeConnect: true}})
	idle, busy := dialLink(t, l), dialLink(t, l)
	_, _ = busy.Write([]byte("promised"))
	soon(t, "the bytes wait", func() bool { return p.Counters().BytesLive == 8 })
	soon(t, "both lead to the upstream", func() bool { return driven(p) == 2 })
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := p.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("still accepting")
	}
	for _, c := range []net.Conn{idle, busy} {
		if _, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the client saw %v, want an orderly end", err)
		}
	}
	if got := <-arrived + <-arrived; got != "promised" {
		t.Errorf("the server got %q", got)
	}
}

func TestShutdown_CutsWhatDoesNotEndAndSaysSo(t *testing.T) {
	eachDriver(t, cutsWhatDoesNotEndAndSaysSo)
}

func cutsWhatDoesNotEndAndSaysSo(t *testing.T, on driverName) {
	up := server(t, "tcp", "127.0.0.1:0", echo)
	p, l := on.start(t, LinkConfig{Protocol: wire.TCP, Upstream: up, Delay: rtt(time.Hour)})
	c := dialLink(t, l)
	_, _ = c.Write([]byte("x"))
	soon(t, "the byte waits", func() bool { return p.Counters().BytesLive == 1 })
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	err := p.Shutdown(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 connections were cut") {
		t.Fatalf("%v", err)
	}
	if n := p.Counters().ConnectionsOpen; n != 0 {
		t.Fatalf("%d connections left", n)
	}
}

func TestStart_NamesEveryLinkThatCannotListen(t *testing.T) {
	ln, _ := net.Listen("tcp", "127.0.0.1:0")
	defer ln.Close()
	taken := ln.Addr().String()
	_, err := Start(context.Background(), Config{Links: []LinkConfig{
		{Name: "a", Listen: taken, Upstream: "127.0.0.1:1"},
		{Name: "b", Listen: "127.0.0.1:0", Upstream: "nonsense"},
		{Name: "c", Listen: "127.0.0.1:0", Upstream: "127.0.0.1:1", Protocol: "mysql"},
		{Name: "d", Listen: "127.0.0.1:0", Upstream: "127.0.0.1:1", TLS: TLSConfig{Client: "maybe"}},
		{Name: "e", Listen: "127.0.0.1:0", Upstream: "127.0.0.1:1", TLS: TLSConfig{Client: "terminate"}},
		{Name: "f", Listen: "127.0.0.1:0", Upstream: "127.0.0.1:1", TLS: TLSConfig{Server: "require"}},
	}})
	for _, want := range []string{
		"link a: listen tcp " + taken, "link b: upstream: \"nonsense\" is not an address",
		"link c: unknown protocol \"mysql\"", "link d: tls \"maybe\"", "link e: tls terminate needs", "link f: upstream tls with tls pass",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
}
