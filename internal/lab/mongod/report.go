package mongod

import (
	"context"
	"time"
)

const (
	// reportTimeout is maxTimeMSOpOnly of replSetUpdatePosition (seen of 8.0.28).
	reportTimeout = 15 * time.Second
	// reportPause follows a report that failed.
	reportPause = 500 * time.Millisecond
)

// reports tell the source how far this member and those behind it have come, as
// src/mongo/db/repl/reporter.cpp does: one report at a time, and the next as soon
// as it's answered if there's news by then; but news of the journal goes out at
// once, by a second connection, if that is free (since 8.0). With no news there
// is a report every half election timeout.
func (s *Server) reports(ctx context.Context, source int) {
	busy := &reportState{}
	regular := func() bool { return s.set.stale }
	// Beside a report that is under way, and only for what that one can't say.
	backup := func() bool { return s.set.urgent && busy.regular }
	keepAlive := time.Duration(s.set.config.electionTimeout) * time.Millisecond / 2
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.reportWhile(ctx, source, backup, func(bool) {}, 0)
	}()
	s.reportWhile(ctx, source, regular, func(b bool) { busy.regular = b }, min(keepAlive, 30*time.Second))
	<-done
}

// reportState is guarded by Server.mu.
type reportState struct{ regular bool }

// reportWhile sends a report whenever due says so, which is asked with Server.mu
// held, and every keepAlive, if that isn't 0.
func (s *Server) reportWhile(ctx context.Context, source int, due func() bool, busy func(bool), keepAlive time.Duration) {
	var conn *peerConn
	defer func() {
		if conn != nil {
			conn.close()
		}
	}()
	for s.awaitDue(ctx, due, keepAlive) == nil {
		s.mu.Lock()
		s.set.stale, s.set.urgent = false, false
		command := s.positions()
		busy(true)
		s.mu.Unlock()

		var err error
		if conn == nil {
			conn, err = s.dialPeer(ctx, source, driverReports, "")
		}
		if err == nil {
			s.counters.reportsSent.Add(1)
			_, err = conn.call(ctx, reportTimeout, s.gossiped(command, "admin"))
		}
		s.mu.Lock()
		busy(false)
		if err != nil {
			s.set.stale = true
			s.set.reports.raise()
		}
		s.mu.Unlock()
		if err == nil {
			continue
		}
		if conn != nil {
			conn.close()
			conn = nil
		}
		if sleep(ctx, reportPause, nil) != nil {
			return
		}
	}
}

func (s *Server) awaitDue(ctx context.Context, due func() bool, keepAlive time.Duration) error {
	var alarm <-chan time.Time
	if keepAlive > 0 {
		t := time.NewTimer(keepAlive)
		defer t.Stop()
		alarm = t.C
	}
	for {
		s.mu.Lock()
		now, news := due(), s.set.reports.next()
		s.mu.Unlock()
		if now {
			return ctx.Err()
		}
		select {
		case <-news:
		case <-alarm:
			return ctx.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
