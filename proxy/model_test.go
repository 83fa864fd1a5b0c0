//go:build unix

package proxy

import (
	"io"
	"math"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// Each model as a client and a server see it through a proxy, under a fake
// clock: 10 ms there (at least) and 30 ms back, and what the model says on the
// way there.

// eightMbit are 1,000 bytes a millisecond.
const eightMbit = 8_000_000

func modelled(d inject.Delay) LinkConfig {
	d.Base = max(d.Base, 10*time.Millisecond)
	return LinkConfig{Protocol: wire.TCP, Delay: inject.Settings{
		Delay: [2]inject.Delay{wire.ToServer: d, wire.ToClient: {Base: 30 * time.Millisecond}}, FreeConnect: true}}
}

// sink is a server that notes when it has read n bytes.
func sink(n int, done chan<- time.Time) func(net.Conn) {
	return func(c net.Conn) {
		defer c.Close()
		if _, err := io.CopyN(io.Discard, c, int64(n)); err == nil {
			done <- time.Now()
		}
		_, _ = io.Copy(io.Discard, c)
	}
}

func TestModels_BandwidthIsSerialisation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, stop := bubble(t, modelled(inject.Delay{Bandwidth: eightMbit}), echo)
		defer stop()
		for _, n := range []int{1, 1000, 8000} {
			want := 40*time.Millisecond + time.Duration(n)*time.Microsecond
			if got := exchange(t, c, string(make([]byte, n))); got != want {
				t.Errorf("%d bytes: %v, want %v", n, got, want)
			}
		}
	})
}

func TestModels_LinksShareAPipe(t *testing.T) {
	for _, perConnection := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			began, first, second := time.Now(), make(chan time.Time, 1), make(chan time.Time, 1)
			lc := modelled(inject.Delay{Bandwidth: eightMbit, PerConnection: perConnection})
			lc.Pipes = new(Pipes)
			a, stopA := bubble(t, lc, sink(10_000, first))
			defer stopA()
			b, stopB := bubble(t, lc, sink(1000, second))
			defer stopB()
			_, _ = a.Write(make([]byte, 10_000))
			synctest.Wait()
			_, _ = b.Write(make([]byte, 1000))
			want := 21 * time.Millisecond
			if perConnection {
				want = 11 * time.Millisecond
			}
			if x, y := (<-first).Sub(began), (<-second).Sub(began); x != 20*time.Millisecond || y != want {
				t.Errorf("per connection %v: %v and %v, want 20ms and %v", perConnection, x, y, want)
			}
		})
	}
}

// A link that leads the other way shares what is to the server for one, and to
// the client for the other.
func TestModels_LinksThatLeadBackShareAPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, done := time.Now(), make(chan time.Time, 1)
		lc := modelled(inject.Delay{Bandwidth: eightMbit})
		lc.Pipes = new(Pipes)
		there, stopThere := bubble(t, lc, sink(10_000, done))
		defer stopThere()
		back := lc
		back.Pipes = lc.Pipes.Reversed()
		back.Delay.Delay = [2]inject.Delay{{}, {Bandwidth: eightMbit}}
		talk, stopTalk := bubble(t, back, echo)
		defer stopTalk()
		_, _ = there.Write(make([]byte, 10_000))
		synctest.Wait()
		if got := exchange(t, talk, string(make([]byte, 1000))); got != 11*time.Millisecond {
			t.Errorf("a reply behind 10 ms of the other link's requests took %v, want 11ms", got)
		}
		if got := (<-done).Sub(began); got != 20*time.Millisecond {
			t.Errorf("the requests took %v, want 20ms", got)
		}
		if lc.Pipes.Reversed().Reversed() != lc.Pipes {
			t.Error("reversed twice they are others")
		}
	})
}

// A sender that never stops gets the bandwidth, or a window a round trip, and
// is held back meanwhile: the proxy doesn't swallow what the wire can't take.
func TestModels_AFloodIsHeldBack(t *testing.T) {
	const total = 2_000_000
	for name, c := range map[string]struct {
		delay inject.Delay
		want  time.Duration
		ahead int // bytes that the client may be ahead of the server
	}{
		"bandwidth": {inject.Delay{Bandwidth: eightMbit}, 2010 * time.Millisecond, 150_000},
		// The way is longer than the queue before it: the pipe is full all the same.
		"far":    {inject.Delay{Bandwidth: eightMbit, Base: 500 * time.Millisecond}, 2500 * time.Millisecond, 1_000_000},
		"window": {inject.Delay{Window: 40_000}, 10*time.Millisecond + 49*40*time.Millisecond, 80_000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, done := time.Now(), make(chan time.Time, 1)
				client, stop := bubble(t, modelled(c.delay), sink(total, done))
				defer stop()
				for range total / 10_000 {
					_, _ = client.Write(make([]byte, 10_000))
				}
				written := time.Since(began)
				got := (<-done).Sub(began)
				if got < c.want || got > c.want+time.Microsecond {
					t.Errorf("took %v, want %v", got, c.want)
				}
				if least := time.Duration(float64(got) * (1 - float64(c.ahead)/total)); written < least {
					t.Errorf("the client was rid of it after %v of %v, want at least %v", written, got, least)
				}
			})
		})
	}
}

