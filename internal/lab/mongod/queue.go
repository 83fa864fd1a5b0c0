package mongod

import (
	"context"
	"time"
)

// queue holds entries until their time has come: those fetched until they are
// written to the oplog, those written until they are applied. Server.mu guards
// it. The zero value is usable.
type queue struct {
	waiting []queued
	bytes   int
	changed notice // it has got, or lost, an entry; or a delay is another
	hurry   bool   // no entry waits
	most    int    // entries that become due at a time; 0: any number
}

type queued struct {
	*entry
	arrived time.Time
}

// queueBytes is as much as is fetched in advance.
const queueBytes = 64 << 20

func (q *queue) add(entries []*entry, now time.Time) {
	for _, e := range entries {
		q.waiting = append(q.waiting, queued{e, now})
		q.bytes += len(e.raw)
	}
	q.changed.raise()
}

func (q *queue) clear() {
	q.waiting, q.bytes = nil, 0
	q.changed.raise()
}

// due takes the entries whose time has come, in order. Without any it says how
// long until then; -1: nothing waits.
func (q *queue) due(now time.Time, when func(queued) time.Time) (ready []*entry, wait time.Duration) {
	for len(q.waiting) > 0 && (q.most == 0 || len(ready) < q.most) {
		first := q.waiting[0]
		if wait = when(first).Sub(now); wait > 0 && !q.hurry {
			break
		}
		ready = append(ready, first.entry)
		q.bytes -= len(first.raw)
		q.waiting = q.waiting[1:]
	}
	if len(ready) > 0 {
		q.changed.raise()
		return ready, 0
	}
	if len(q.waiting) == 0 {
		q.waiting = nil // lets go of what was there
		return nil, -1
	}
	return nil, wait
}

// work takes entries as they become due and hands them to do, which is called
// with Server.mu held.
func (s *Server) work(ctx context.Context, q *queue, when func(queued) time.Time, do func([]*entry)) {
	for s.gate.pass(ctx) == nil {
		s.mu.Lock()
		ready, wait := q.due(time.Now(), when)
		if len(ready) > 0 {
			do(ready)
		}
		changed := q.changed.next()
		s.mu.Unlock()
		switch {
		case len(ready) > 0:
		case wait < 0:
			select {
			case <-changed:
			case <-ctx.Done():
			}
		default:
			_ = sleep(ctx, wait, changed)
		}
	}
}

// writes puts what was fetched into the oplog, asks for a sync, and passes it on
// to be applied: the order of a server's OplogWriter and OplogApplier since 8.0.
func (s *Server) writes(ctx context.Context) {
	delay := time.Duration(s.set.config.members[s.set.self].delaySecs) * time.Second
	var next time.Time // not before, by the rate
	s.work(ctx, &s.inbox, func(e queued) time.Time {
		at := e.arrived.Add(time.Duration(s.member.writeDelay.Load()))
		if s.inbox.most = s.member.atATime(); s.inbox.most > 0 && next.After(at) {
			at = next
		}
		if held := e.wall.Add(delay); delay > 0 && !s.member.set.options.DelayedIsDurable && held.After(at) {
			return held
		}
		return at
	}, func(ready []*entry) {
		next = time.Now().Add(s.member.pace(len(ready)))
		for _, e := range ready {
			s.set.oplog = append(s.set.oplog, e)
			s.journal.append(e)
		}
		s.set.written = s.set.oplog.last()
		s.set.progress.raise()
		s.report(false)
		s.journal.flushSoon()
		s.outbox.add(ready, time.Now())
	})
}

// applies does what stands in the oplog.
func (s *Server) applies(ctx context.Context) {
	delay := time.Duration(s.set.config.members[s.set.self].delaySecs) * time.Second
	s.work(ctx, &s.outbox, func(e queued) time.Time {
		at := e.arrived.Add(time.Duration(s.member.applyDelay.Load()))
		if held := e.wall.Add(delay); delay > 0 && held.After(at) {
			return held
		}
		return at
	}, func(ready []*entry) {
		for _, e := range ready {
			s.apply(e)
		}
		s.set.applied = ready[len(ready)-1].mark
		s.set.progress.raise()
		s.report(false)
	})
}

// drain returns when all that was fetched is applied, without its delays.
func (s *Server) drain() {
	for _, q := range []*queue{&s.inbox, &s.outbox} {
		for {
			s.mu.Lock()
			empty := len(q.waiting) == 0
			if q.hurry == empty {
				q.hurry = !empty
				q.changed.raise()
			}
			changed := q.changed.next()
			s.mu.Unlock()
			if empty {
				break
			}
			select {
			case <-changed:
			case <-s.ctx.Done():
				return
			}
		}
	}
}
