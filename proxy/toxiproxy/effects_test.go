package toxiproxy

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wirewait/wirewait/proxy"
)

// What a value that can't be is answered with, and that nothing dies of it, nor is
// changed.
func TestToxics_BadValuesAreRefused(t *testing.T) {
	r := newRig(t, proxy.Config{})
	at := r.add("a")
	for _, toxic := range []string{
		`{"type":"bandwidth","attributes":{"rate":-1}}`,
		`{"type":"latency","attributes":{"latency":-1}}`,
		`{"type":"latency","attributes":{"jitter":9223372036854775807}}`,
		`{"type":"latency","attributes":{"latency":9223372036854775807}}`,
		`{"type":"slicer"}`,
		`{"type":"slicer","attributes":{"average_size":10,"size_variation":10}}`,
		`{"type":"slicer","attributes":{"average_size":10,"size_variation":100}}`,
		`{"type":"slicer","attributes":{"average_size":10,"delay":-1}}`,
		`{"type":"timeout","attributes":{"timeout":-1}}`,
		`{"type":"reset_peer","attributes":{"timeout":-1}}`,
		`{"type":"slow_close","attributes":{"delay":-1}}`,
		`{"type":"limit_data","attributes":{"bytes":-1}}`,
		`{"type":"packet_loss","attributes":{"loss_rate":1.1}}`,
		`{"type":"packet_loss","attributes":{"correlation":-0.1}}`,
		`{"type":"latency","attributes":{"latency":1,"ttl":0}}`,
		`{"type":"latency","attributes":{"latency":1,"ttl":"soon"}}`,
		`{"type":"latency","attributes":{"latency":1,"match":5}}`,
		`{"type":"latency","attributes":{"latency":1,"match":"insert"}}`,
		`{"type":"latency","attributes":{"latency":1,"match":{"comand":"insert"}}}`,
		`{"type":"latency","attributes":{"latency":1,"match":{"link":"b"}}}`,
		`{"type":"latency","attributes":{"latency":1,"match":{"direction":"both"}}}`,
		`{"type":"latency","attributes":{"latency":1,"first":-1}}`,
		`{"type":"refuse"}`,
		`{"type":"refuse","attributes":{"code":"no such code"}}`,
		`{"type":"refuse","attributes":{"code":112,"nonsense":1}}`,
	} {
		got := r.does("POST /proxies/a/toxics "+toxic, 400, "")
		if !strings.HasPrefix(got.body, `{"error":"`) || len(got.body) < 40 {
			t.Errorf("%s: %s", toxic, got.body)
		}
	}
	r.does("GET /proxies/a/toxics", 200, "[]")
	r.toxic("a", `{"type":"bandwidth","attributes":{"rate":1000}}`)
	r.does(`PATCH /proxies/a/toxics/bandwidth_downstream {"toxicity":0.5,"attributes":{"rate":-1}}`, 400, "")
	r.does("GET /proxies/a/toxics/bandwidth_downstream", 200,
		`{"attributes":{"rate":1000},"name":"bandwidth_downstream","type":"bandwidth","stream":"downstream","toxicity":1}`)
	r.dial(at).echoes("alive")
}

// Every type with the largest values it takes passes bytes, or holds them, and is
// taken away.
func TestToxics_LargestValues(t *testing.T) {
	r := newRig(t, proxy.Config{})
	at := r.add("a")
	for _, toxic := range []string{
		`{"name":"x","type":"bandwidth","attributes":{"rate":9223372036854775807}}`,
		`{"name":"x","type":"latency","attributes":{"latency":1152921504606,"jitter":1152921504606}}`,
		`{"name":"x","type":"slicer","attributes":{"average_size":2147483647,"size_variation":2147483646,"delay":1152921504606}}`,
		`{"name":"x","type":"timeout","attributes":{"timeout":1152921504606}}`,
		`{"name":"x","type":"reset_peer","attributes":{"timeout":1152921504606}}`,
		`{"name":"x","type":"slow_close","attributes":{"delay":1152921504606}}`,
		`{"name":"x","type":"limit_data","attributes":{"bytes":9223372036854775807}}`,
		`{"name":"x","type":"packet_loss","attributes":{"loss_rate":1,"correlation":1}}`,
		`{"name":"x","type":"packet_loss","attributes":{"loss_rate":0.5,"correlation":1}}`,
	} {
		c := r.dial(at)
		c.echoes("before")
		r.toxic("a", toxic)
		_, _ = io.WriteString(c, "during")
		r.does("DELETE /proxies/a/toxics/x", 204, "")
	}
	r.dial(at).echoes("after")
}

