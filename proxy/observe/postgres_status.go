package observe

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/wirewait/wirewait/trace"
)

// view is one question, and what its rows say. Columns moved between versions:
//
//	                   15, 16                17                     18
//	checkpoints        pg_stat_bgwriter      pg_stat_checkpointer   the same
//	WAL's syncs        pg_stat_wal           pg_stat_wal            pg_stat_io, object wal
//	                   (times only with track_wal_io_timing)
//
// so all columns are read, and whichever are there are used.
type view struct {
	name, sql string
	optional  bool // older or newer versions don't have it
	read      func(rows []row, l *look, a *postgresAsker)
}

var views = []view{
	{"pg_stat_wal", "SELECT * FROM pg_stat_wal", true, readWAL},
	{"pg_stat_io", "SELECT * FROM pg_stat_io WHERE object = 'wal'", true, readIO},
	{"pg_stat_bgwriter", "SELECT * FROM pg_stat_bgwriter", false, readCheckpoints},
	{"pg_stat_checkpointer", "SELECT * FROM pg_stat_checkpointer", true, readCheckpoints},
	{"pg_stat_activity", activitySQL, false, readSessions},
	{"pg_stat_replication", "SELECT application_name, extract(epoch FROM write_lag) * 1000 AS write, " +
		"extract(epoch FROM flush_lag) * 1000 AS flush, extract(epoch FROM replay_lag) * 1000 AS replay, " +
		"state FROM pg_stat_replication", false, readReplication},
}

// Wait events are written WALSync up to 16 and WalSync from 17: their case isn't
// looked at. A checkpointer that has nothing to do waits in CheckpointerMain, and
// between the writes of a checkpoint in CheckpointWriteDelay
// (src/backend/postmaster/checkpointer.c). Without the right to see others'
// sessions their state is NULL.
const activitySQL = `SELECT count(*) FILTER (WHERE state = 'active' AND backend_type = 'client backend' AND pid <> pg_backend_pid()) AS active,
count(*) FILTER (WHERE lower(wait_event) = 'syncrep') AS sync,
count(*) FILTER (WHERE backend_type = 'client backend' AND lower(wait_event) IN ('walwrite', 'walsync', 'walinsert')) AS wal,
count(*) FILTER (WHERE wait_event_type = 'Lock') AS lock,
count(*) FILTER (WHERE backend_type = 'checkpointer' AND lower(coalesce(wait_event, '')) <> 'checkpointermain') AS checkpoint,
pg_has_role('pg_read_all_stats', 'USAGE') AS all
FROM pg_stat_activity`

// add adds a counter, where the row has it.
func add(l *look, m trace.Measure, r row, columns ...string) {
	if v, ok := r.number(columns...); ok {
		l.counts[m] += v
	}
}

func readWAL(rows []row, l *look, _ *postgresAsker) {
	for _, r := range rows {
		add(l, trace.JournalBytes, r, "wal_bytes")
		add(l, trace.JournalFull, r, "wal_buffers_full")
		readSyncs(r, l, "wal_sync", "wal_sync_time")
	}
}

func readIO(rows []row, l *look, _ *postgresAsker) {
	for _, r := range rows {
		readSyncs(r, l, "fsyncs", "fsync_time")
	}
}

// readSyncs takes a time of 0 for one that isn't taken.
func readSyncs(r row, l *look, syncs, ms string) {
	n, ok := r.number(syncs)
	if !ok {
		return
	}
	l.counts[trace.JournalSyncs] += n
	if v, ok := r.number(ms); ok && v > 0 {
		sum := l.means[trace.JournalTime]
		l.means[trace.JournalTime] = mean{sum.ms + v, sum.n + n}
	}
}

// readCheckpoints reads either view. Their times grow when a checkpoint has ended
// (src/backend/access/transam/xlog.c, LogCheckpointEnd).
func readCheckpoints(rows []row, l *look, a *postgresAsker) {
	for _, r := range rows {
		add(l, trace.CheckpointBuffers, r, "buffers_written", "buffers_checkpoint")
		write, ok1 := r.number("write_time", "checkpoint_write_time")
		sync, ok2 := r.number("sync_time", "checkpoint_sync_time")
		if !ok1 || !ok2 {
			continue
		}
		ended := write + sync
		l.checkpoints = &ended
		if last := a.buffers.checkpointTime; last != 0 && ended > last {
			a.buffers.lastCheckpoint = ended - last
		}
		a.buffers.checkpointTime = ended
		if ms := a.buffers.lastCheckpoint; ms > 0 {
			l.now[trace.CheckpointTime] = ms
		}
	}
}

