//go:build unix

package proxy

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
)

// TestMain fails the run if goroutines are left once all tests are over.
func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		child()
		return
	}
	before := runtime.NumGoroutine()
	code := m.Run()
	if f := flag.Lookup("test.fuzz"); f.Value.String() != "" {
		os.Exit(code) // what runs the workers leaves a goroutine of its own
	}
	for range 500 {
		if runtime.NumGoroutine() <= before {
			os.Exit(code)
		}
		time.Sleep(10 * time.Millisecond)
	}
	buf := make([]byte, 1<<20)
	fmt.Printf("goroutines left: %d before, %d after\n%s\n", before, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
	os.Exit(1)
}

// logBuffer is a log that tests can read.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), s)
}

func (l *logBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// server listens on loopback and serves each connection with f, until the test
// ends.
func server(t testing.TB, network, addr string, f func(net.Conn)) string {
	t.Helper()
	ln, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			wg.Go(func() { defer c.Close(); f(c) })
		}
	})
	t.Cleanup(func() {
		ln.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	if network == "unix" {
		return "unix:" + addr
	}
	return ln.Addr().String()
}

// Serve is server, for the tests that stand outside the package.
var Serve = server

func echo(c net.Conn) { _, _ = io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c}) }

// start runs a proxy with one link, which ends with the test.
func start(t testing.TB, lc LinkConfig, change ...func(*Config)) (*Proxy, *Link) {
	t.Helper()
	if lc.Listen == "" {
		lc.Listen = "127.0.0.1:0"
	}
	c := Config{Links: []LinkConfig{lc}}
	for _, f := range change {
		f(&c)
	}
	p, err := Start(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		_ = p.Shutdown(ctx)
	})
	return p, p.Links()[0]
}

// driverName is a driver that a test runs on.
type driverName string

// eachDriver runs a test on every driver that there is.
func eachDriver(t *testing.T, f func(*testing.T, driverName)) {
	t.Helper()
	for _, on := range []driverName{DriverNet, DriverEpoll} {
		if CheckDriver(string(on)) == nil {
			t.Run(string(on), func(t *testing.T) { f(t, on) })
		}
	}
}

// start runs a proxy with one link on the driver.
func (on driverName) start(t testing.TB, lc LinkConfig, change ...func(*Config)) (*Proxy, *Link) {
	t.Helper()
	return start(t, lc, append(change, func(c *Config) { c.Driver = string(on) })...)
}

// driven is the number of connections that have their driver.
func driven(p *Proxy) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.mu.Lock()
		if c.driver != nil {
			n++
		}
		c.mu.Unlock()
	}
	return n
}

func dialLink(t testing.TB, l *Link) net.Conn {
	t.Helper()
	c, err := net.Dial(l.Addr().Network(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// soon waits, without limit but that of the test, for what must come.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func rtt(d time.Duration) inject.Settings { return inject.Symmetric(d, 0) }
