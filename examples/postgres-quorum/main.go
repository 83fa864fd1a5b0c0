// Command postgres-quorum measures what a commit waits for: each level of
// synchronous_commit, while none of two standbys lags, either, and both, under
// FIRST 1, ANY 1 and ANY 2.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/wirewait/wirewait/internal/study"
	"github.com/wirewait/wirewait/internal/study/cluster"
	"github.com/wirewait/wirewait/trace"
)

func main() {
	study.Experiment{
		Name: "postgres-quorum",
		About: "Commits at each level of synchronous_commit, while none of two standbys lags, either, and\n" +
			"both, under FIRST 1, ANY 1 and ANY 2: how long they take, what theory says, and which\n" +
			"standby released them.",
		URI: "connection `string` of a real primary, which is written to as it is; its table " + cluster.Table + " is dropped (default: a primary and two standbys from this machine's binaries)",
		Do:  run,
	}.Main()
}

// levels of synchronous_commit, from the weakest.
var levels = []string{"off", "local", "remote_write", "on", "remote_apply"}

// waits reports whether a level waits for standbys.
func waits(level string) bool { return level != "off" && level != "local" }

// cell is what commits took at each level under one rule and one lag.
type cell struct {
	names, lags string
	theory      []time.Duration // by level
	expected    []string        // the standby that should release them; empty: any may
	samples     []study.Samples
	released    []cluster.Released
}

func newCell(names, lags string) *cell {
	n := len(levels)
	return &cell{names, lags, make([]time.Duration, n), make([]string, n), make([]study.Samples, n), make([]cluster.Released, n)}
}

// quorumStudy is one run.
type quorumStudy struct {
	*study.Run
	db       *cluster.Postgres
	sessions []*pgx.Conn // by level
	rounds   int
	cells    []*cell
}

func run(ctx context.Context, r *study.Run) (err error) {
	s := &quorumStudy{Run: r, rounds: 20}
	near, distant := 40*time.Millisecond, 100*time.Millisecond
	if r.Quick {
		s.rounds, near, distant = 1, 10*time.Millisecond, 25*time.Millisecond
	}
	if s.db, err = cluster.StartPostgres(ctx, r, []string{"s1", "s2"}, nil); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close(), s.db.Close()) }()
	for _, level := range levels {
		conn, err := s.db.Connect(ctx, level)
		if err != nil {
			return err
		}
		s.sessions = append(s.sessions, conn)
	}
	if s.db.Lab == nil {
		err = s.asItIs(ctx)
	} else {
		s.Say("PostgreSQL %s", s.db.Lab.Version())
		err = s.play(ctx, near, distant)
	}
	if err != nil {
		return err
	}
	return errors.Join(r.Table("", s.matrix()), r.CSV("all", s.long()), r.SVG("", s.draw()))
}

func (s *quorumStudy) close() (err error) {
	for _, c := range s.sessions {
		err = errors.Join(err, c.Close(context.Background()))
	}
	return err
}

// play tries every rule with every lag, on the lab.
func (s *quorumStudy) play(ctx context.Context, near, distant time.Duration) error {
	for _, text := range []string{"FIRST 1 (s1, s2)", "ANY 1 (s1, s2)", "ANY 2 (s1, s2)"} {
		names, err := trace.ParseStandbyNames(text)
		if err != nil {
			return err
		}
		if err := s.db.SetNames(ctx, names, text); err != nil {
			return err
		}
		for _, lag := range []struct {
			name   string
			s1, s2 time.Duration
		}{{"none", 0, 0}, {"s1", near, 0}, {"s2", 0, near}, {"both", near, distant}} {
			s.Say("%s, lag: %s", text, lag.name)
			if err := errors.Join(s.db.Far("s1", lag.s1), s.db.Far("s2", lag.s2)); err != nil {
				return err
			}
			c := newCell(text, lag.name)
			c.expect(names, []standby{{"s1", lag.s1}, {"s2", lag.s2}})
			if err := s.measure(ctx, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// standby and how long its acknowledgement takes.
type standby struct {
	name string
	lag  time.Duration
}

// expect fills in what theory says where the lags are the same at each level.
func (c *cell) expect(names *trace.StandbyNames, there []standby) {
	for i, level := range levels {
		if waits(level) {
			c.theory[i], c.expected[i] = quorum(names, there)
		}
	}
}

// measure commits once at each level in every round.
func (s *quorumStudy) measure(ctx context.Context, c *cell) error {
	commit := func(level int) error {
		_, err := s.sessions[level].Exec(ctx, "insert into "+cluster.Table+" (text) values ($1)", "an order")
		if err != nil {
			return fmt.Errorf("insert with synchronous_commit = %s: %w", levels[level], err)
		}
		return nil
	}
	// What was on its way before a change of lags is over when everybody has this.
	if err := commit(len(levels) - 1); err != nil {
		return err
	}
	if _, err := s.db.Released(ctx, 1); err != nil {
		return err
	}
	err := study.Rounds(s.rounds, len(levels), s.Chance(c.names+c.lags), func(_, level int) error {
		got, err := study.Times(ctx, 1, func(context.Context, int) error { return commit(level) })
		c.samples[level].Add(got)
		return err
	})
	if err != nil {
		return err
	}
	released, err := s.db.Released(ctx, s.rounds*len(levels))
	for i, level := range levels {
		c.released[i] = released[level]
	}
	s.cells = append(s.cells, c)
	return err
}
