package mongod

import "time"

// Engine is what a member's storage engine is like: what writes and reads wait
// for before they are done. The zero value is a server's defaults, on a disk as
// fast as this machine's.
type Engine struct {
	// Tickets are how many writes, and how many reads, may be in the engine at a
	// time; 0: 128 of each. Others queue, first come, first served. Members among
	// themselves need none.
	Tickets int
	// WriteWork is how long a write command is in the engine before it's done, on
	// its ticket. Of two that change the same document at a time, one has a write
	// conflict, and begins anew once the other is done.
	WriteWork time.Duration
	// CheckpointEvery is the time between checkpoints; 0: a minute. Each writes
	// the documents that have changed, and syncs them.
	CheckpointEvery time.Duration
	// CheckpointLasts is how long one takes at least, and CheckpointSync how much
	// longer a sync of the journal takes while it does, as on a disk that is busy.
	CheckpointLasts, CheckpointSync time.Duration
	// FlowControlTarget is flowControlTargetLagSeconds: writes are slowed down when
	// a majority is more than half of it behind; 0: 10 s. Negative: never.
	FlowControlTarget time.Duration
	// StatusOf is the version whose serverStatus is answered: "6.0", "7.0" or
	// "8.0"; empty: 8.0. Nothing else depends on it.
	StatusOf string
}

func (e Engine) tickets() int {
	if e.Tickets <= 0 {
		return 128 // storageEngineConcurrentWriteTransactions
	}
	return e.Tickets
}

func (e Engine) checkpointEvery() time.Duration {
	if e.CheckpointEvery <= 0 {
		return time.Minute // storage.syncPeriodSecs
	}
	return e.CheckpointEvery
}

// flowThreshold is the lag from which on writes are slowed down: half of the
// target (flowControlThresholdLagPercentage).
func (e Engine) flowThreshold() time.Duration {
	if e.FlowControlTarget == 0 {
		return 5 * time.Second
	}
	return e.FlowControlTarget / 2
}

// statusVersion is StatusOf as serverStatus has a version.
func (e Engine) statusVersion() string {
	if e.StatusOf == "" {
		return version
	}
	return e.StatusOf + ".0"
}
