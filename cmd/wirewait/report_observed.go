package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wirewait/wirewait/proxy/admin"
	"github.com/wirewait/wirewait/proxy/observe"
	"github.com/wirewait/wirewait/trace"
)

// observedSeconds is how many of a server's samples a report shows.
const observedSeconds = 10

// observer asks a server for a report, beside a running wirewait or without one.
type observer struct {
	name    string
	seen    trace.Activities
	sampler observe.Sampler
	end     context.CancelFunc
	running sync.WaitGroup
	failed  error // for a URI that is none; once running has ended
	first   chan struct{}
}

// startObserver begins to ask the server of a URI. stop must be called.
func startObserver(ctx context.Context, uri string, every time.Duration, log io.Writer) *observer {
	o := &observer{name: hostOfURI(uri), first: make(chan struct{})}
	o.sampler = observe.Sampler{Server: o.name, URI: uri, Every: every, Log: slog.New(slog.NewTextHandler(log, nil))}
	o.seen.Watch(o.name, every)
	ctx, o.end = context.WithCancel(ctx)
	var once sync.Once
	o.running.Go(func() {
		defer once.Do(func() { close(o.first) })
		o.failed = o.sampler.Watch(ctx, func(a *trace.Activity) {
			o.seen.Add(o.name, a)
			once.Do(func() { close(o.first) })
		})
	})
	return o
}

func (o *observer) stop() {
	o.end()
	o.running.Wait()
}

// wait returns once there is a sample, which takes two looks at the server.
func (o *observer) wait(ctx context.Context) error {
	select {
	case <-o.first:
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(askTime + 2*o.sampler.Every):
		return fmt.Errorf("%s says nothing of what it does: is it there, and may the user ask?", o.name)
	}
	if len(o.seen.Latest(o.name, 1)) == 0 { // it ended without
		o.running.Wait()
		return errors.Join(o.failed, ctx.Err())
	}
	return nil
}

// observed is what the server did lately.
func (o *observer) observed() admin.ObservedServer {
	return admin.DescribeServer(o.name, o.seen.Latest(o.name, observedSeconds))
}

// hostOfURI is the host and port, or several, without what may be secret.
func hostOfURI(uri string) string {
	_, host, _ := strings.Cut(redactURI(uri), "://")
	if i := strings.IndexAny(host, "/?"); i >= 0 {
		host = host[:i]
	}
	if host == "" {
		return "the server"
	}
	return host
}

// observedColumns are the measures of the report's table, with a short head each.
// Those that say nothing in any second are left out.
var observedColumns = []struct {
	m    trace.Measure
	head string
}{
	{trace.Checkpoint, "checkpoint"}, {trace.CheckpointTime, "last ms"},
	{trace.JournalSyncs, "syncs/s"}, {trace.JournalTime, "ms/sync"}, {trace.JournalBytes, "journal/s"},
	{trace.Tickets, "tickets"}, {trace.TicketsAvailable, "free"}, {trace.TicketsQueued, "queued"}, {trace.TicketWait, "queue ms"}, {trace.TicketsCanceled, "gave up/s"},
	{trace.ReadTickets, "read tickets"}, {trace.ReadTicketsAvailable, "free"}, {trace.ReadTicketsQueued, "queued"}, {trace.ReadTicketWait, "queue ms"}, {trace.ReadTicketsCanceled, "gave up/s"},
	{trace.TicketsShort, "short"},
	{trace.FlowControl, "flow control"}, {trace.FlowControlWait, "held ms/s"},
	{trace.MajorityLag, "majority lag ms"}, {trace.Lag, "lag ms"},
	{trace.Writes, "writes/s"}, {trace.WriteTime, "write ms"}, {trace.WriteConflicts, "conflicts/s"},
	{trace.Active, "active"}, {trace.WaitingSync, "wait standby"}, {trace.WaitingWAL, "wait WAL"}, {trace.WaitingLock, "wait lock"},
	{trace.DirtyBuffers, "dirty"}, {trace.SampleCost, "cost ms"},
}

// observedTable is what one server did, by second.
func observedTable(s *admin.ObservedServer) string {
	head := fmt.Sprintf("%s, by second: what it did meanwhile, which need not be why\n", printable(s.Server))
	if len(s.Samples) == 0 {
		return head + "it hasn't been looked at twice yet, or doesn't answer (the log says so)\n"
	}
	samples := s.Samples[max(len(s.Samples)-observedSeconds, 0):]
	cells := make([][]string, len(samples)+1)
	cells[0] = []string{"at"}
	for i, d := range samples {
		cells[i+1] = []string{d.At.Local().Format(time.TimeOnly)}
	}
	for _, c := range observedColumns {
		if !tells(c.m, samples) {
			continue
		}
		cells[0] = append(cells[0], c.head)
		for i, d := range samples {
			v, ok := d.Values[c.m.String()]
			cells[i+1] = append(cells[i+1], measured(c.m, v, ok))
		}
	}
	if len(cells[0]) <= 2 { // what the look itself cost
		return head + fmt.Sprintf("nothing, in the last %d looks\n", len(samples))
	}
	text := head + trace.Align(cells, 1)
	if lags := memberLags(&samples[len(samples)-1]); lags != "" {
		text += "members behind it: " + lags + "\n"
	}
	if s.TicketRule != "" && (tells(trace.Tickets, samples) || tells(trace.ReadTickets, samples)) {
		text += "tickets, " + s.TicketRule + "\n"
	}
	return text
}

// tells reports whether a measure says something in one of the seconds: how many
// tickets there are does if some were taken.
func tells(m trace.Measure, samples []admin.Sample) bool {
	pool := map[trace.Measure][3]trace.Measure{
		trace.Tickets: writeTickets, trace.TicketsAvailable: writeTickets,
		trace.ReadTickets: readTickets, trace.ReadTicketsAvailable: readTickets,
	}[m]
	return slices.ContainsFunc(samples, func(d admin.Sample) bool {
		at := func(m trace.Measure) float64 { return d.Values[m.String()] }
		if pool == ([3]trace.Measure{}) {
			return at(m) != 0
		}
		return at(pool[1]) < at(pool[0]) || at(pool[2]) > 0
	})
}

// The tickets of a kind that there are, that are free, and that are waited for.
var (
	writeTickets = [3]trace.Measure{trace.Tickets, trace.TicketsAvailable, trace.TicketsQueued}
	readTickets  = [3]trace.Measure{trace.ReadTickets, trace.ReadTicketsAvailable, trace.ReadTicketsQueued}
)

func measured(m trace.Measure, v float64, ok bool) string {
	switch {
	case !ok:
		return "-"
	case m.Kind() == trace.Mark && v != 0:
		return "yes"
	case m.Kind() == trace.Mark:
		return "no"
	case m.Kind() == trace.BytesPerSecond:
		return size(int64(v))
	case m.Kind() == trace.Number:
		return fmt.Sprintf("%.0f", v)
	}
	return milli(v)
}

// memberLags is "rs0.b 12.00 ms, rs0.c 840.0 ms", by what they have applied.
func memberLags(s *admin.Sample) string {
	var words []string
	for _, l := range s.Lags {
		if l.Applied != nil {
			words = append(words, fmt.Sprintf("%s %s ms", printable(l.Member), milli(*l.Applied)))
		}
	}
	return strings.Join(words, ", ")
}
