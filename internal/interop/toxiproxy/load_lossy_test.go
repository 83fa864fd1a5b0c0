package toxiproxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"
)

// lossy are toxics that may cost a connection its end, and those that hold it up.
var lossy = []string{
	`"type":"limit_data","attributes":{"bytes":20000}`,
	`"type":"timeout","attributes":{"timeout":5}`,
	`"type":"timeout","attributes":{"timeout":0}`,
	`"type":"reset_peer","attributes":{"timeout":2}`,
	`"type":"bandwidth","attributes":{"rate":0}`,
	`"type":"slow_close","attributes":{"delay":3600000}`,
	`"type":"slicer","attributes":{"average_size":1000,"size_variation":500,"delay":100}`,
	`"type":"latency","attributes":{"latency":3}`,
}

// TestLoad_Lossy: connections come and go while toxics that cut them do. Each gets
// the beginning of what it's sent, or all; never anything else. Each ends, and
// every call comes back.
func TestLoad_Lossy(t *testing.T) {
	s := start(t, false, "-seed", "1")
	text := newStream(1).next(100_000)
	addr := s.proxy(t, "p", serve(t, func(c *net.TCPConn) { _, _ = c.Write(text) }))
	var stop atomic.Bool
	var whole, cut atomic.Int64
	results := make(chan error, loadConnections)
	for range loadConnections {
		go func() {
			for !stop.Load() {
				n, err := fetch(addr, text)
				if err != nil {
					results <- err
					return
				}
				if n == len(text) {
					whole.Add(1)
				} else {
					cut.Add(1)
				}
				time.Sleep(rand.N(100 * time.Millisecond)) // calls are to be many too
			}
			results <- nil
		}()
	}
	calls, slowest := churn(t, s, lossy, loadFor/2)
	stop.Store(true)
	for range loadConnections {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if whole.Load() == 0 || cut.Load() == 0 || slowest > longest {
		t.Errorf("%d connections got all, %d less; a call took %v", whole.Load(), cut.Load(), slowest)
	}
	if n, err := fetch(addr, text); n != len(text) || err != nil {
		t.Errorf("without a toxic %d bytes of %d came, %v", n, len(text), err)
	}
	t.Logf("%d calls, the slowest %v; %d connections got all, %d less", calls, slowest, whole.Load(), cut.Load())
}

// fetch connects and reads to the end. What comes must be the beginning of text.
func fetch(addr string, text []byte) (int, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil { // reset before it was seen to be connected
		return 0, nil
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	got, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return len(got), fmt.Errorf("a connection doesn't end, after %d bytes", len(got))
	}
	if !bytes.HasPrefix(text, got) {
		return len(got), fmt.Errorf("%d other bytes came", len(got))
	}
	return len(got), nil
}
