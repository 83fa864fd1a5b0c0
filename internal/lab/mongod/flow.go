package mongod

import (
	"context"
	"math"
	"sync"
	"time"
)

// flowControl slows a primary's writes down when a majority can't follow, so that
// the lag stays near its target (src/mongo/db/admission/flow_control.cpp): once a
// second it gives out as many tickets as the member that holds the majority up has
// applied operations, and the fewer the greater the lag.
//
//	tickets  = sustainer's rate x locks an operation x 0.5 ^ ((lag - threshold) / threshold) x 0.95
//	no lag:    tickets grow by 1,000 and 5 % a second
type flowControl struct {
	mu       sync.Mutex
	lagged   bool
	target   float64 // tickets a second
	left     float64 // of this second; without meaning while nobody is slowed down
	refresh  chan struct{}
	rate     float64 // the sustainer's, in operations a second
	perOp    float64
	acquired int64

	count        int64         // how often it became lagged
	laggedTime   time.Duration // in all
	acquiring    time.Duration // in all, by all writes
	lastAcquired int64
	lastApplied  int // of the sustainer, in entries
	lastWritten  int
}

// The server's constants, under its names (src/mongo/db/admission/flow_control_parameters.idl).
const (
	maxFlowTickets      = 1_000_000_000.0
	minFlowTickets      = 100 // flowControlMinTicketsPerSecond
	flowDecay           = 0.5 // flowControlDecayConstant
	flowFudge           = 0.95
	flowAdder           = 1000
	flowMultiplier      = 1.05
	flowControlInterval = time.Second
)

// take waits until flow control lets a write pass. Its only error is the
// context's.
func (f *flowControl) take(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	begun := time.Time{}
	for f.target < maxFlowTickets && f.left < 1 {
		if begun.IsZero() {
			begun = time.Now()
		}
		if f.refresh == nil {
			f.refresh = make(chan struct{})
		}
		refresh := f.refresh
		f.mu.Unlock()
		select {
		case <-refresh:
		case <-ctx.Done():
		}
		f.mu.Lock()
		if err := ctx.Err(); err != nil {
			f.acquiring += time.Since(begun)
			return err
		}
	}
	if !begun.IsZero() {
		f.acquiring += time.Since(begun)
	}
	f.left--
	f.acquired++
	return nil
}

// progressOf is what flow control knows of the set at a moment.
type flowProgress struct {
	lag       time.Duration
	sustained int // entries that the member has applied that holds the majority up
	written   int // entries that the primary has
}

// adjust sets the tickets of the next second.
func (f *flowControl) adjust(p flowProgress, threshold time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rate = max(float64(p.sustained-f.lastApplied), 0) / flowControlInterval.Seconds()
	f.perOp = 1
	if ops := p.written - f.lastWritten; ops > 0 {
		f.perOp = float64(f.acquired-f.lastAcquired) / float64(ops)
	}
	lagged := threshold > 0 && p.lag >= threshold
	switch {
	case lagged:
		decay := math.Pow(flowDecay, float64(p.lag-threshold)/float64(threshold))
		f.target = max(f.rate*f.perOp*decay*flowFudge, minFlowTickets)
		f.laggedTime += flowControlInterval
		if !f.lagged {
			f.count++
		}
	default:
		f.target = min((f.target+flowAdder)*flowMultiplier, maxFlowTickets)
	}
	if f.target >= maxFlowTickets/1000 && !lagged {
		f.target = maxFlowTickets // it would take minutes, in which nobody waits
	}
	f.lagged, f.left = lagged, f.target
	f.lastApplied, f.lastWritten, f.lastAcquired = p.sustained, p.written, f.acquired
	if f.refresh != nil {
		close(f.refresh)
		f.refresh = nil
	}
}

// off lets everybody pass: on a member that isn't primary.
func (f *flowControl) off() { f.adjust(flowProgress{}, 0) }

// flowControls adjusts once a second.
func (s *Server) flowControls() {
	threshold := s.options.Engine.flowThreshold()
	for sleep(s.ctx, flowControlInterval, nil) == nil && s.gate.pass(s.ctx) == nil {
		s.mu.Lock()
		primary, p := s.set.writable, s.set.flowProgress()
		s.mu.Unlock()
		if primary {
			s.admission.flow.adjust(p, threshold)
		} else {
			s.admission.flow.off()
		}
	}
}

// flowProgress: the lag is that of the oldest entry that no majority has. A server
// compares the wall times of what is applied and what is committed, which is the
// same but for the first write after a pause. Server.mu is held.
func (r *replication) flowProgress() flowProgress {
	p := flowProgress{written: len(r.oplog), sustained: len(r.oplog)}
	if next := r.oplog.from(r.committed.TS); next < len(r.oplog) && r.committed.OpTime != (OpTime{}) {
		if p.sustained = next + 1; next+1 < len(r.oplog) {
			p.lag = max(r.applied.wall.Sub(r.oplog[next+1].wall), 0)
		}
	}
	return p
}
