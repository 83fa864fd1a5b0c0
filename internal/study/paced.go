package study

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Timed is an operation: when it was due, since the start, and how long from
// then on it took.
type Timed struct{ Due, Took time.Duration }

// Paced has clients do op at a steady rate in all, so many a second, until the
// time is over. An op that is late because the one before it took long counts
// from when it was due: a server that stalls is seen by all who'd have come
// meanwhile, not only by those whom it kept waiting. They are returned in the
// order in which they were due. The first error ends it.
//
//	client 0   |  |  |  |  |       due every clients / rate
//	client 1    |  |  |  |  |
func Paced(ctx context.Context, clients int, rate float64, d time.Duration, op func(ctx context.Context, client, i int) error) ([]Timed, error) {
	gap := time.Duration(float64(time.Second) / rate)
	begin := time.Now()
	return together(ctx, clients, func(ctx context.Context, client int, add func(Timed)) error {
		for i := 0; ; i++ {
			due := time.Duration(i*clients+client) * gap
			if due >= d || Pause(ctx, due-time.Since(begin)) != nil {
				return nil
			}
			if err := op(ctx, client, i); err != nil {
				return err
			}
			add(Timed{due, time.Since(begin) - due})
		}
	})
}

// together runs all clients until each has ended, or one has failed, and returns
// what they have added in the order in which it was due.
func together(ctx context.Context, clients int, run func(ctx context.Context, client int, add func(Timed)) error) ([]Timed, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	all := make([][]Timed, clients)
	var wait sync.WaitGroup
	for client := range clients {
		wait.Go(func() {
			if err := run(ctx, client, func(x Timed) { all[client] = append(all[client], x) }); err != nil {
				cancel(fmt.Errorf("client %d: %w", client, err))
			}
		})
	}
	wait.Wait()
	done := slices.Concat(all...)
	slices.SortStableFunc(done, func(a, b Timed) int { return cmp.Compare(a.Due, b.Due) })
	return done, context.Cause(ctx)
}

// Between are the latencies of those that were due from from to to.
func Between(all []Timed, from, to time.Duration) (s Samples) {
	for _, x := range all {
		if x.Due >= from && x.Due < to {
			s.Latencies = append(s.Latencies, x.Took)
		}
	}
	s.Elapsed = to - from
	return s
}

// Windows cuts the time until end into windows of a length.
func Windows(all []Timed, length, end time.Duration) (cut []Window) {
	for from := time.Duration(0); from < end; from += length {
		cut = append(cut, Window{from, from + length, Between(all, from, from+length)})
	}
	return cut
}

// Window is a stretch of time and the operations that were due in it.
type Window struct {
	From, To time.Duration
	Samples
}
