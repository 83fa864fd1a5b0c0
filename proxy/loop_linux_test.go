package proxy

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/internal/testenv"
	"github.com/wirewait/wirewait/wire"
)

const onLoops = driverName(DriverEpoll)

// A collection stops the world, and a loop's thread may sleep for hours: in a
// system call that the scheduler didn't know of, each collection would last as
// long.
func TestLoop_GarbageCollectionNeverWaitsForIt(t *testing.T) {
	up := server(t, "tcp", "127.0.0.1:0", echo)
	// What fails here stands still until go test ends it: nothing runs any more.
	collect := func() {
		for range 20 {
			runtime.GC()
		}
	}
	t.Run("idle", func(t *testing.T) {
		p, l := onLoops.start(t, LinkConfig{Protocol: wire.TCP, Upstream: up})
		exchangeOn(t, dialLink(t, l), []byte("x"))
		soon(t, "the loop sleeps", func() bool { return asleep(p) })
		collect()
	})
	t.Run("until something is due", func(t *testing.T) {
		p, l := onLoops.start(t, LinkConfig{Protocol: wire.TCP, Upstream: up, Delay: rtt(24 * time.Hour)})
		_, _ = dialLink(t, l).Write([]byte("x"))
		soon(t, "the byte waits", func() bool { return p.Counters().BytesLive == 1 })
		collect()
	})
}

// asleep reports whether the loops of p drive something and have nothing to do.
func asleep(p *Proxy) bool {
	p.loops.mu.Lock()
	defer p.loops.mu.Unlock()
	for _, l := range p.loops.all {
		l.mu.Lock()
		mail := len(l.mail)
		l.mu.Unlock()
		if mail > 0 {
			return false
		}
	}
	return len(p.loops.all) > 0
}

func exchangeOn(t *testing.T, c net.Conn, b []byte) {
	t.Helper()
	got := make([]byte, len(b))
	_, _ = c.Write(b)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != string(b) {
		t.Fatalf("sent %q, got %q, %v", b, got, err)
	}
}

// Connections that end in every way while others begin: each gets its own bytes
// back, and no descriptor stays.
func TestLoop_ThousandsOfShortConnectionsLeaveNothing(t *testing.T) {
	up := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		b := make([]byte, 16)
		if _, err := io.ReadFull(c, b); err != nil {
			return
		}
		_, _ = c.Write(b)
		switch b[0] % 3 {
		case 0:
			_, _ = io.Copy(io.Discard, c) // the client ends it
		case 1:
			_ = c.(*net.TCPConn).SetLinger(0)
		}
	})
	p, l := onLoops.start(t, LinkConfig{Protocol: wire.TCP, Upstream: up})
	exchangeOn(t, dialLink(t, l), make([]byte, 16)) // what the first one needs for all
	before := descriptors(t)
	var next atomic.Uint64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := next.Add(1); n <= 3000 && !t.Failed(); n = next.Add(1) {
				if err := short(l.Addr().String(), n); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	soon(t, "all but the first are gone", func() bool { return p.Counters().ConnectionsOpen == 1 })
	soon(t, "their descriptors are gone", func() bool { return descriptors(t) <= before })
	for _, l := range p.loops.all {
		if n := l.load.Load(); n > 1 {
			t.Errorf("a loop counts %d connections", n)
		}
	}
}

// short is the life of one connection, which ends as its number says.
func short(addr string, n uint64) error {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer nc.Close()
	c := nc.(*net.TCPConn)
	b, got := make([]byte, 16), make([]byte, 16)
	binary.LittleEndian.PutUint64(b, n)
	if n%7 == 0 {
		_, _ = c.Write(b[:n%16]) // and never the rest
		return nil
	}
	if _, err := c.Write(b); err != nil {
		return err
	}
	if _, err := io.ReadFull(c, got); n%3 != 1 && err != nil || err == nil && string(got) != string(b) {
		return fmt.Errorf("connection %d got %x, %w", n, got, err) // a reset may overtake the answer
	}
	switch n % 5 {
	case 0:
		_ = c.SetLinger(0)
	case 1:
		_ = c.CloseWrite()
		_, _ = io.Copy(io.Discard, c)
	}
	return nil
}

