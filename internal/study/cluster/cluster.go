// Package cluster starts what experiments write to: a replica set in this
// process, or a PostgreSQL primary with standbys, with a link between each pair
// of members whose delay can be changed; or it connects to a real one.
//
//	app ----------> a, p                   each arrow a link of its own; the
//	b, s1 <-------> a, p                   application's delays nothing
//	c, s2 <-------> a, p
package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// Collection, Table: all that experiments write goes here, and is dropped when
// they end.
const (
	Database   = "wirewait_examples" // of MongoDB
	Collection = "writes"
	Table      = "wirewait_examples" // of PostgreSQL
)

// app is where the application's link comes from, by which its writes are told.
const app = "app"

// endTime is what each part of the end may take.
const endTime = 10 * time.Second

// links are a proxy, and what was seen on it. Without links all is nil.
type links struct {
	proxy  *proxy.Proxy
	tracer *trace.Tracer
	judge  judge
}

func (l *links) open(list []proxy.LinkConfig, seed uint64) (err error) {
	l.tracer = trace.New(4096, &l.judge)
	// The links stay until the cluster has gone, whatever ends the experiment.
	l.proxy, err = proxy.Start(context.Background(), proxy.Config{Links: list, Tracer: l.tracer, Seed: seed})
	return err
}

func (l *links) close() error {
	if l.tracer == nil {
		return nil
	}
	defer l.tracer.Close()
	if l.proxy == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	return l.proxy.Shutdown(ctx)
}

// addr is where a link listens.
func (l *links) addr(name string) string { return l.proxy.Link(name).Addr().String() }

// far puts a member so far away from all others, by its full name.
func (l *links) far(member string, rtt time.Duration) error {
	found := false
	for _, link := range l.proxy.Links() {
		if c := link.Config(); c.From != app && (c.From == member || c.To == member) {
			link.SetDelay(inject.Symmetric(rtt, 0))
			found = true
		}
	}
	if !found {
		return fmt.Errorf("no link leads from or to %s", member)
	}
	return nil
}

// linkName is "b-a" for the link by which b reaches a.
func linkName(from, to string) string { return from + "-" + to }

// Released says who released writes: how many each member, by its name.
// "nobody" stands for those that waited for no other member, and "tie", "unknown"
// and the like for those of which it can't be told, with why.
type Released map[string]int

// String is "s1 39, unknown 1"; empty without any.
func (r Released) String() string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(r)) {
		words = append(words, fmt.Sprintf("%s %d", name, r[name]))
	}
	return strings.Join(words, ", ")
}

// Most is who released more than half; empty: no single one did.
func (r Released) Most() string {
	all := 0
	for _, n := range r {
		all += n
	}
	for name, n := range r {
		if 2*n > all {
			return name
		}
	}
	return ""
}

// judge is the trace.Consumer that counts who released the application's writes.
type judge struct {
	mu   sync.Mutex
	seen map[string]Released // by what the write waited for
	n    int
}

// Consume counts one write.
func (j *judge) Consume(f *trace.Finished) {
	if !f.Write || f.Conn.From != app || f.Deferred() || f.Protocol == wire.MongoDB && f.Collection != Collection {
		return
	}
	// rs0.b is b, and pg.s1 is s1.
	by := f.Replication.ReleasedBy
	by = by[strings.LastIndexByte(by, '.')+1:]
	if by == "" {
		switch by = f.Replication.Basis; by {
		case trace.BasisNotWaited, trace.BasisNoCommit, trace.BasisUpperBound:
			by = "nobody"
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.seen == nil {
		j.seen = map[string]Released{}
	}
	concern := strings.TrimPrefix(f.Concern(), "w:")
	if j.seen[concern] == nil {
		j.seen[concern] = Released{}
	}
	j.seen[concern][by]++
	j.n++
}

// take waits until n writes have been judged since it was last called, and
// returns who released them, by what they waited for. A write that was lost on
// the way to the judge is waited for a while only.
func (j *judge) take(ctx context.Context, n int) (map[string]Released, error) {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	for {
		j.mu.Lock()
		seen, count := j.seen, j.n
		if count >= n {
			j.seen, j.n = nil, 0
			j.mu.Unlock()
			return seen, nil
		}
		j.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d writes were seen on the wire: %w", count, n, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}
