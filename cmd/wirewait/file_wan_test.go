package main

import (
	"io"
	"net"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"
)

// bulk is how long n bytes take there and back, on as many connections as there
// are addresses, all at once.
func bulk(t *testing.T, n int, addresses ...string) time.Duration {
	t.Helper()
	var clients sync.WaitGroup
	begin := time.Now()
	for _, a := range addresses {
		c, err := net.Dial("tcp", a)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		clients.Go(func() { _, _ = c.Write(make([]byte, n)) })
		clients.Go(func() {
			if _, err := io.ReadFull(c, make([]byte, n)); err != nil {
				t.Error(err)
			}
		})
	}
	clients.Wait()
	return time.Since(begin)
}

// TestRun_FileModels: what a pair of sites is limited to is what its links have,
// from the file to the wire. Only the least is looked at: a machine can always be
// slower.
func TestRun_FileModels(t *testing.T) {
	for name, tc := range map[string]struct {
		pair, describes string
		bytes           int
		conns           int
		least           time.Duration
	}{
		// There and back at once, so each way counts once.
		"per connection": {"rtt: 0, bandwidth_per_connection: 1Mbit/s", `no delay, 1Mbit/s per connection`, 25_000, 2, 200 * time.Millisecond},
		"shared":         {"rtt: 0, bandwidth: 1Mbit/s", `no delay, 1Mbit/s`, 25_000, 2, 400 * time.Millisecond},
		// 16 KiB each round trip of 50 ms: 64 KiB need three more than the first.
		"window": {"rtt: 50ms, window: 16KiB", `rtt 50ms \(25ms each way\), window 16KiB`, 64 << 10, 1, 200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up, file := echoServer(t), filepath.Join(t.TempDir(), "wirewait.yaml")
			writeFile(t, file, "network:\n  - {between: [app, sgp], "+tc.pair+"}\nlinks:", oneLink("127.0.0.1:0", up, ", name: one"))
			w := start(t, nil, file)
			addr := w.line(`^link one: (\S+) -> .*, tcp, ` + tc.describes + `, seed `)[1]
			addresses := []string{addr, addr}[:tc.conns]
			if d := bulk(t, tc.bytes, addresses...); d < tc.least {
				t.Errorf("%d bytes took %v, want %v at least", tc.bytes, d, tc.least)
			}
			w.signal(syscall.SIGTERM)
			w.stopped()
		})
	}
}

// TestRun_FileSources: two places dial one listener, and each is as far away as
// the file says, before and after a reload; who isn't known is the farthest.
func TestRun_FileSources(t *testing.T) {
	up, file := echoServer(t), filepath.Join(t.TempDir(), "wirewait.yaml")
	text := func(near, far string) {
		writeFile(t, file, "sources: {127.0.0.2: app, 127.0.0.3: fra}\nnetwork:",
			"  - {between: [app, sgp], rtt: "+near+"}", "  - {between: [fra, sgp], rtt: "+far+"}", "links:",
			`  - {from: [app, fra], to: sgp, listen: "127.0.0.1:0", upstream: "`+up+`", protocol: tcp, connect: false}`)
	}
	text("0", "120ms")
	w := start(t, nil, file)
	addr := w.line(`^link app\+fra-sgp: (\S+) -> ` + regexp.QuoteMeta(up) + `, tcp, rtt 120ms .*, unless the source is known, seed `)[1]
	conns := map[string]net.Conn{}
	for _, ip := range []string{"127.0.0.2", "127.0.0.3", "127.0.0.4"} {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
		c, err := d.Dial("tcp", addr)
		if err != nil {
			t.Skipf("only Linux has all of 127.0.0.0/8: %v", err)
		}
		defer c.Close()
		conns[ip] = c
	}
	least := func(ip string, want time.Duration) {
		t.Helper()
		if d := echoed(t, conns[ip]); d < want {
			t.Errorf("%s: %v, want %v at least", ip, d, want)
		}
	}
	least("127.0.0.3", 120*time.Millisecond)
	least("127.0.0.4", 120*time.Millisecond)
	// Whoever is near isn't as slow as the far ones, but for a machine that is.
	fastest := time.Hour
	for range 20 {
		fastest = min(fastest, echoed(t, conns["127.0.0.2"]))
	}
	if fastest >= 120*time.Millisecond {
		t.Errorf("127.0.0.2: %v at best, want far less than 120ms", fastest)
	}
	text("150ms", "200ms")
	w.signal(syscall.SIGHUP)
	w.line(`msg="delay changed" link=app\+fra-sgp from="rtt 120ms .*" to="rtt 200ms`)
	w.line(`msg="delay changed" link=app\+fra-sgp from="no delay.*" to="rtt 150ms .*" source=app$`)
	w.line(`msg=reloaded file=\S+ links_changed=1 waiting_for_restart=0$`)
	least("127.0.0.2", 150*time.Millisecond)
	least("127.0.0.3", 200*time.Millisecond)
	least("127.0.0.4", 200*time.Millisecond)
	w.signal(syscall.SIGTERM)
	w.stopped()
}
