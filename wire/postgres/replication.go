package postgres

import (
	"bytes"
	"encoding/binary"

	"github.com/wirewait/wirewait/wire"
)

// A replication stream is CopyData both ways after START_REPLICATION, with one
// of these in each (integers big-endian,
// https://www.postgresql.org/docs/current/protocol-replication.html):
//
//	           0     1              9             17            25
//	XLogData   w     | start LSN    | server's end | sent at    | log        to the standby
//	keepalive  k     | server's end | sent at | reply now                    to the standby
//	status     r     | written      | flushed      | applied    | ...        to the primary
//	feedback   h     ...                                                     to the primary
//
// Each position is one past the last byte. XLogData and status become reports;
// the rest passes. Physical streams carry the log itself (wal.go).
const (
	xlogDataHead = 25
	statusSize   = 34
)

// replication is what is followed of a replication connection.
type replication struct {
	told    [2]wire.Queue[telling] // framed, and not all decoded
	logical bool
	wal     walReader
	commits []wire.Commit // of the XLogData at hand
	blind   bool          // said that the log can't be read
}

// telling is a message whose report is under way.
type telling struct {
	r     *wire.Report
	begin int64 // where its message begins in the stream
}

// reports whether a message, of which the header has come, makes a report.
func (s *session) reports(dir wire.Direction, t byte) bool {
	if !s.open.WantsReports() {
		return false
	}
	switch t {
	case 'd':
		return s.copyBoth
	case 'W':
		return dir == wire.ToClient
	case 'X', 'c':
		return dir == wire.ToServer && s.copyBoth
	}
	return false
}

// beginReport begins the report of the message whose first byte came at now.
func (s *session) beginReport(dir wire.Direction, f *framer, early int, now wire.Stamp) {
	if early > 0 {
		now = f.headIn
	}
	f.report = s.open.NewReport(wire.ReportSent, now)
	s.told[dir].Push(telling{r: f.report, begin: f.off - int64(early)})
}

// endReport marks where its message ends.
func (s *session) endReport(dir wire.Direction, f *framer) {
	if f.report != nil {
		s.open.MarkReport(f.report, dir, f.off)
		f.report = nil
	}
}

// decodeReport reads what chunk holds of a message that makes a report, if it's
// one. chunk ends at the decoder's offset.
func (s *session) decodeReport(dir wire.Direction, d *decoder, chunk []byte, p *wire.Piece) {
	q := &s.told[dir]
	if q.Len() == 0 || q.Front().begin != d.off-int64(d.seen) {
		return
	}
	r := q.Front().r
	if p.Kind == 'd' {
		early := d.seen - len(chunk)
		s.readStream(dir, d, r, chunk[min(max(headerLen-early, 0), len(chunk)):], p.Last)
	}
	if !p.Last {
		return
	}
	q.Pop()
	if s.peer != nil {
		r.Member = s.peer.Application
	}
	switch {
	case p.Kind == 'W':
		r.Kind, r.CaughtUp = wire.ReportJoined, s.logical
		s.open.Leave(&wire.Report{Kind: wire.ReportLeft, Member: r.Member})
	case p.Kind == 'd' && r.Kind == wire.ReportSent && r.Sent.IsZero():
		s.open.DropReport(r)
		return
	case p.Kind != 'd':
		r.Kind = wire.ReportLeft
	}
	s.open.ReadReport(r)
}

// readStream reads the body of a CopyData, piece by piece.
func (s *session) readStream(dir wire.Direction, d *decoder, r *wire.Report, body []byte, last bool) {
	head := statusSize
	if dir == wire.ToClient {
		head = xlogDataHead
	}
	n := min(head-len(d.body), len(body))
	d.body = append(d.body, body[:n]...)
	body = body[n:]
	if len(d.body) < head {
		return
	}
	switch {
	case dir == wire.ToClient && d.body[0] == 'w':
		s.readLog(d, r, body, last)
	case dir == wire.ToServer && d.body[0] == 'r' && last:
		r.Kind = wire.ReportReached
		var p wire.Progress
		if s.peer != nil {
			p.Member = s.peer.Application
		}
		for l := range p.Reached {
			p.Reached[l] = wire.LSN(binary.BigEndian.Uint64(d.body[1+8*l:]))
		}
		r.Reached = []wire.Progress{p}
	}
}

// readLog takes log that belongs to the XLogData whose head is in d.body. The
// LSN at the front of that moves on with it.
func (s *session) readLog(d *decoder, r *wire.Report, log []byte, last bool) {
	lsn := binary.BigEndian.Uint64(d.body[1:])
	if s.logical {
		return // what a plugin made of the log, whose positions aren't the log's own
	}
	if s.wal.found == nil {
		s.wal.found = s.foundTransaction
	}
	s.wal.feed(lsn, log)
	lsn += uint64(len(log))
	binary.BigEndian.PutUint64(d.body[1:], lsn)
	if !last {
		return
	}
	r.Sent, r.CaughtUp = wire.LSN(lsn), lsn >= binary.BigEndian.Uint64(d.body[9:])
	if r.Blind = s.wal.blind; r.Blind && !s.blind {
		s.blind, r.Magic = true, s.wal.magic
		s.trouble("wal_version")
	}
	if len(s.commits) > 0 {
		r.Commits = append([]wire.Commit(nil), s.commits...)
		s.commits = s.commits[:0]
	}
}

// waitedFor are the operations that somebody may wait for. A ROLLBACK isn't.
var waitedFor = map[byte]wire.CommitKind{
	xactCommit: wire.CommitPlain, xactPrepare: wire.CommitPrepare,
	xactCommitPrep: wire.CommitPrepared, xactAbortPrep: wire.AbortPrepared,
}

func (s *session) foundTransaction(t walTransaction) {
	if kind, ok := waitedFor[t.op]; ok {
		s.commits = append(s.commits, wire.Commit{
			End: wire.LSN(t.end), XID: t.xid, Kind: kind, Apply: t.info&xinfoApply != 0,
		})
	}
}

// noteReplication reads a command of a replication connection.
func (s *session) noteReplication(text []byte) {
	const start = "START_REPLICATION"
	text = bytes.TrimLeft(text, " \t\r\n")
	if len(text) < len(start) || !bytes.EqualFold(text[:len(start)], []byte(start)) {
		return
	}
	// Options, whose values may hold anything, come last and in parentheses.
	words, _, _ := bytes.Cut(text, []byte{'('})
	s.logical = bytes.Contains(bytes.ToUpper(words), []byte(" LOGICAL "))
}