func TestToxics_LatencyStacksAndGoesAtOnce(t *testing.T) {
	drivers(t, func(t *testing.T, driver string) {
		r := newRig(t, proxy.Config{Driver: driver})
		at := r.add("a")
		c := r.dial(at)
		c.echoes("before")
		r.toxic("a", `{"name":"x","type":"latency","attributes":{"latency":30}}`)
		r.toxic("a", `{"name":"y","type":"latency","attributes":{"latency":40}}`)
		r.toxic("a", `{"name":"z","type":"latency","stream":"upstream","attributes":{"latency":50}}`)
		start := time.Now()
		c.echoes("slow")
		if took := time.Since(start); took < 120*time.Millisecond {
			t.Errorf("it took %v, less than 30 + 40 + 50 ms", took)
		}
		// An hour for what is under way already, until the toxic goes.
		r.does(`PATCH /proxies/a/toxics/z {"attributes":{"latency":3600000}}`, 200, "")
		if _, err := io.WriteString(c, "an hour"); err != nil {
			t.Fatal(err)
		}
		soon(t, "it waits", func() bool { return r.proxy.Counters().Links[0].Ways[0].Live > 0 })
		r.does("DELETE /proxies/a/toxics/z", 204, "")
		b := make([]byte, 7)
		if _, err := io.ReadFull(c, b); err != nil || string(b) != "an hour" {
			t.Errorf("%q, %v", b, err)
		}
	})
}

// Two of rate 0 are how Testcontainers cut a connection, and how it comes back.
func TestToxics_CutAndRestored(t *testing.T) {
	drivers(t, func(t *testing.T, driver string) {
		r := newRig(t, proxy.Config{Driver: driver})
		c := r.dial(r.add("a"))
		c.echoes("before")
		r.toxic("a", `{"name":"CUT_CONNECTION_DOWNSTREAM","type":"bandwidth","stream":"downstream","attributes":{"rate":0}}`)
		r.toxic("a", `{"name":"CUT_CONNECTION_UPSTREAM","type":"bandwidth","stream":"upstream","attributes":{"rate":0}}`)
		if _, err := io.WriteString(c, "kept"); err != nil {
			t.Fatal(err)
		}
		soon(t, "it waits", func() bool { return r.proxy.Counters().Links[0].Ways[0].Live == 4 })
		r.does("DELETE /proxies/a/toxics/CUT_CONNECTION_DOWNSTREAM", 204, "")
		r.does("DELETE /proxies/a/toxics/CUT_CONNECTION_UPSTREAM", 204, "")
		b := make([]byte, 4)
		if _, err := io.ReadFull(c, b); err != nil || string(b) != "kept" {
			t.Errorf("%q, %v", b, err)
		}
	})
}

func TestToxics_Bandwidth(t *testing.T) {
	r := newRig(t, proxy.Config{})
	c := r.dial(r.add("a"))
	r.toxic("a", `{"type":"bandwidth","attributes":{"rate":100}}`)
	r.toxic("a", `{"name":"more","type":"bandwidth","attributes":{"rate":100000}}`)
	start := time.Now()
	c.echoes(strings.Repeat("x", 30_000)) // at 100,000 bytes a second
	if took := time.Since(start); took < 290*time.Millisecond {
		t.Errorf("30,000 bytes took %v", took)
	}
}

// A timeout ends the connection when it's over, though bytes keep coming.
func TestToxics_TimeoutIsNotPutOffByTraffic(t *testing.T) {
	drivers(t, func(t *testing.T, driver string) {
		r := newRig(t, proxy.Config{Driver: driver})
		c := r.dial(r.add("a"))
		c.echoes("before")
		r.toxic("a", `{"type":"timeout","stream":"upstream","attributes":{"timeout":300}}`)
		done := make(chan error, 1)
		go func() {
			for {
				if _, err := io.WriteString(c, "x"); err != nil {
					done <- err
					return
				}
				time.Sleep(time.Millisecond)
			}
		}()
		if err := c.ends(); errors.Is(err, syscall.ETIMEDOUT) || isDeadline(err) {
			t.Errorf("the connection goes on: %v", err)
		}
		c.Close()
		<-done
	})
}

func isDeadline(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// Taking a timeout of 0 away ends the connections that lost bytes to it.
func TestToxics_TimeoutGone(t *testing.T) {
	r := newRig(t, proxy.Config{})
	c := r.dial(r.add("a"))
	c.echoes("before")
	r.toxic("a", `{"type":"timeout"}`)
	r.does("DELETE /proxies/a/toxics/timeout_downstream", 204, "")
	if err := c.ends(); isDeadline(err) {
		t.Error("the connection goes on")
	}
}

// Connections that were open before are reset, not closed.
func TestToxics_ResetPeerOfOpenConnections(t *testing.T) {
	drivers(t, func(t *testing.T, driver string) {
		r := newRig(t, proxy.Config{Driver: driver})
		c := r.dial(r.add("a"))
		c.echoes("before")
		r.toxic("a", `{"type":"reset_peer","stream":"upstream"}`)
		if _, err := io.WriteString(c, "x"); err != nil {
			t.Fatal(err)
		}
		if err := c.ends(); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the end is %v, want a reset", err)
		}
	})
}

