package trace

// Measure is something that a server says of itself, under one name for both
// protocols and all versions. The zero Measure is Checkpoint.
type Measure uint8

// What servers are asked. A rate is per second of its sample, a time is in
// milliseconds, a mark is 1 or 0; anything else is a number of things.
const (
	// Checkpoint is a mark: one was running at the sample's end, or ended in it.
	Checkpoint Measure = iota
	// CheckpointTime is how long the last one took that ended.
	CheckpointTime
	// CheckpointBuffers is PostgreSQL's rate of buffers that it wrote.
	CheckpointBuffers
	// JournalSyncs is the rate of syncs of the log (MongoDB's journal,
	// PostgreSQL's WAL), JournalTime how long one took in the mean, JournalBytes
	// the rate of what was written.
	JournalSyncs
	JournalTime
	JournalBytes
	// JournalFull is PostgreSQL's rate of writes for want of WAL buffers.
	JournalFull
	// Tickets are how many writes may be in MongoDB's storage engine at a time,
	// TicketsAvailable how many of them are free, TicketsQueued the writes that
	// wait for one, TicketWait how long one of those that had to queue waited in
	// the mean, TicketsCanceled the rate of those that gave up.
	Tickets
	TicketsAvailable
	TicketsQueued
	TicketWait
	TicketsCanceled
	// The same of reads.
	ReadTickets
	ReadTicketsAvailable
	ReadTicketsQueued
	ReadTicketWait
	ReadTicketsCanceled
	// TicketsShort is a mark: by the rule of the server's version
	// (Activity.TicketRule) tickets are short.
	TicketsShort
	// FlowControl is a mark: MongoDB slows its writes down, because a majority
	// lags. FlowControlRate is how many locks for writing it gives out a second,
	// FlowControlWait how long writes waited for them, in milliseconds a second.
	FlowControl
	FlowControlRate
	FlowControlWait
	// Writes is the rate of write operations, WriteTime their mean time as the
	// server has it: the wait for other members included. WriteConflicts is the
	// rate of writes that MongoDB began anew.
	Writes
	WriteTime
	WriteConflicts
	// WaitingLock are operations that wait for a lock: PostgreSQL's sessions, and
	// MongoDB's globalLock.currentQueue, which counts those that wait for a ticket.
	// Active are PostgreSQL's sessions that run something; of them wait
	// WaitingSync for standbys and WaitingWAL for the log.
	Active
	WaitingSync
	WaitingWAL
	WaitingLock
	// DirtyBuffers are those of PostgreSQL's cache that a checkpoint has yet to
	// write, where pg_buffercache is installed.
	DirtyBuffers
	// MajorityLag is how far the point that a majority has is behind MongoDB's
	// primary, Lag how far the slowest member is.
	MajorityLag
	Lag
	// SampleCost is how long the questions of the sample took.
	SampleCost

	measureCount
)

// Kind says what a measure's number is.
type Kind uint8

// The kinds of measures.
const (
	Number       Kind = iota // of things
	Mark                     // 1: so it was
	Milliseconds             // a time
	PerSecond                // a rate
	BytesPerSecond
)

type measureInfo struct {
	name  string
	kind  Kind
	about string
	span  bool // it's on writes' spans
	least bool // of several samples the least is telling, else the most
}

// The names are those of span attributes and metrics behind "wirewait.server.".
var measures = [measureCount]measureInfo{
	Checkpoint:           {"checkpoint", Mark, "A checkpoint was running, or ended.", true, false},
	CheckpointTime:       {"checkpoint_ms", Milliseconds, "How long the last checkpoint took that ended.", true, false},
	CheckpointBuffers:    {"checkpoint_buffers_per_s", PerSecond, "Buffers that checkpoints wrote.", false, false},
	JournalSyncs:         {"journal_syncs_per_s", PerSecond, "Syncs of the journal, or the WAL.", true, false},
	JournalTime:          {"journal_ms_per_sync", Milliseconds, "How long one sync took in the mean.", true, false},
	JournalBytes:         {"journal_bytes_per_s", BytesPerSecond, "What was written to the journal, or the WAL.", true, false},
	JournalFull:          {"journal_full_per_s", PerSecond, "Writes of WAL because its buffers were full.", false, false},
	Tickets:              {"tickets", Number, "Writes that may be in the storage engine at a time.", false, true},
	TicketsAvailable:     {"tickets_available", Number, "Write tickets that are free.", true, true},
	TicketsQueued:        {"tickets_queued", Number, "Writes that wait for a ticket.", true, false},
	TicketWait:           {"ticket_wait_ms", Milliseconds, "How long a write that had to queue for a ticket waited, in the mean.", true, false},
	TicketsCanceled:      {"tickets_canceled_per_s", PerSecond, "Writes that gave up waiting for a ticket.", false, false},
	ReadTickets:          {"read_tickets", Number, "Reads that may be in the storage engine at a time.", false, true},
	ReadTicketsAvailable: {"read_tickets_available", Number, "Read tickets that are free.", false, true},
	ReadTicketsQueued:    {"read_tickets_queued", Number, "Reads that wait for a ticket.", false, false},
	ReadTicketWait:       {"read_ticket_wait_ms", Milliseconds, "How long a read that had to queue for a ticket waited, in the mean.", false, false},
	ReadTicketsCanceled:  {"read_tickets_canceled_per_s", PerSecond, "Reads that gave up waiting for a ticket.", false, false},
	TicketsShort:         {"tickets_short", Mark, "Tickets are short, by the rule of the server's version.", true, false},
	FlowControl:          {"flow_control", Mark, "Flow control slows writes down.", true, false},
	FlowControlRate:      {"flow_control_rate", Number, "Locks for writing that flow control gives out a second.", false, true},
	FlowControlWait:      {"flow_control_ms_per_s", Milliseconds, "How long writes waited for flow control, in each second.", true, false},
	Writes:               {"writes_per_s", PerSecond, "Write operations.", false, false},
	WriteTime:            {"write_ms", Milliseconds, "How long a write operation took by the server's own count, in the mean.", false, false},
	WriteConflicts:       {"write_conflicts_per_s", PerSecond, "Writes that began anew because of another.", true, false},
	Active:               {"active_sessions", Number, "Sessions that run something.", false, false},
	WaitingSync:          {"waiting_sync", Number, "Sessions that wait for a synchronous standby.", true, false},
	WaitingWAL:           {"waiting_wal", Number, "Sessions that wait for the WAL to be written or synced.", true, false},
	WaitingLock:          {"waiting_lock", Number, "Operations that wait for a lock, or in MongoDB for a ticket.", true, false},
	DirtyBuffers:         {"dirty_buffers", Number, "Buffers that a checkpoint has yet to write.", true, false},
	MajorityLag:          {"majority_lag_ms", Milliseconds, "How far what a majority has is behind the primary.", true, false},
	Lag:                  {"lag_ms", Milliseconds, "How far the slowest member is behind.", true, false},
	SampleCost:           {"sample_cost_ms", Milliseconds, "How long the questions to the server took.", false, false},
}

// Measures are all there are, in the order in which reports have them.
func Measures() []Measure {
	all := make([]Measure, measureCount)
	for i := range all {
		all[i] = Measure(i)
	}
	return all
}

// String is the measure's name: "journal_ms_per_sync".
func (m Measure) String() string { return measures[m].name }

// Kind of the measure's number.
func (m Measure) Kind() Kind { return measures[m].kind }

// About is a sentence that says what it is.
func (m Measure) About() string { return measures[m].about }

// OnSpans reports whether a write's span has it.
func (m Measure) OnSpans() bool { return measures[m].span }
