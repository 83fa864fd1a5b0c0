package soak

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

var (
	length = flag.Duration("soak", 3*time.Second, "how long the soak lasts")
	seed   = flag.Uint64("soak-seed", 0, "the seed of an earlier soak (default: another each time)")
)

// target is a server behind a flaky relay behind a link, and who uses it.
type target struct {
	name    string
	client  client
	clients int
	relay   *flaky
	done    atomic.Int64
}

// writes counts what the tracer was given.
type writes struct{ n atomic.Int64 }

func (w *writes) Consume(*trace.Finished) { w.n.Add(1) }

func TestSoak(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(rand.Uint32())
	}
	t.Logf("seed %d, for %v", *seed, *length)
	before := census()

	targets, stop := servers(t)
	var config proxy.Config
	var seen writes
	config.Tracer, config.Seed = trace.New(1<<16, &seen), *seed
	for _, s := range targets {
		config.Links = append(config.Links, proxy.LinkConfig{Name: s.name, Listen: "127.0.0.1:0", Upstream: s.relay.addr()})
	}
	p, err := proxy.Start(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	heap := run(t, p, targets)

	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := p.Shutdown(ctx); err != nil {
		t.Error("shutdown:", err)
	}
	config.Tracer.Close()
	c := p.Counters()
	stop()

	for _, s := range targets {
		t.Logf("%-10s %d operations", s.name, s.done.Load())
		if s.done.Load() == 0 {
			t.Errorf("%s: nothing was done", s.name)
		}
	}
	t.Logf("%d connections, %d exchanges, %d writes traced, heap in use %v MiB", c.ConnectionsTotal, c.Exchanges, seen.n.Load(), heap)
	if seen.n.Load() == 0 {
		t.Error("no write was seen")
	}
	if len(c.DecodeFailures) > 0 || c.Opaque > 0 || c.Encrypted > 0 {
		t.Errorf("could not be decoded: %v, opaque %d, encrypted %d", c.DecodeFailures, c.Opaque, c.Encrypted)
	}
	if c.ConnectionsOpen != 0 || c.BytesLive != 0 {
		t.Errorf("left: %d connections, %d bytes", c.ConnectionsOpen, c.BytesLive)
	}
	checkHeap(t, heap)
	before.compare(t)
}

// servers starts one server of each kind.
func servers(t *testing.T) (targets []*target, stop func()) {
	plain, stopPlain := frameServer(t)
	peer, err := lab.StartMongo(lab.MongoOptions{Compressors: []string{"snappy", "zlib", "zstd"}})
	if err != nil {
		t.Fatal(err)
	}
	targets = []*target{
		{name: "tcp", client: frames, clients: 4, relay: newFlaky(t, plain)},
		{name: "mongodb", client: mongoClient(), clients: 2, relay: newFlaky(t, peer.Addr())},
		{name: "compressed", client: mongoClient("zstd", "snappy"), clients: 2, relay: newFlaky(t, peer.Addr())},
	}
	pg, err := lab.StartPostgres(context.Background(), lab.PostgresOptions{})
	switch {
	case err == nil:
		createTable(t, pg.URL(pg.Addr()))
		url := func(addr string) string { return pg.URL(addr) }
		targets = append(targets, &target{name: "postgres", client: postgresClient(url), clients: 4, relay: newFlaky(t, pg.Addr())})
	case errors.Is(err, lab.ErrNoPostgres) && os.Getenv("WIREWAIT_CI") != "1":
		t.Log("without PostgreSQL:", err)
	default:
		t.Fatal(err)
	}
	return targets, func() {
		for _, s := range targets {
			s.relay.close()
		}
		stopPlain()
		peer.Stop()
		if pg != nil {
			if err := pg.Stop(); err != nil {
				t.Error(err)
			}
		}
	}
}

func createTable(t *testing.T, url string) {
	t.Helper()
	ctx := context.Background()
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	if _, err := c.Exec(ctx, "create unlogged table soak (b bytea)"); err != nil {
		t.Fatal(err)
	}
}

// run lets the clients work while delays change and connections are dropped. It
// returns the heap in use at ten moments, in MiB.
func run(t *testing.T, p *proxy.Proxy, targets []*target) (heap []int) {
	ctx, cancel := context.WithTimeout(context.Background(), *length)
	defer cancel()
	var wg sync.WaitGroup
	for i, s := range targets {
		addr := p.Link(s.name).Addr().String()
		for j := range s.clients {
			rnd := rand.New(rand.NewPCG(*seed, uint64(i*100+j)))
			wg.Go(func() {
				for ctx.Err() == nil {
					n, wrong := s.client(ctx, addr, rnd)
					s.done.Add(int64(n))
					if wrong != nil {
						t.Errorf("%s: %v", s.name, wrong)
					}
				}
			})
		}
		wg.Go(func() { disturb(ctx, p.Link(s.name), s.relay, rand.New(rand.NewPCG(*seed, uint64(1000+i)))) })
	}
	for range 10 {
		select {
		case <-time.After(*length / 10):
		case <-ctx.Done():
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		heap = append(heap, int(m.HeapAlloc>>20))
	}
	cancel()
	wg.Wait()
	return heap
}

// disturb changes the link's delays and drops the upstream's connections.
func disturb(ctx context.Context, l *proxy.Link, relay *flaky, rnd *rand.Rand) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(50+rnd.IntN(400)) * time.Millisecond):
		}
		if rnd.IntN(8) == 0 {
			relay.drop(rnd)
			continue
		}
		var s inject.Settings
		for d := range s.Delay {
			base := time.Duration(rnd.IntN(8000)) * time.Microsecond
			s.Delay[wire.Direction(d)] = inject.Delay{Base: base, Jitter: base / time.Duration(1+rnd.IntN(4))}
		}
		s.FreeConnect = rnd.IntN(2) == 0
		l.SetDelay(s)
	}
}

// checkHeap compares the later half of a run with the earlier one. A leak of a
// few KiB an operation would double it in ten minutes.
func checkHeap(t *testing.T, heap []int) {
	sum := func(v []int) (n int) {
		for _, x := range v {
			n += x
		}
		return n / len(v)
	}
	early, late := sum(heap[2:6]), sum(heap[6:])
	if late > early*3/2+32 {
		t.Errorf("the heap grew from %d to %d MiB: %v", early, late, heap)
	}
}

// counts of what a process holds.
type counts struct{ goroutines, files int }

func census() counts {
	entries, _ := os.ReadDir("/proc/self/fd") // 0 where there is none
	return counts{runtime.NumGoroutine(), len(entries)}
}

// files lists the descriptors that are open.
func files() (list string) {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		to, _ := os.Readlink("/proc/self/fd/" + e.Name())
		list += e.Name() + " " + to + "\n"
	}
	return list
}

// compare waits for everything to be given back.
func (c counts) compare(t *testing.T) {
	now := census()
	for range 500 {
		// The poller keeps descriptors of its own once it is in use.
		if now.goroutines <= c.goroutines && now.files <= c.files+4 {
			return
		}
		time.Sleep(10 * time.Millisecond)
		now = census()
	}
	buf := make([]byte, 1<<20)
	t.Errorf("left over: %+v, before: %+v\n%s\n%.20000s", now, c, files(), buf[:runtime.Stack(buf, true)])
}
