package trace

import "time"

// Counters are what the proxy counted since its start: a plain snapshot that
// it fills and that metrics and reports read. Arrays of two are indexed by
// wire.Direction.
type Counters struct {
	ConnectionsOpen  int64
	ConnectionsTotal uint64
	// BytesLive is how many bytes stand in the lines now.
	BytesLive int64
	// Bytes is how many were forwarded.
	Bytes     [2]uint64
	Exchanges uint64
	// Encrypted and Opaque are connections that could not be read: for TLS
	// that we don't end, and for anything else.
	Encrypted, Opaque uint64
	// DecodeFailures counts messages that were framed but not understood, by
	// reason. Whoever fills it hands over a map of its own.
	DecodeFailures map[string]uint64
	DialFailures   uint64
	AcceptFailures uint64
	// Dropped is how many exchanges the tracer had no room for.
	Dropped uint64
	// SyncSourceChanges is how often a member of a replica set turned to another
	// one for its log.
	SyncSourceChanges uint64
	// StalledSeconds is how long reading stood still because a line was full.
	StalledSeconds [2]float64
	// Marker is what goes on now; nil: nothing in particular.
	Marker *Marker
	// Links are the same by link; the fields above are their sums.
	Links []LinkCounters
	// Rules are what rules did, by rule and link.
	Rules []RuleCounters
}

// RuleCounters are what one rule did on one link.
type RuleCounters struct {
	Rule, Effect, Link string
	// Matches counts what it matched and could apply to, Hits those for which it
	// fired, NotApplicable matches that it could not apply to, by reason.
	Matches, Hits uint64
	NotApplicable map[string]uint64
}

// LinkCounters are what one link counted.
type LinkCounters struct {
	// Link is the link's name; From and To are its ends.
	Link, From, To   string
	ConnectionsOpen  int64
	ConnectionsTotal uint64
	Exchanges        uint64

	Encrypted, Opaque            uint64
	DecodeFailures               map[string]uint64
	DialFailures, AcceptFailures uint64

	// Ways are its directions, indexed by wire.Direction.
	Ways [2]WayCounters
}

// WayCounters are what one direction of a link counted.
type WayCounters struct {
	// Bytes were forwarded, of those that were Read; Live wait in the lines now.
	Bytes, Read uint64
	Live        int64
	// Stalls counts how often reading stood still because a line was full, and
	// Stalled adds up for how long. Paused connections stand still now.
	Stalls  uint64
	Stalled time.Duration
	Paused  int64
	// Held counts runs of bytes that were to wait, and PlannedSeconds and
	// AchievedSeconds add up how long: a peer that doesn't take what is due
	// counts as achieved. MaxError is the most that one left too late by.
	Held                            uint64
	PlannedSeconds, AchievedSeconds float64
	MaxError                        time.Duration
}

// Add adds a link's figures to the sums.
func (c *Counters) Add(l *LinkCounters) {
	c.ConnectionsOpen += l.ConnectionsOpen
	c.ConnectionsTotal += l.ConnectionsTotal
	c.Exchanges += l.Exchanges
	c.Encrypted += l.Encrypted
	c.Opaque += l.Opaque
	c.DialFailures += l.DialFailures
	c.AcceptFailures += l.AcceptFailures
	for reason, n := range l.DecodeFailures {
		if c.DecodeFailures == nil {
			c.DecodeFailures = map[string]uint64{}
		}
		c.DecodeFailures[reason] += n
	}
	for d := range l.Ways {
		w := &l.Ways[d]
		c.BytesLive += w.Live
		c.Bytes[d] += w.Bytes
		c.StalledSeconds[d] += w.Stalled.Seconds()
	}
}

// PlannedMean and AchievedMean are how long a held run was to wait, and did;
// zero if none was held.
func (w *WayCounters) PlannedMean() time.Duration { return w.mean(w.PlannedSeconds) }

// AchievedMean: see PlannedMean.
func (w *WayCounters) AchievedMean() time.Duration { return w.mean(w.AchievedSeconds) }

func (w *WayCounters) mean(sum float64) time.Duration {
	if w.Held == 0 {
		return 0
	}
	return time.Duration(sum / float64(w.Held) * float64(time.Second))
}
