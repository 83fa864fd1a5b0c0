package main

import (
	"context"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/wirewait/wirewait/internal/study"
	"github.com/wirewait/wirewait/internal/study/cluster"
	"github.com/wirewait/wirewait/trace"
)

// queued is what reads by so many clients took.
type queued struct {
	clients int
	samples study.Samples
	queue   any // the longest that was seen; nil: the server doesn't say
}

// theory: with C clients on N tickets, each operation waits until those before it
// have had their turn.
//
//	C <= N   hold
//	C > N    C / N x hold
func (s *ticketStudy) theory(clients int) time.Duration {
	if s.tickets == 0 {
		return 0
	}
	return time.Duration(max(1, float64(clients)/float64(s.tickets)) * float64(s.hold))
}

func (s *ticketStudy) measureQueues(ctx context.Context) error {
	for _, clients := range s.clients {
		q := &queued{clients: clients}
		w, err := s.watched(ctx, func() (err error) {
			q.samples, err = study.Load(ctx, clients, s.length, func(ctx context.Context, _, _ int) error { return s.read(ctx, 0) })
			return err
		})
		if err != nil {
			return err
		}
		q.queue = most(w, trace.ReadTicketsQueued)
		s.queues = append(s.queues, q)
	}
	return nil
}

// most is nil where the server doesn't say.
func most(w *cluster.Watch, m trace.Measure) any {
	if v, ok := w.Most(m); ok {
		return v
	}
	return nil
}

// limit is what reads with maxTimeMS took.
type limit struct {
	name    string
	limit   time.Duration
	all     study.Samples // those that were cut off, too
	done    study.Samples
	cut     int64
	elapsed time.Duration
}

// measureLimits lets the same clients wait as long as it takes, twice as long as
// theory says, and half as long.
func (s *ticketStudy) measureLimits(ctx context.Context) error {
	theory := max(s.theory(s.limited), s.hold)
	for _, l := range []*limit{{name: "none"}, {name: "twice the wait", limit: 2 * theory}, {name: "half the wait", limit: theory / 2}} {
		var cut atomic.Int64
		done := make([]study.Samples, s.limited)
		var err error
		l.all, err = study.Load(ctx, s.limited, s.length, func(ctx context.Context, client, _ int) error {
			begin := time.Now()
			err := s.read(ctx, l.limit)
			if e, ok := err.(mongo.CommandError); ok && e.HasErrorCode(maxTimeExpired) {
				cut.Add(1)
				return nil
			}
			done[client].Latencies = append(done[client].Latencies, time.Since(begin))
			return err
		})
		if err != nil {
			return err
		}
		for _, d := range done {
			l.done.Add(d)
		}
		l.cut, l.elapsed = cut.Load(), l.all.Elapsed
		s.limits = append(s.limits, l)
	}
	return nil
}

// document is what updates of one document, or of many, took.
type document struct {
	name      string
	samples   study.Samples
	conflicts any // how many began anew; nil: the server doesn't say
}

func (s *ticketStudy) measureDocuments(ctx context.Context) error {
	for _, d := range []*document{{name: "one document each"}, {name: "the same document"}} {
		w, err := s.watched(ctx, func() (err error) {
			d.samples, err = study.Load(ctx, s.writers, s.length, func(ctx context.Context, client, _ int) error {
				id := client
				if d.name == "the same document" {
					id = 0
				}
				_, err := s.writes().UpdateByID(ctx, id, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}})
				return err
			})
			return err
		})
		if err != nil {
			return err
		}
		if n, ok := w.Sum(trace.WriteConflicts); ok {
			d.conflicts = n
		}
		s.documents = append(s.documents, d)
	}
	return nil
}
