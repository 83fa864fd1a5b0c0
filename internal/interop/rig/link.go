package rig

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// Options say what a link is to be.
type Options struct {
	Upstream string // host:port
	Protocol wire.Protocol
	// RTT is divided in halves; Jitter is of each.
	RTT, Jitter time.Duration
	// Reads go to the consumer too.
	Reads bool
}

// Link is a proxy with one link, or several, which decline TLS, and its tracer.
type Link struct {
	Proxy  *proxy.Proxy
	Log    Log
	tracer *trace.Tracer
}

// Start starts a link, which ends with the test at the latest. What is seen
// goes to c.
func Start(t *testing.T, o Options, c trace.Consumer) *Link {
	t.Helper()
	return StartLinks(t, o, []proxy.LinkConfig{{Upstream: o.Upstream}}, c)
}

// StartLinks is Start for several, of which it fills in what they have in common.
func StartLinks(t *testing.T, o Options, links []proxy.LinkConfig, c trace.Consumer) *Link {
	t.Helper()
	l := &Link{tracer: trace.New(1<<17, c)}
	t.Cleanup(l.tracer.Close)
	for i := range links {
		links[i].Listen, links[i].Protocol = "127.0.0.1:0", o.Protocol
		links[i].Delay, links[i].TLS = inject.Symmetric(o.RTT, o.Jitter), proxy.TLSConfig{Client: "decline"}
	}
	var err error
	l.Proxy, err = proxy.Start(context.Background(), proxy.Config{
		Tracer: l.tracer, Reads: o.Reads, Seed: 1, Log: slog.New(slog.NewTextHandler(&l.Log, nil)), Links: links,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = l.Proxy.Shutdown(ctx)
	})
	return l
}

// Addr is where the link, or the first of several, listens.
func (l *Link) Addr() string { return l.Proxy.Links()[0].Addr().String() }

// Stop ends the link, whose clients must be gone, and checks that all that
// passed was read and nothing kept. It returns how often what is excused, the
// reason of a decode failure, happened nevertheless.
func (l *Link) Stop(t *testing.T, excused string) (times uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := l.Proxy.Shutdown(ctx); err != nil {
		t.Errorf("the proxy did not end by itself: %v", err)
	}
	l.tracer.Close()
	n := l.Proxy.Counters()
	times = n.DecodeFailures[excused]
	delete(n.DecodeFailures, excused)
	if n.Opaque+n.Encrypted+n.Dropped+n.DialFailures > 0 || len(n.DecodeFailures) > 0 || n.BytesLive != 0 {
		t.Errorf("counters %+v: want nothing unread, dropped or left; log:\n%s", n, l.Log.String())
	}
	if n.ConnectionsTotal == 0 || n.ConnectionsOpen != 0 {
		t.Errorf("connections: %d in all, %d left", n.ConnectionsTotal, n.ConnectionsOpen)
	}
	return times
}

// Keep is a consumer that keeps a copy of every exchange. All may be read once
// the link has stopped.
type Keep struct {
	mu  sync.Mutex
	All []trace.Finished
}

// Consume implements trace.Consumer.
func (k *Keep) Consume(f *trace.Finished) {
	x := *f.Exchange
	x.Mongo.WriteConcern.Raw = slices.Clone(x.Mongo.WriteConcern.Raw)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.All = append(k.All, trace.Finished{Exchange: &x, Conn: f.Conn, Waits: f.Waits})
}

// Log may be read while it is written.
type Log struct {
	mu sync.Mutex
	b  strings.Builder
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String is what was written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
