package toxiproxy

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

const (
	loadConnections = 64
	loadToxics      = 100 // a second
	loadFor         = 8 * time.Second
	// longest is what no call may take, however busy the machine is.
	longest = 10 * time.Second
)

// TestLoad: 64 connections carry what they get while toxics that lose nothing
// come and go a hundred times a second. Not a byte is missing, out of place or
// changed, and every call comes back.
func TestLoad(t *testing.T) {
	s := start(t, false, "-seed", "1")
	addr := s.proxy(t, "p", echo(t))
	var stop atomic.Bool
	results := make(chan traffic, loadConnections)
	for i := range loadConnections {
		c := dial(t, addr)
		go func() { results <- carry(c, uint64(i), &stop) }()
	}
	calls, slowest := churn(t, s, lossless, loadFor)
	stop.Store(true)
	var bytes int
	for range loadConnections {
		r := <-results
		if r.err != nil {
			t.Error(r.err)
		}
		bytes += r.bytes
	}
	if bytes < loadConnections*1000 || calls < 200 {
		t.Errorf("only %d bytes and %d calls", bytes, calls)
	}
	if slowest > longest {
		t.Errorf("a call took %v", slowest)
	}
	t.Logf("%d calls, the slowest %v; %d bytes came back", calls, slowest, bytes)
}

// lossless are toxics that lose nothing.
var lossless = []string{
	`"type":"latency","attributes":{"latency":5,"jitter":5}`,
	`"type":"latency","attributes":{"latency":1}`,
	`"type":"bandwidth","attributes":{"rate":200}`,
	`"type":"bandwidth","attributes":{"rate":0}`,
	`"type":"slicer","attributes":{"average_size":100,"size_variation":50,"delay":100}`,
	`"type":"slow_close","attributes":{"delay":1000}`,
	`"type":"packet_loss","attributes":{"loss_rate":0.02}`,
	`"type":"noop"`,
}

// churn adds and removes a toxic, again and again, in turn on both streams, with
// a change between. It ends without any.
func churn(t *testing.T, s *server, toxics []string, lasts time.Duration) (calls int, slowest time.Duration) {
	t.Helper()
	call := func(method, path, body string) {
		began := time.Now()
		s.do(t, method, path, body)
		calls, slowest = calls+1, max(slowest, time.Since(began))
	}
	random := rand.New(rand.NewPCG(1, 2))
	tick := time.NewTicker(time.Second / loadToxics)
	defer tick.Stop()
	for end := time.Now().Add(lasts); time.Now().Before(end); {
		<-tick.C
		i := random.IntN(len(toxics))
		stream := []string{"upstream", "downstream"}[random.IntN(2)]
		call("POST", "/proxies/p/toxics", fmt.Sprintf(`{"name":"t","stream":%q,"toxicity":%g,%s}`, stream, 0.5+random.Float64()/2, toxics[i]))
		if random.IntN(4) == 0 {
			call("PATCH", "/proxies/p/toxics/t", `{"toxicity":1}`)
		}
		if random.IntN(50) == 0 {
			call("GET", "/proxies", "")
		}
		if random.IntN(50) == 0 {
			call("POST", "/reset", "")
			continue
		}
		call("DELETE", "/proxies/p/toxics/t", "")
	}
	return calls, slowest
}

// traffic is what a connection carried.
type traffic struct {
	bytes int
	err   error
}

// carry sends a stream that a seed decides, in writes of many sizes, and reads it
// back, until it's told to stop and all has come.
func carry(c *net.TCPConn, seed uint64, stop *atomic.Bool) (r traffic) {
	sent := make(chan int, 1)
	go func() {
		stream, random, n := newStream(seed), rand.New(rand.NewPCG(seed, 3)), 0
		for !stop.Load() {
			chunk := stream.next(1 + random.IntN(3000))
			if _, err := c.Write(chunk); err != nil {
				break
			}
			n += len(chunk)
			time.Sleep(time.Duration(random.IntN(40)) * time.Millisecond)
		}
		_ = c.CloseWrite()
		sent <- n
	}()
	want, buf := newStream(seed), make([]byte, 4096)
	for {
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		n, err := c.Read(buf)
		if string(buf[:n]) != string(want.next(n)) {
			r.err = fmt.Errorf("connection %d: other bytes came back, from %d on", seed, r.bytes)
			return r
		}
		r.bytes += n
		if err != nil {
			if all := <-sent; err != io.EOF || r.bytes != all {
				r.err = fmt.Errorf("connection %d: %d of %d bytes came back, then %v", seed, r.bytes, all, err)
			}
			return r
		}
	}
}

// stream is bytes that a seed decides.
type stream struct{ random *rand.PCG }

func newStream(seed uint64) stream { return stream{rand.NewPCG(seed, 0)} }

func (s stream) next(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(s.random.Uint64())
	}
	return b
}
