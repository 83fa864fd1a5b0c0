package trace

import (
	"strconv"

	"github.com/wirewait/wirewait/wire"
)

// Missing reports that a reply was due and never came whole: the connection
// ended first, so nobody knows from here whether the write was done.
func (f *Finished) Missing() bool {
	return !f.NoReply && (!f.Answered || f.Postgres.Unconfirmed)
}

// Failed reports that something the client asked for was not done, or that
// nobody knows: an error reply, documents that could not be written, a write
// that an error after it rolled back, a reply that never came. A write whose concern was not met has been done and did not
// fail; see Unreplicated.
func (f *Finished) Failed() bool {
	return f.Missing() || f.Answered && !f.OK || f.Mongo.WriteErrors > 0 || f.Postgres.RolledBack
}

// StatusCode is the server's code, of the error, else of the first write error,
// else of the write concern's; empty if there was none.
func (f *Finished) StatusCode() string {
	switch m := &f.Mongo; {
	case f.ErrorCode != "":
		return f.ErrorCode
	case m.WriteErrors > 0 && m.WriteErrCode != 0:
		return strconv.Itoa(int(m.WriteErrCode))
	case m.ConcernError != 0:
		return strconv.Itoa(int(m.ConcernError))
	}
	return ""
}

// Unreplicated reports that the write was done on the server it was sent to,
// and that the wait for other members ended without them (a MongoDB
// writeConcernError, a cancelled wait for PostgreSQL's standbys).
func (f *Finished) Unreplicated() bool {
	return f.Mongo.ConcernError != 0 || f.Postgres.NotReplicated
}

// Concern is what the write waited for, in a word or two: MongoDB's write
// concern, PostgreSQL's commit level, or "in transaction" for a write whose
// wait comes with its transaction's commit. Empty for reads and where nothing
// is known.
func (f *Finished) Concern() string {
	switch {
	case !f.Write:
		return ""
	case f.Deferred():
		return InTransaction
	case f.Protocol == wire.MongoDB:
		return f.Mongo.WriteConcern.Label()
	}
	return f.Postgres.SynchronousCommit
}

// Deferred reports a write whose wait comes with its transaction's commit.
func (f *Finished) Deferred() bool {
	if f.Protocol == wire.MongoDB {
		return f.Mongo.InTransaction && !f.endsTransaction()
	}
	return f.Postgres.InBlock
}

func (f *Finished) endsTransaction() bool {
	return f.Operation == "commitTransaction" || f.Operation == "abortTransaction"
}

// InTransaction is the Concern of a write that waits with its transaction.
const InTransaction = "in transaction"

// Background reports an exchange that says nothing about an application's
// waits: monitoring, and replication, whose one request lasts for hours.
func (f *Finished) Background() bool {
	return f.Mongo.Monitor || f.Peer != nil && f.Peer.Replication != ""
}
