package study

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
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
	begin := time.Now()
	all, err := Loop(ctx, clients, d, op)
	s := Between(all, 0, math.MaxInt64)
	s.Elapsed = time.Since(begin)
	return s, err
}

// Loop is Load, and says when each op began.
func Loop(ctx context.Context, clients int, d time.Duration, op func(ctx context.Context, client, i int) error) ([]Timed, error) {
	begin := time.Now()
	return together(ctx, clients, func(ctx context.Context, client int, add func(Timed)) error {
		for i := 0; ; i++ {
			due := time.Since(begin)
			if due >= d || ctx.Err() != nil {
				return nil
			}
			if err := op(ctx, client, i); err != nil {
				return err
			}
			add(Timed{due, time.Since(begin) - due})
		}
	})
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