func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// A loop gives everybody a turn: one that always has more to do must not hold up
// the others.
func TestLoop_BusyConnectionHoldsUpNobody(t *testing.T) {
	up := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		b := make([]byte, 64<<10)
		if _, err := io.ReadFull(c, b[:1]); err != nil {
			return
		}
		if b[0] == 'e' {
			_, _ = c.Write(b[:1])
			echo(c)
			return
		}
		for {
			if _, err := c.Write(b); err != nil {
				return
			}
		}
	})
	for delay, set := range map[string]inject.Settings{"undelayed": {}, "delayed": rtt(time.Millisecond)} {
		t.Run(delay, func(t *testing.T) {
			p, l := onLoops.start(t, LinkConfig{Protocol: wire.TCP, Upstream: up, Delay: set})
			flood, talk := dialLink(t, l), dialLink(t, l)
			exchangeOn(t, talk, []byte("e"))
			_, _ = flood.Write([]byte("f"))
			go func() { _, _ = io.Copy(io.Discard, struct{ io.Reader }{flood}) }()
			soon(t, "the flood flows", func() bool { return p.Counters().Bytes[wire.ToClient] > 1<<20 })
			for range 200 {
				exchangeOn(t, talk, []byte("e"))
			}
			was := p.Counters().Bytes[wire.ToClient]
			soon(t, "it flows still", func() bool { return p.Counters().Bytes[wire.ToClient] > was+1<<20 })
		})
	}
}

// Where the kernel lacks epoll_pwait2 a timerfd ends the waits.
func TestLoop_WaitsWithoutPwait2(t *testing.T) {
	for _, timer := range []bool{false, true} {
		t.Run(fmt.Sprintf("timer %v", timer), func(t *testing.T) {
			var p poller
			if err := p.open(); err != nil {
				t.Fatal(err)
			}
			defer p.close()
			if timer {
				if err := p.openTimer(); err != nil {
					t.Fatal(err)
				}
			}
			for _, d := range []time.Duration{1, 100 * time.Microsecond, 2 * time.Millisecond, 30 * time.Millisecond} {
				began := time.Now()
				for rest := d; rest > 0; rest = d - time.Since(began) {
					for _, ev := range p.wait(int64(rest)) {
						if ev.Fd == p.bell {
							t.Fatal("nobody rang")
						}
					}
				}
			}
			go p.ring()
			rang := false
			for !rang {
				for _, ev := range p.wait(-1) {
					rang = rang || ev.Fd == p.bell
				}
			}
			p.silence()
			if got := p.wait(0); len(got) != 0 && got[0].Fd == p.bell {
				t.Error("it still rings")
			}
		})
	}
}

func TestLoop_DuesComeInOrder(t *testing.T) {
	var q dueQueue[int]
	rnd := rand.New(rand.NewPCG(1, 2))
	all := make([]due[int], 200)
	for range 5000 {
		q.set(&all[rnd.IntN(len(all))], wire.Stamp(rnd.IntN(1000)))
	}
	want := 0
	for _, d := range all {
		if d.at != 0 {
			want++
		}
	}
	got, last := 0, wire.Stamp(0)
	for q.len() > 0 {
		next := q.next()
		if q.pop(next-1) != nil {
			t.Fatal("popped before its time")
		}
		if d := q.pop(next); d == nil || d.at != 0 || next < last {
			t.Fatalf("%v at %d after %d", d, next, last)
		}
		got, last = got+1, next
	}
	if got != want || want == 0 {
		t.Errorf("%d came, want %d", got, want)
	}
}

