// Command checkpoint-spikes shows what PostgreSQL's checkpoints do to commits: a
// steady stream of updates, while checkpoints come by time, by max_wal_size and
// when asked for, spread over the time until the next one or hurried.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/wirewait/wirewait/internal/study"
	"github.com/wirewait/wirewait/internal/study/cluster"
)

func main() {
	var watch time.Duration
	study.Experiment{
		Name: "checkpoint-spikes",
		About: "Updates at a steady rate while checkpoints come by time, by max_wal_size and when asked\n" +
			"for, with checkpoint_completion_target 0.9 and 0.1: the latency over time, with the\n" +
			"checkpoints marked, and the dirty buffers and the WAL meanwhile.",
		URI: "connection `string` of a real primary, whose settings stay as they are; its table " + cluster.Table + " is dropped (default: a server from this machine's binaries)",
		Flags: func(f *flag.FlagSet) {
			f.DurationVar(&watch, "for", 2*time.Minute, "how long to write to a real server")
		},
		Do: func(ctx context.Context, r *study.Run) error { return run(ctx, r, watch) },
	}.Main()
}

// phase is a stretch of time under one set of settings.
type phase struct {
	name     string
	settings map[string]string
	// ask is when a CHECKPOINT is asked for, as a part of the phase; 0: never.
	ask float64

	length  time.Duration
	writes  []study.Timed
	samples []sample
}

// spikes is one run.
type spikes struct {
	*study.Run
	db       *cluster.Postgres
	observer *observer
	sessions []*pgx.Conn
	rows     int
	rate     float64 // updates a second
	every    time.Duration
	phases   []*phase
}

func settings(timeout, wal, target string) map[string]string {
	return map[string]string{"checkpoint_timeout": timeout, "max_wal_size": wal, "checkpoint_completion_target": target}
}

// labPhases: 30 s is the least that checkpoint_timeout takes, and checkpoints by
// WAL begin at max_wal_size / (1 + checkpoint_completion_target).
func labPhases(length time.Duration) []*phase {
	return []*phase{
		{name: "every 30 s, spread", settings: settings("30s", "4GB", "0.9"), length: length},
		{name: "every 30 s, hurried", settings: settings("30s", "4GB", "0.1"), length: length},
		{name: "by 64 MB of WAL, spread", settings: settings("1h", "64MB", "0.9"), length: length},
		{name: "by 64 MB of WAL, hurried", settings: settings("1h", "64MB", "0.1"), length: length},
		{name: "CHECKPOINT asked for", settings: settings("1h", "4GB", "0.9"), length: length, ask: 0.5},
	}
}

func run(ctx context.Context, r *study.Run, watch time.Duration) (err error) {
	s := &spikes{Run: r, rows: 100_000, rate: 300, every: time.Second, phases: labPhases(75 * time.Second)}
	clients := 8
	if r.Quick {
		s.rows, s.rate, s.every, clients = 2000, 200, 100*time.Millisecond, 4
		s.phases, watch = labPhases(600*time.Millisecond), 2*time.Second
	}
	s.db, err = cluster.StartPostgres(ctx, r, nil, map[string]string{"shared_buffers": "256MB", "track_wal_io_timing": "on"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close(), s.db.Close()) }()
	if s.db.Lab == nil {
		s.phases = []*phase{{name: "as it is", length: watch}}
	}
	if err := s.begin(ctx, clients); err != nil {
		return err
	}
	for _, p := range s.phases {
		if err := s.play(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return errors.Join(r.Table("", s.table()), r.CSV("timeline", s.timeline()),
		r.SVG("", s.drawLatency()), r.SVG("buffers", s.drawBuffers()))
}

const update = "update " + cluster.Table + " set counter = counter + 1 where id = $1"

// begin fills the table and opens the sessions.
func (s *spikes) begin(ctx context.Context, clients int) error {
	for range clients {
		conn, err := s.db.Observe(ctx)
		if err != nil {
			return err
		}
		s.sessions = append(s.sessions, conn)
	}
	s.Say("filling a table of %d rows", s.rows)
	// With room in each page a row's new version stays beside the old one.
	if _, err := s.sessions[0].Exec(ctx, "alter table "+cluster.Table+" set (fillfactor = 80)"); err != nil {
		return err
	}
	if _, err := s.sessions[0].Exec(ctx, "insert into "+cluster.Table+" (text) select repeat(md5(i::text), 24) from generate_series(1, $1::int) i", s.rows); err != nil {
		return fmt.Errorf("fill the table: %w", err)
	}
	if s.db.Lab != nil {
		// Not every build of the server has it, and then there are no dirty buffers.
		if _, err := s.sessions[0].Exec(ctx, "create extension if not exists pg_buffercache"); err != nil {
			s.Say("no dirty buffers: %v", err)
		}
	}
	for _, c := range s.sessions { // the first time a session also prepares its statement
		if _, err := c.Exec(ctx, update, 1); err != nil {
			return err
		}
	}
	conn, err := s.db.Observe(ctx)
	if err != nil {
		return err
	}
	s.sessions = append(s.sessions, conn)
	s.observer, err = newObserver(ctx, conn)
	return err
}

func (s *spikes) close() (err error) {
	for _, c := range s.sessions {
		err = errors.Join(err, c.Close(context.Background()))
	}
	return err
}

// play writes for the phase's time and watches the server meanwhile.
func (s *spikes) play(ctx context.Context, p *phase) error {
	s.Say("%s, for %v", p.name, p.length)
	if err := s.apply(ctx, p); err != nil {
		return err
	}
	begin := time.Now()
	watching, stop := context.WithCancel(ctx)
	watched := make(chan error, 1)
	go func() {
		var err error
		p.samples, err = s.observer.watch(watching, begin, s.every)
		watched <- err
	}()
	asked := make(chan error, 1)
	go func() { asked <- s.ask(ctx, p) }()
	chance := s.chances(p.name, len(s.sessions)-1)
	writes, err := study.Paced(ctx, len(s.sessions)-1, s.rate, p.length, func(ctx context.Context, client, _ int) error {
		_, err := s.sessions[client].Exec(ctx, update, 1+chance[client].IntN(s.rows))
		return err
	})
	p.writes = writes
	err = errors.Join(err, <-asked)
	stop()
	if err = errors.Join(err, <-watched); err == nil && p.ask > 0 {
		p.samples, err = s.observer.counted(ctx, begin, p.samples)
	}
	return err
}

// chances are a source for each client, another one in each phase: the same rows
// in the same order would soon lie side by side.
func (s *spikes) chances(phase string, clients int) (all []*rand.Rand) {
	for i := range clients {
		all = append(all, s.Chance(fmt.Sprintf("%s, client %d", phase, i)))
	}
	return all
}

// apply sets the lab's server, and begins with a checkpoint behind it.
func (s *spikes) apply(ctx context.Context, p *phase) error {
	if p.settings == nil {
		return nil
	}
	conn := s.sessions[0]
	for name, value := range p.settings {
		if _, err := conn.Exec(ctx, fmt.Sprintf("alter system set %s = '%s'", name, value)); err != nil {
			return err
		}
	}
	for _, sql := range []string{"select pg_reload_conf()", "checkpoint"} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// ask asks for the phase's CHECKPOINT when it's time.
func (s *spikes) ask(ctx context.Context, p *phase) error {
	if p.ask == 0 {
		return nil
	}
	conn, err := s.db.Observe(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := study.Pause(ctx, time.Duration(p.ask*float64(p.length))); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "checkpoint")
	return err
}