// The wait before a reset keeps no call waiting, and ends with its toxic.
func TestToxics_ResetPeerInterrupted(t *testing.T) {
	r := newRig(t, proxy.Config{})
	c := r.dial(r.add("a"))
	c.echoes("before")
	r.toxic("a", `{"type":"reset_peer","stream":"upstream","attributes":{"timeout":3600000}}`)
	if _, err := io.WriteString(c, "x"); err != nil {
		t.Fatal(err)
	}
	soon(t, "the byte is read", func() bool { return r.proxy.Counters().Links[0].Ways[0].Read == 7 })
	r.does("DELETE /proxies/a/toxics/reset_peer_upstream", 204, "")
	if err := c.ends(); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the end is %v, want a reset", err)
	}
}

// A toxic that doesn't fire leaves no trace.
func TestToxics_ToxicityZero(t *testing.T) {
	r := newRig(t, proxy.Config{})
	at := r.add("a")
	for _, toxicity := range []string{"0", "-3"} {
		r.toxic("a", `{"name":"x","type":"reset_peer","stream":"upstream","toxicity":`+toxicity+`}`)
		c := r.dial(at)
		c.echoes("x")
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if err := c.ends(); err != nil {
			t.Errorf("toxicity %s: %v", toxicity, err)
		}
		r.does("DELETE /proxies/a/toxics/x", 204, "")
	}
	r.toxic("a", `{"name":"x","type":"reset_peer","stream":"upstream","toxicity":7}`)
	c := r.dial(at)
	_, _ = io.WriteString(c, "x")
	if err := c.ends(); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("toxicity 7: %v", err)
	}
}

// Half of the connections feel a toxicity of one half, the same ones with the same
// seed.
func TestToxics_ToxicityIsOfConnections(t *testing.T) {
	draws := func() (s string) {
		r := newRig(t, proxy.Config{Seed: 42})
		at := r.add("a")
		r.toxic("a", `{"type":"reset_peer","stream":"upstream","toxicity":0.5}`)
		for range 40 {
			c := r.dial(at)
			if _, err := io.WriteString(c, "x"); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
				s += "."
			} else {
				s += "x"
			}
		}
		return s
	}
	first := draws()
	if n := strings.Count(first, "x"); n < 8 || n > 32 {
		t.Errorf("%d of 40 connections got through at a toxicity of 0.5", n)
	}
	if again := draws(); again != first {
		t.Errorf("the same seed drew %s, and %s", first, again)
	}
}

// Who ends his side gets what was asked for all the same.
func TestToxics_HalfCloseKeepsTheReply(t *testing.T) {
	drivers(t, func(t *testing.T, driver string) {
		r := newRig(t, proxy.Config{Driver: driver})
		at := r.addTo("a", serve(t, func(c net.Conn) {
			b, _ := io.ReadAll(c)
			_, _ = io.WriteString(c, "the reply to "+string(b))
		}))
		r.toxic("a", `{"type":"latency","attributes":{"latency":20}}`)
		c := r.dial(at)
		if _, err := io.WriteString(c, "x"); err != nil {
			t.Fatal(err)
		}
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(c); err != nil || string(b) != "the reply to x" {
			t.Errorf("%q, %v", b, err)
		}
	})
}

// The wait of slow_close ends with its toxic, and with its proxy.
func TestToxics_SlowCloseIsInterrupted(t *testing.T) {
	drivers(t, func(t *testing.T, driver string) {
		for _, how := range []string{"DELETE /proxies/a/toxics/slow_close_downstream", "POST /reset", "DELETE /proxies/a"} {
			r := newRig(t, proxy.Config{Driver: driver})
			c := r.dial(r.add("a"))
			r.toxic("a", `{"type":"slow_close","attributes":{"delay":3600000}}`)
			c.echoes("x")
			if err := c.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			soon(t, "the server has ended", func() bool {
				conns := r.proxy.Connections()
				return len(conns) == 1 && conns[0].State == proxy.HalfClosed
			})
			r.does(how, 204, "")
			if err := c.ends(); isDeadline(err) {
				t.Errorf("%s: the end still waits", how)
			}
		}
	})
}

func TestToxics_LimitData(t *testing.T) {
	r := newRig(t, proxy.Config{})
	c := r.dial(r.add("a"))
	c.echoes("free")
	r.toxic("a", `{"type":"limit_data","attributes":{"bytes":10}}`)
	c.echoes("123456")
	r.does(`PATCH /proxies/a/toxics/limit_data_downstream {"attributes":{"bytes":8}}`, 200, "")
	if _, err := io.WriteString(c, "789"); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(c); string(b) != "78" || err != nil {
		t.Errorf("%q, %v: what had passed before the change counts", b, err)
	}
}

func TestToxics_SlicerAndLossLoseNothing(t *testing.T) {
	drivers(t, func(t *testing.T, driver string) {
		r := newRig(t, proxy.Config{Driver: driver})
		c := r.dial(r.add("a"))
		r.toxic("a", `{"type":"slicer","attributes":{"average_size":100,"size_variation":50,"delay":10}}`)
		r.toxic("a", `{"type":"slicer","stream":"upstream","attributes":{"average_size":64}}`)
		r.toxic("a", `{"type":"packet_loss","attributes":{"loss_rate":0.1,"correlation":0.5}}`)
		for range 2 {
			c.echoes(strings.Repeat("0123456789", 1000))
		}
	})
}