var errNoRight = errors.New("the user isn't in pg_monitor: GRANT pg_monitor TO it, for the waits of others' sessions and for whether a checkpoint runs")

func readSessions(rows []row, l *look, a *postgresAsker) {
	for _, r := range rows {
		if r["all"] != "t" {
			a.once.say("pg_stat_activity", errNoRight)
			continue
		}
		for column, m := range map[string]trace.Measure{
			"active": trace.Active, "sync": trace.WaitingSync, "wal": trace.WaitingWAL, "lock": trace.WaitingLock, "checkpoint": trace.Checkpoint,
		} {
			if v, ok := r.number(column); ok {
				l.now[m] = v
			}
		}
	}
}

// readReplication reads how far standbys are behind: the time between a flush
// here and its acknowledgement there, NULL when nothing is written.
func readReplication(rows []row, l *look, a *postgresAsker) {
	for _, r := range rows {
		if r["state"] == "" { // others' standbys, without the right to see them
			a.once.say("pg_stat_replication", errNoRight)
			continue
		}
		behind := trace.MemberLag{Member: a.sampler.standbyName(r["application_name"]), Written: lag(r, "write"), Durable: lag(r, "flush"), Applied: lag(r, "replay")}
		l.lags = append(l.lags, behind)
		if behind.Applied != trace.NoLag {
			l.now[trace.Lag] = max(l.now[trace.Lag], milliseconds(behind.Applied))
		}
	}
}

func lag(r row, column string) time.Duration {
	ms, ok := r.number(column)
	if !ok {
		return trace.NoLag
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// standbyName is the file's name of a standby.
func (s *Sampler) standbyName(application string) string {
	for _, m := range s.Members {
		for _, h := range m.Hosts {
			if h == application {
				return m.Name
			}
		}
	}
	return application
}

// buffers is what a connection remembers of checkpoints and of the cache.
type buffers struct {
	checkpointTime, lastCheckpoint float64

	state   int // 0: not asked yet whether pg_buffercache is there
	dirty   float64
	counted time.Time
}

const (
	noBuffers = iota + 1
	summary   // pg_buffercache_summary, from 16: cheap
	counting  // the view, which looks at every buffer
)

// countEvery is how often the view is read, in which a server with a large cache
// looks at millions of buffers.
const countEvery = 30 * time.Second

// look counts the dirty buffers, where the extension pg_buffercache is.
func (b *buffers) look(ctx context.Context, a *postgresAsker, l *look) error {
	if b.state == 0 {
		if err := b.find(ctx, a); err != nil || b.state == 0 {
			return err
		}
	}
	sql := "SELECT buffers_dirty AS dirty FROM pg_buffercache_summary()"
	switch {
	case b.state == noBuffers:
		return nil
	case b.state == counting && time.Since(b.counted) < countEvery:
		l.now[trace.DirtyBuffers] = b.dirty
		return nil
	case b.state == counting:
		sql = "SELECT count(*) FILTER (WHERE isdirty) AS dirty FROM pg_buffercache"
	}
	rows, err := a.query(ctx, sql)
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		b.state = noBuffers
		a.once.say("pg_buffercache", err)
		return nil
	}
	if err != nil || len(rows) == 0 {
		return err
	}
	b.dirty, _ = rows[0].number("dirty")
	b.counted = time.Now()
	l.now[trace.DirtyBuffers] = b.dirty
	return nil
}

func (b *buffers) find(ctx context.Context, a *postgresAsker) error {
	rows, err := a.query(ctx, "SELECT to_regproc('pg_buffercache_summary') IS NOT NULL AS summary, to_regclass('pg_buffercache') IS NOT NULL AS view")
	var refused *pgconn.PgError
	if err != nil && !errors.As(err, &refused) {
		return err
	}
	b.state = noBuffers
	for _, r := range rows {
		switch {
		case r["summary"] == "t":
			b.state = summary
		case r["view"] == "t":
			b.state = counting
		}
	}
	return nil
}