// lossy is the round trips of n exchanges of one segment.
func lossy(t *testing.T, l inject.Loss, n int) (rtts []time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		c, stop := bubble(t, modelled(inject.Delay{Loss: l}), echo)
		defer stop()
		for range n {
			rtts = append(rtts, exchange(t, c, "lost or not"))
		}
	})
	return rtts
}

func TestModels_LossIsATimeOutThatDoubles(t *testing.T) {
	const n, rate, rto = 2000, 0.2, 240 * time.Millisecond
	rtts := lossy(t, inject.RandomLoss(rate), n)
	seen := map[time.Duration]int{}
	for _, d := range rtts {
		seen[d-40*time.Millisecond]++
	}
	for k, want := 0, n*(1-rate); k < 3; k, want = k+1, want*rate {
		late := rto * time.Duration(1<<k-1)
		if got := float64(seen[late]); math.Abs(got-want) > 5*math.Sqrt(want) {
			t.Errorf("%v later: %v times of %d, want about %.0f", late, got, n, want)
		}
		delete(seen, late)
	}
	for late := range seen {
		if k := late/rto + 1; late%rto != 0 || k&(k-1) != 0 {
			t.Errorf("%v later is no sum of time-outs", late)
		}
	}
	if !slices.Equal(rtts, lossy(t, inject.RandomLoss(rate), n)) {
		t.Error("the same seed gave other losses")
	}
}

func TestModels_LossComesInBursts(t *testing.T) {
	const n = 2000
	late := 0
	for _, d := range lossy(t, inject.Loss{P: 0.05, R: 0.4, Bad: 1}, n) {
		if d > 40*time.Millisecond {
			late++
		}
	}
	// Every exchange ends in the good state, so the next one is lost with P.
	if want := 0.05 * n; math.Abs(float64(late)-want) > 4*math.Sqrt(want) {
		t.Errorf("%d of %d late, want about %.0f", late, n, want)
	}
}

// A segment that three follow is repeated after one round trip.
func TestModels_FastRetransmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, stop := bubble(t, modelled(inject.Delay{Loss: inject.RandomLoss(0.03)}), echo)
		defer stop()
		seen := map[time.Duration]int{}
		for range 300 {
			seen[exchange(t, c, string(make([]byte, 10*inject.SegmentSize)))]++
		}
		if seen[40*time.Millisecond] < 150 || seen[80*time.Millisecond] < 30 || seen[280*time.Millisecond] < 10 {
			t.Errorf("want most undisturbed (40ms), many after a round trip (80ms), some after a time-out (280ms): %v", seen)
		}
	})
}

func TestModels_JitterHasItsShape(t *testing.T) {
	table, err := inject.ParseTable("-8192 8192")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		delay       inject.Delay
		mean, sigma float64 // in units of the jitter
	}{
		"uniform":      {inject.Delay{}, 0, 0.577},
		"normal":       {inject.Delay{Distribution: inject.Normal}, 0, 1},
		"correlated":   {inject.Delay{Distribution: inject.Normal, Correlation: 0.5}, 0, 1},
		"pareto":       {inject.Delay{Distribution: inject.Pareto}, -0.033, 0.821},
		"paretonormal": {inject.Delay{Distribution: inject.ParetoNormal}, -0.025, 0.835},
		"table":        {inject.Delay{Table: table}, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.delay.Jitter = 2 * time.Millisecond
				client, stop := bubble(t, modelled(c.delay), echo)
				defer stop()
				const n = 3000
				var sum, squares float64
				for range n {
					x := float64(exchange(t, client, "?")-40*time.Millisecond) / float64(c.delay.Jitter)
					sum, squares = sum+x, squares+x*x
				}
				mean := sum / n
				sigma := math.Sqrt(squares/n - mean*mean)
				if math.Abs(mean-c.mean) > 0.12 || math.Abs(sigma-c.sigma) > 0.1 {
					t.Errorf("mean %.3f sigma %.3f, want %.3f and %.3f", mean, sigma, c.mean, c.sigma)
				}
			})
		})
	}
}

// Over real sockets and real time: two links and four connections that flood
// one pipe take as long as all their bytes do, and each gets all of its own.
func TestModels_RealSocketsShareAPipe(t *testing.T) {
	const each = 200_000
	done := make(chan time.Time, 4)
	lc := modelled(inject.Delay{Bandwidth: 2 * eightMbit})
	lc.Upstream, lc.Pipes = server(t, "tcp", "127.0.0.1:0", sink(each, done)), new(Pipes)
	_, a := start(t, lc)
	_, b := start(t, lc)
	clients := []net.Conn{dialLink(t, a), dialLink(t, a), dialLink(t, b), dialLink(t, b)}
	began := time.Now()
	var all sync.WaitGroup
	for _, c := range clients {
		all.Go(func() { _, _ = c.Write(make([]byte, each)) })
	}
	all.Wait()
	var last time.Time
	for range clients {
		last = <-done
	}
	// 800,000 bytes at 2,000 a millisecond, and 10 ms.
	if got := last.Sub(began); got < 410*time.Millisecond {
		t.Errorf("took %v, want at least 410ms", got)
	}
}
