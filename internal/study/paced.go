package study

import (
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
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	gap := time.Duration(float64(time.Second) / rate)
	all := make([][]Timed, clients)
	begin := time.Now()
	var wait sync.WaitGroup
	for client := range clients {
		wait.Go(func() {
			for i := 0; ; i++ {
				due := time.Duration(i*clients+client) * gap
				if due >= d || Pause(ctx, due-time.Since(begin)) != nil {
					return
				}
				if err := op(ctx, client, i); err != nil {
					cancel(fmt.Errorf("client %d: %w", client, err))
					return
				}
				all[client] = append(all[client], Timed{due, time.Since(begin) - due})
			}
		})
	}
	wait.Wait()
	done := slices.Concat(all...)
	slices.SortFunc(done, func(a, b Timed) int { return int(a.Due - b.Due) })
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
