package wire

// ReportKind is what a Report tells.
type ReportKind uint8

// What a replication connection says. Joined: the member at its client's end
// began to receive the log. Sent: a piece of the log is on its way to that
// member. Reached: members acknowledge how far they have come. Left: the
// connection's member receives no more. Observed is no connection's: the server
// was asked who waits.
const (
	ReportJoined ReportKind = iota
	ReportSent
	ReportReached
	ReportLeft
	ReportObserved
)

// Backend is a session of PostgreSQL that waits for standbys, in a transaction
// that has a number and ends only after that (pg_stat_activity.pid, backend_xid).
type Backend struct {
	PID int32
	XID uint32
}

// Report is what one message of a replication connection said, in values that
// both protocols share. What a write waited for is found from its position and
// the reports of all connections between the members:
//
//	server                  link to a member                 member
//	  |--- log up to p ------> In |---- delay ---->              |   Sent
//	  |<---- delay ---- Out |<--- In  reached p -----------------|   Reached
//	  |      a write at p is released, if this was the one that it needed
//
// In is when the first byte of the message was read. Out is the clock read
// immediately before the write that passed on its last byte: the acknowledgement
// may act on the server before that write returns, so any later reading would
// put effects before their causes.
type Report struct {
	Kind    ReportKind
	In, Out Stamp
	// Told is when the report was told, which is after the write returned: whatever
	// it did to the server, it did not before Out, and may have done later than it
	// by as much as we were kept from writing. It's the receiver's to fill in.
	Told Stamp
	// Member is who receives the log over this connection: PostgreSQL's
	// application_name; MongoDB's member.
	Member string
	// Connection tells the connections of one proxy apart. It is the receiver's
	// to fill in: a session doesn't know.
	Connection uint64

	// Sent is where the log that was sent ends. Commits are the records that end
	// in it. Blind: records can't be read in it, so none are told. Magic is the
	// version that PostgreSQL's pages had then, said once on each connection.
	Sent    Position
	Commits []Commit
	Blind   bool
	Magic   uint16
	// CaughtUp: with what was sent, all of the server's log is on its way. Only from
	// then on does PostgreSQL count a standby. On ReportJoined: nobody will say so,
	// and it counts as it is.
	CaughtUp bool

	// Reached is how far members have come: the connection's own in PostgreSQL,
	// every member that it knows of in MongoDB.
	Reached []Progress

	// Backends are those that were observed.
	Backends []Backend

	// Set is what only MongoDB's say; nil: the report is PostgreSQL's.
	Set *SetReport

	waits   int  // for its bytes to leave, for its contents to be read
	dropped bool // they will never leave
}

// SetReport is what a message between members of a MongoDB replica set says
// beside positions. Members are named by their _id in decimal; empty: it doesn't
// say. Progress has these names too, whatever connection it comes over, and its
// name is empty in a heartbeat's reply: that speaks of the connection's server.
type SetReport struct {
	// ToClient: the message goes to the member at the connection's client end, and
	// it's that one which learns of it. Heartbeats' replies do.
	ToClient bool
	// Client is the member at the client's end, ClientHost its address in the
	// set's configuration.
	Client, ClientHost string
	// Primary is the member that the sender holds to be the primary. IsPrimary: it
	// says so of itself.
	Primary   string
	IsPrimary bool
	// Version is that of the set's configuration, as the client has it; 0: it
	// doesn't say.
	Version int64
	// SyncSource is the address that the connection's server follows.
	SyncSource string
}

// WantsReports says whether anybody asked for reports. A session that isn't
// asked doesn't look at a replication stream.
func (o *Open) WantsReports() bool { return o.Report != nil }

// NewReport begins a report whose message's first byte came in at now. It's
// told once its bytes have left (MarkReport) and ReadReport was called.
func (o *Open) NewReport(kind ReportKind, now Stamp) *Report {
	return &Report{Kind: kind, In: now, waits: 2}
}

// MarkReport says that the message ends at that offset of the direction's
// stream (one past its last byte). Offsets must not decrease.
func (o *Open) MarkReport(r *Report, dir Direction, end int64) {
	o.marks[dir].Push(mark{end: end, report: r})
}

// ReadReport says that all of the message has been read.
func (o *Open) ReadReport(r *Report) { o.settleReport(r) }

// DropReport is ReadReport for a message that said nothing.
func (o *Open) DropReport(r *Report) {
	r.dropped = true
	o.settleReport(r)
}

// Leave sets what is told when the connection ends: by Over.
func (o *Open) Leave(r *Report) { o.leaving = r }

// Over says that one end of the connection is gone for the other one, from at
// on; 0: nobody noted when.
func (o *Open) Over(at Stamp) {
	r := o.leaving
	if o.leaving = nil; r == nil || o.Report == nil {
		return
	}
	if r.Out == 0 {
		r.Out = at
	}
	o.Report(r)
}

func (o *Open) settleReport(r *Report) {
	if r.waits--; r.waits == 0 && !r.dropped && o.Report != nil {
		o.Report(r)
	}
}

// reportLeft records a departure; at is 0 if the bytes will never leave.
func (o *Open) reportLeft(r *Report, at Stamp) {
	r.Out = at
	r.dropped = r.dropped || at == 0
	o.settleReport(r)
}
