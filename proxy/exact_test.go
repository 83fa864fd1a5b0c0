//go:build unix

package proxy

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// bubble is a proxy under a fake clock: in-memory connections, time.Timer.
func bubble(t *testing.T, lc LinkConfig, serve func(net.Conn)) (client net.Conn, stop func()) {
	t.Helper()
	p, err := newProxy(Config{})
	if err != nil {
		t.Fatal(err)
	}
	p.alarm.close()
	p.clock = newClock()
	p.alarm = timerAlarm{p.clock}
	p.dial = func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go serve(far)
		return near, nil
	}
	if lc.Upstream == "" {
		lc.Upstream = "in-memory:1"
	}
	r, err := newRoute(lc)
	if err != nil {
		t.Fatal(err)
	}
	l := &Link{name: lc.Name, proxy: p}
	l.route.Store(r)
	client, accepted := net.Pipe()
	p.running.Add(1)
	go l.serve(accepted, &listener{})
	return client, func() {
		client.Close()
		p.running.Wait()
	}
}

func exchange(t *testing.T, c net.Conn, b string) time.Duration {
	t.Helper()
	began := time.Now()
	if _, err := io.WriteString(c, b); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, len(b))); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}

func TestDrive_ExactTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := inject.Settings{Delay: [2]inject.Delay{{Base: 60 * time.Millisecond}, {Base: 20 * time.Millisecond}}}
		c, stop := bubble(t, LinkConfig{Protocol: wire.TCP, Delay: set}, echo)
		defer stop()
		// Connecting costs a round trip, then the bytes theirs.
		if d := exchange(t, c, "first"); d != 160*time.Millisecond {
			t.Errorf("first round trip %v, want 160ms", d)
		}
		for range 3 {
			if d := exchange(t, c, "next"); d != 80*time.Millisecond {
				t.Errorf("round trip %v, want 80ms", d)
			}
		}
	})
}

func TestDrive_PipelinedBytesKeepTheirDistances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := inject.Settings{Delay: [2]inject.Delay{{Base: 10 * time.Millisecond}, {}}, FreeConnect: true}
		var arrived []time.Duration
		began := time.Now()
		c, stop := bubble(t, LinkConfig{Protocol: wire.TCP, Delay: set}, func(far net.Conn) {
			defer far.Close()
			for b := make([]byte, 1); ; {
				if _, err := far.Read(b); err != nil {
					return
				}
				arrived = append(arrived, time.Since(began))
			}
		})
		for range 100 { // one a millisecond: the last arrives at 109 ms, not after 1 s
			_, _ = c.Write([]byte("x"))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		stop()
		synctest.Wait()
		for i, d := range arrived {
			if want := time.Duration(10+i) * time.Millisecond; d != want {
				t.Fatalf("byte %d arrived at %v, want %v", i, d, want)
			}
		}
		if len(arrived) != 100 {
			t.Fatalf("%d bytes arrived", len(arrived))
		}
	})
}

func TestDrive_ServerThatSpeaksFirstIsNotHeldUpByDetection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c, stop := bubble(t, LinkConfig{Delay: rtt(40 * time.Millisecond)}, func(far net.Conn) {
			_, _ = far.Write([]byte("greetings"))
			_, _ = io.Copy(io.Discard, far)
			far.Close()
		})
		defer stop()
		if _, err := io.ReadFull(c, make([]byte, 9)); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d != 80*time.Millisecond { // connecting, and the way there and back
			t.Errorf("greeted after %v, want 80ms", d)
		}
	})
}

func TestDrive_JitterNeverReorders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := inject.Settings{Delay: [2]inject.Delay{{Base: 5 * time.Millisecond, Jitter: 5 * time.Millisecond}, {}}}
		got := make(chan []byte, 1)
		c, stop := bubble(t, LinkConfig{Protocol: wire.TCP, Delay: set}, func(far net.Conn) {
			b := make([]byte, 200)
			_, _ = io.ReadFull(far, b)
			got <- b
			_, _ = io.Copy(io.Discard, far)
			far.Close()
		})
		defer stop()
		for i := range 200 {
			_, _ = c.Write([]byte{byte(i)})
			time.Sleep(100 * time.Microsecond)
		}
		for i, b := range <-got {
			if int(b) != i {
				t.Fatalf("byte %d is %d", i, b)
			}
		}
	})
}