// What a stop asks for reaches a connection that its loop has not heard of yet.
func TestLoop_StopBeforeTheLoopKnows(t *testing.T) {
	up := server(t, "tcp", "127.0.0.1:0", echo)
	for range 100 {
		p, l := onLoops.start(t, LinkConfig{Protocol: wire.TCP, Upstream: up})
		for range 3 {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			go func() { // a drain waits for clients
				<-p.stopping
				c.Close()
			}()
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.IntN(500))*time.Microsecond)
		_ = p.Shutdown(ctx)
		cancel()
		if n := p.Counters().ConnectionsOpen; n != 0 {
			t.Fatalf("%d connections left", n)
		}
	}
}

// Urgent data ends a read before the rest was read, and the byte itself is not
// in the stream: what follows must pass all the same.
func TestLoop_ReadsOnBehindUrgentData(t *testing.T) {
	up := server(t, "tcp", "127.0.0.1:0", echo)
	_, l := onLoops.start(t, LinkConfig{Protocol: wire.TCP, Upstream: up})
	c := dialLink(t, l)
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		_ = raw.Write(func(fd uintptr) bool {
			_ = unix.Sendto(int(fd), []byte("ab!"), unix.MSG_OOB, nil)
			return true
		})
		_, _ = c.Write([]byte("cd"))
		got := make([]byte, 4)
		if _, err := io.ReadFull(c, got); err != nil || string(got) != "abcd" {
			t.Fatalf("%q, %v", got, err)
		}
	}
}

// An idle connection holds no goroutine and little memory. Both are what opening
// many through a proxy takes, less what as many without it do: the test's own.
func TestLoop_IdleConnectionsAreSmall(t *testing.T) {
	if testenv.Race {
		t.Skip("the race detector needs memory of its own")
	}
	const conns, most = 400, 4 << 10
	up := server(t, "tcp", "127.0.0.1:0", echo)
	_, l := onLoops.start(t, LinkConfig{Protocol: wire.TCP, Upstream: up})
	open := func(addr string) (bytes, goroutines int) {
		census := func() (int, int) {
			var m runtime.MemStats
			runtime.GC()
			runtime.GC() // what the first one found in pools
			runtime.ReadMemStats(&m)
			return int(m.HeapAlloc + m.StackInuse), runtime.NumGoroutine()
		}
		b, g := census()
		for range conns {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			exchangeOn(t, c, []byte("x"))
		}
		b2, g2 := census()
		return (b2 - b) / conns, g2 - g
	}
	open(l.Addr().String()) // what the first ones need for all
	direct, goroutines := open(up)
	through, more := open(l.Addr().String())
	t.Logf("heap and stacks: %d bytes each through the proxy, %d without", through, direct)
	if through-direct > most {
		t.Errorf("an idle connection holds %d bytes, want at most %d", through-direct, most)
	}
	if more-goroutines > conns/10 { // those of dials may still be ending
		t.Errorf("%d idle connections hold %d goroutines", conns, more-goroutines)
	}
}

// As many connections as the process may have descriptors for, up to 10,000, of
// which a hundred are busy: each takes four here, two of them the proxy's.
func TestLoop_ManyConnectionsOfWhichFewAreBusy(t *testing.T) {
	if testing.Short() || testenv.Race {
		t.Skip("opens thousands of connections: run without -short and -race")
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	n := int(min(limit.Cur/5, 10_000))
	p, l := onLoops.start(t, LinkConfig{Protocol: wire.TCP, Upstream: server(t, "tcp", "127.0.0.1:0", echo)})
	conns := make([]net.Conn, n)
	for i := range conns {
		conns[i] = dialLink(t, l)
	}
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			for k := range 100 {
				c, b := conns[i*(n/100)+k%(n/100)], fmt.Appendf(nil, "%d of %d", k, i)
				got := make([]byte, len(b))
				_, _ = c.Write(b)
				if _, err := io.ReadFull(c, got); err != nil || string(got) != string(b) {
					t.Errorf("sent %q, got %q, %v", b, got, err)
				}
			}
		})
	}
	wg.Wait()
	if got := p.Counters().ConnectionsOpen; got != int64(n) {
		t.Errorf("%d connections are open, want %d", got, n)
	}
}
