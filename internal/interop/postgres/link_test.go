package postgres

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// What the link of the matrix adds: 2.5 ms each way, give or take 1 ms.
const (
	roundTrip = 5 * time.Millisecond
	jitter    = time.Millisecond
)

// link is a proxy in front of one server, and what its tracer got.
type link struct {
	t      *testing.T
	proxy  *proxy.Proxy
	tracer *trace.Tracer
	log    lockedLog
	least  time.Duration // of delay in one direction

	mu     sync.Mutex
	writes map[string]int // by operation
	all    uint64         // writes or not, replication left out
}

type lockedLog struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// startLink starts a link to a server, which ends with the test.
func startLink(t *testing.T, upstream string) *link {
	t.Helper()
	return startSlow(t, upstream, roundTrip, jitter)
}

func startSlow(t *testing.T, upstream string, roundTrip, jitter time.Duration) *link {
	t.Helper()
	l := &link{t: t, writes: map[string]int{}, least: roundTrip/2 - jitter}
	l.tracer = trace.New(1<<17, l)
	t.Cleanup(l.tracer.Close)
	var err error
	l.proxy, err = proxy.Start(context.Background(), proxy.Config{
		Tracer: l.tracer, Reads: true, Log: slog.New(slog.NewTextHandler(&l.log, nil)),
		Links: []proxy.LinkConfig{{
			Listen: "127.0.0.1:0", Upstream: upstream, Protocol: wire.Postgres,
			Delay: inject.Symmetric(roundTrip, jitter), TLS: proxy.TLSConfig{Client: "decline"},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = l.proxy.Shutdown(ctx)
	})
	return l
}

func (l *link) addr() string { return l.proxy.Links()[0].Addr().String() }

// Consume counts an exchange and looks at its waits.
func (l *link) Consume(f *trace.Finished) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.Background() {
		return
	}
	l.all++
	if !f.Write {
		return
	}
	l.writes[f.Operation]++
	sum := time.Duration(0)
	for _, p := range f.Waits.Parts() {
		sum += p.Time
	}
	// The second and later results of one Query have no request of their own,
	// and a COPY may be refused or given up before all of it was sent.
	least := l.least
	if f.Operation == "COPY" && !f.OK {
		least = 0
	}
	late := f.Sides[wire.ToServer].Bytes == 0
	if sum != f.Waits.Total || !late && f.Waits.Request < least || f.Answered && f.Waits.Reply < least {
		l.t.Errorf("%s: waits %+v: want parts that add up, request and reply of at least %v", f.Operation, f.Waits, least)
	}
}

// finish ends the link, whose clients must be gone, and returns how many
// writes it saw, by operation. All of what passed must have been read.
func (l *link) finish() map[string]int {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := l.proxy.Shutdown(ctx); err != nil {
		l.t.Errorf("the proxy did not end by itself: %v", err)
	}
	l.tracer.Close()
	n := l.proxy.Counters()
	if n.Opaque+n.Encrypted+n.Dropped+n.DialFailures > 0 || len(n.DecodeFailures) > 0 || n.BytesLive != 0 {
		l.t.Errorf("counters %+v: want nothing unread, dropped or left; log:\n%s", n, l.log.text())
	}
	if n.ConnectionsTotal == 0 || n.ConnectionsOpen != 0 {
		l.t.Errorf("connections: %d in all, %d left", n.ConnectionsTotal, n.ConnectionsOpen)
	}
	return l.writes
}
