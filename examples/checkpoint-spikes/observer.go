package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/wirewait/wirewait/internal/study"
)

// sample is what a server said of itself at a moment.
type sample struct {
	at               time.Duration // since the phase began
	timed, requested int64         // checkpoints that were begun so far
	spent            float64       // ms of all checkpoints that have ended
	dirty            int64         // buffers; -1: it can't be told
	wal              float64       // MB in all
}

// observer asks a server about its checkpoints.
type observer struct {
	conn  *pgx.Conn
	query string
}

// newObserver finds out what the server has. Which view counts checkpoints:
//
//	up to 16   pg_stat_bgwriter: checkpoints_timed, _req, checkpoint_write_time, _sync_time
//	from 17    pg_stat_checkpointer: num_timed, num_requested, write_time, sync_time
func newObserver(ctx context.Context, conn *pgx.Conn) (*observer, error) {
	var newer, buffers bool
	err := conn.QueryRow(ctx, "select to_regclass('pg_stat_checkpointer') is not null, exists (select from pg_extension where extname = 'pg_buffercache')").Scan(&newer, &buffers)
	if err != nil {
		return nil, fmt.Errorf("ask what the server has: %w", err)
	}
	counts := "checkpoints_timed, checkpoints_req, checkpoint_write_time + checkpoint_sync_time from pg_stat_bgwriter"
	if newer {
		counts = "num_timed, num_requested, write_time + sync_time from pg_stat_checkpointer"
	}
	dirty := "-1"
	if buffers {
		dirty = "(select count(*) from pg_buffercache where isdirty)"
	}
	return &observer{conn, "select " + dirty + ", (pg_current_wal_lsn() - '0/0') / 1048576.0::float8, " + counts}, nil
}

// watch takes samples until the context ends, which is its regular end.
func (o *observer) watch(ctx context.Context, begin time.Time, every time.Duration) (all []sample, err error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		s, err := o.ask(begin)
		if err != nil {
			return all, err
		}
		all = append(all, s)
		select {
		case <-ctx.Done():
			return all, nil
		case <-tick.C:
		}
	}
}

// overdue is how long a checkpoint that has ended may take to be counted.
const overdue = 30 * time.Second

// counted takes samples until a checkpoint was counted since the first one:
// servers count one that never paused only once it's over, and a little later.
func (o *observer) counted(ctx context.Context, begin time.Time, all []sample) ([]sample, error) {
	ctx, cancel := context.WithTimeout(ctx, overdue)
	defer cancel()
	for first := all[0]; ; {
		s, err := o.ask(begin)
		if err != nil {
			return all, err
		}
		all = append(all, s)
		if s.timed+s.requested > first.timed+first.requested {
			return all, nil
		}
		if err := study.Pause(ctx, 20*time.Millisecond); err != nil {
			return all, fmt.Errorf("wait for a checkpoint to be counted: %w", err)
		}
	}
}

// ask takes one sample. It's not broken off, which would end the session.
func (o *observer) ask(begin time.Time) (s sample, err error) {
	err = o.conn.QueryRow(context.Background(), o.query).Scan(&s.dirty, &s.wal, &s.timed, &s.requested, &s.spent)
	if err != nil {
		return s, fmt.Errorf("watch the server: %w", err)
	}
	s.at = time.Since(begin)
	return s, nil
}

// checkpoint is one, as far as samples show it.
type checkpoint struct {
	from, to  time.Duration
	requested bool // by WAL or by somebody, not by time
}

// checkpoints of the phase. One is counted when it begins, and its time is added
// when it ends, so it lies between the samples around those.
func (p *phase) checkpoints() (all []checkpoint) {
	open := false
	for i := 1; i < len(p.samples); i++ {
		was, is := p.samples[i-1], p.samples[i]
		ended := open && is.spent > was.spent
		if ended {
			all[len(all)-1].to, open = is.at, false
		}
		if is.timed+is.requested > was.timed+was.requested {
			all = append(all, checkpoint{from: was.at, to: is.at, requested: is.requested > was.requested})
			// One that began and ended between two samples has shown its time already.
			open = ended || is.spent == was.spent
		}
		if open {
			all[len(all)-1].to = is.at
		}
	}
	return all
}

// within reports whether a checkpoint ran.
func within(all []checkpoint, at time.Duration) bool {
	for _, c := range all {
		if at >= c.from && at < c.to {
			return true
		}
	}
	return false
}
