// Command delayed-member shows what a voting member with secondaryDelaySecs does
// to majority once another member is gone: every write waits for the delay.
package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/wirewait/wirewait/internal/chart"
	"github.com/wirewait/wirewait/internal/lab/mongod"
	"github.com/wirewait/wirewait/internal/study"
	"github.com/wirewait/wirewait/internal/study/cluster"
)

func main() {
	study.Experiment{
		Name: "delayed-member",
		About: "Writes to a set of three whose third member votes and is delayed (secondaryDelaySecs),\n" +
			"while all are there, while the second is gone, and after it has come back.",
		URI: "connection `string` of a real set, which is written to as it is; its database " + cluster.Database + " is dropped (default: a model of three members)",
		Do:  run,
	}.Main()
}

// row is what writes of one concern took in one state of the set.
type row struct {
	state, concern string
	theory         time.Duration
	samples        study.Samples
	released       cluster.Released
}

// delayStudy is one run.
type delayStudy struct {
	*study.Run
	set    *cluster.Mongo
	writes int
	rows   []*row
}

func run(ctx context.Context, r *study.Run) (err error) {
	s := &delayStudy{Run: r, writes: 20}
	delay := 5 * time.Second
	if r.Quick {
		s.writes, delay = 3, time.Second
	}
	s.set, err = cluster.StartMongo(ctx, r, []mongod.MemberOptions{{Name: "a"}, {Name: "b"}, {Name: "c", Delay: delay}}, mongod.Engine{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.set.Close()) }()
	if s.set.Lab == nil {
		err = s.asItIs(ctx)
	} else {
		err = s.play(ctx, delay)
	}
	if err != nil {
		return err
	}
	return errors.Join(r.Table("", s.table()), r.SVG("", s.draw()))
}

// play has b go and come back, on the lab.
func (s *delayStudy) play(ctx context.Context, delay time.Duration) error {
	b := s.set.Lab.Member("b")
	const there, gone, back = "all are there", "b is gone", "b is back"
	for _, step := range []func() error{
		func() error { return s.measure(ctx, there, "1", 0) },
		func() error { return s.measure(ctx, there, "majority", 0) },
		func() error { return s.measure(ctx, there, "3", delay) },
		b.Stop,
		func() error { return s.measure(ctx, gone, "1", 0) },
		func() error { return s.measure(ctx, gone, "majority", delay) },
		b.Start,
		func() error { return s.caughtUp(ctx, b) },
		func() error { return s.measure(ctx, back, "1", 0) },
		func() error { return s.measure(ctx, back, "majority", 0) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// caughtUp waits until a member has all that the primary has, and the primary
// may know it.
func (s *delayStudy) caughtUp(ctx context.Context, m *mongod.Member) error {
	for {
		if a := s.set.Lab.Primary(); a != nil && !m.Status().Durable.Before(a.Status().Written) {
			return study.Pause(ctx, 100*time.Millisecond)
		}
		if err := study.Pause(ctx, 10*time.Millisecond); err != nil {
			return fmt.Errorf("wait for %s to catch up: %w", m.Name(), err)
		}
	}
}

// asItIs writes to a real set.
func (s *delayStudy) asItIs(ctx context.Context) error {
	v, err := s.set.Voters(ctx)
	if err != nil {
		return err
	}
	theory, ok := v.Majority()
	if !ok {
		return fmt.Errorf("%d votes, and only %d secondaries with data are there: majority would wait for ever", v.Votes, len(v.Delays))
	}
	s.Say("votes: %d, delays of the secondaries that are there: %v", v.Votes, v.Delays)
	return errors.Join(s.measure(ctx, "as it is", "1", 0), s.measure(ctx, "as it is", "majority", theory))
}

// gap is between the beginnings of two writes: they needn't wait for each other.
const gap = 20 * time.Millisecond

// measure starts writes one after the other and waits for all.
func (s *delayStudy) measure(ctx context.Context, state, concern string, theory time.Duration) error {
	s.Say("%s: %d writes with w: %s", state, s.writes, concern)
	w := &writeconcern.WriteConcern{W: concern}
	switch concern {
	case "1":
		w.W = 1
	case "3":
		w.W = 3
	}
	r := &row{state: state, concern: concern, theory: theory}
	writes := s.set.Writes(w)
	var wait sync.WaitGroup
	var mu sync.Mutex
	var errs error
	begin := time.Now()
	for range s.writes {
		wait.Go(func() {
			got, err := study.Times(ctx, 1, func(ctx context.Context, _ int) error {
				_, err := writes.InsertOne(ctx, bson.D{{Key: "state", Value: state}})
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			r.samples.Add(got)
			errs = errors.Join(errs, err)
		})
		if err := study.Pause(ctx, gap); err != nil {
			errs = errors.Join(errs, err)
			break
		}
	}
	wait.Wait()
	if errs != nil {
		return fmt.Errorf("insert with w: %s while %s: %w", concern, state, errs)
	}
	r.samples.Elapsed = time.Since(begin)
	released, err := s.set.Released(ctx, s.writes)
	r.released = released[concern]
	s.rows = append(s.rows, r)
	return err
}

func (s *delayStudy) table() *study.Table {
	t := &study.Table{
		Title:   "Writes by who is there, and what they wait for",
		Columns: []string{"state", "w", "released by", "writes", "theory ms", "min ms", "p50 ms", "p95 ms"},
		Left:    3,
		Note:    "theory: the delay of the member without which the concern can't be met.",
	}
	for _, r := range s.rows {
		t.Add(r.state, r.concern, r.released.String(), len(r.samples.Latencies), r.theory, r.samples.Quantile(0), r.samples.Quantile(0.5), r.samples.Quantile(0.95))
	}
	return t
}

func (s *delayStudy) draw() []byte {
	c := chart.Dots{Title: "What a delayed member with a vote costs", Note: "ms; dot: p50, bar: min to max, dashes: the delay of the member without which the concern can't be met"}
	classes := map[string]string{"1": chart.Class(0), "majority": chart.Class(1), "3": chart.Class(2)}
	for _, r := range s.rows {
		ms := func(q float64) float64 { return r.samples.Quantile(q).Seconds() * 1e3 }
		goal := r.theory.Seconds() * 1e3
		c.Rows = append(c.Rows, chart.Dot{
			Name: r.state + ": w: " + r.concern, Class: classes[r.concern], Low: ms(0), Median: ms(0.5), High: ms(1), Goal: &goal,
			Label: fmt.Sprintf("%.1f, %s", ms(0.5), r.released.Most()),
		})
	}
	return c.SVG()
}
