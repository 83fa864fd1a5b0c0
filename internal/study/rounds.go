package study

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Rounds has every one of n settings done once a round, each round in an order
// of its own, and ends at the first error.
func Rounds(rounds, n int, chance *rand.Rand, do func(round, setting int) error) error {
	for round := range rounds {
		for _, setting := range chance.Perm(n) {
			if err := do(round, setting); err != nil {
				return err
			}
		}
	}
	return nil
}

// Samples are the latencies of operations, and how long all of them took.
type Samples struct {
	Latencies []time.Duration
	Elapsed   time.Duration
}

// Add appends more of the same.
func (s *Samples) Add(more Samples) {
	s.Latencies = append(s.Latencies, more.Latencies...)
	s.Elapsed += more.Elapsed
}

// Quantile of the latencies, interpolated; 0 without any. q is from 0 to 1.
func (s *Samples) Quantile(q float64) time.Duration {
	if len(s.Latencies) == 0 {
		return 0
	}
	sorted := make([]float64, len(s.Latencies))
	for i, d := range s.Latencies {
		sorted[i] = float64(d)
	}
	slices.Sort(sorted)
	return time.Duration(Quantile(sorted, q))
}

// Throughput is operations a second.
func (s *Samples) Throughput() float64 {
	if s.Elapsed <= 0 {
		return 0
	}
	return float64(len(s.Latencies)) / s.Elapsed.Seconds()
}

// Load has so many clients do op over and over until the time is over, each
// waiting for its own, and measures every op. An op that runs when the time is
// over is waited for and counted. op gets the number of the client and of its
// op. The first error ends it.
func Load(ctx context.Context, clients int, d time.Duration, op func(ctx context.Context, client, i int) error) (Samples, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	all := make([][]time.Duration, clients)
	begin := time.Now()
	var wait sync.WaitGroup
	for client := range clients {
		wait.Go(func() {
			for i := 0; time.Since(begin) < d && ctx.Err() == nil; i++ {
				start := time.Now()
				if err := op(ctx, client, i); err != nil {
					cancel(fmt.Errorf("client %d: %w", client, err))
					return
				}
				all[client] = append(all[client], time.Since(start))
			}
		})
	}
	wait.Wait()
	s := Samples{Latencies: slices.Concat(all...), Elapsed: time.Since(begin)}
	return s, context.Cause(ctx)
}

// Times does op n times in a row and measures each.
func Times(ctx context.Context, n int, op func(ctx context.Context, i int) error) (Samples, error) {
	var s Samples
	begin := time.Now()
	for i := range n {
		start := time.Now()
		if err := op(ctx, i); err != nil {
			return s, err
		}
		s.Latencies = append(s.Latencies, time.Since(start))
	}
	s.Elapsed = time.Since(begin)
	return s, ctx.Err()
}

// Pause waits, or ends with the context and returns its error.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
