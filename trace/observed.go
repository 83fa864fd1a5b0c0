package trace

import (
	"time"

	"github.com/wirewait/wirewait/wire"
)

// observations are which session made which transaction: the link between a
// client's write and a commit in the log that the wire doesn't show. A session
// that waits for standbys is still in its transaction, and a transaction is of
// one session only, so it doesn't matter when that was seen: if its commit was
// first sent while the session's write was under way, that write made it.
type observations struct {
	sessions map[uint32]sighting // by transaction
	seen     map[int32]int       // how many of a session's are kept
	order    wire.Queue[wire.Backend]
}

// sighting is a session with the latest time since which it certainly waited.
type sighting struct {
	pid  int32
	last time.Time
}

// maxObserved are 5 MB, and as many commits as are kept.
const maxObserved = maxCommits

// add takes in who waited when the server was asked.
func (o *observations) add(waiting []wire.Backend, asked time.Time) {
	if o.sessions == nil {
		o.sessions, o.seen = map[uint32]sighting{}, map[int32]int{}
	}
	for _, b := range waiting {
		if s, known := o.sessions[b.XID]; known {
			o.sessions[b.XID] = sighting{s.pid, asked}
			continue
		}
		if o.order.Len() >= maxObserved {
			o.forget(o.order.Pop())
		}
		o.order.Push(b)
		o.sessions[b.XID] = sighting{b.PID, asked}
		o.seen[b.PID]++
	}
}

func (o *observations) forget(b wire.Backend) {
	delete(o.sessions, b.XID)
	if o.seen[b.PID]--; o.seen[b.PID] == 0 {
		delete(o.seen, b.PID)
	}
}

// session is that of a commit; 0: not known. Whoever ends a prepared transaction
// need not be the session that made it.
func (o *observations) session(c *commit) int32 {
	if c.Kind == wire.CommitPrepared || c.Kind == wire.AbortPrepared {
		return 0
	}
	return o.sessions[c.XID].pid
}

// waitedSince reports whether a commit's session was seen to wait after a time.
func (o *observations) waitedSince(c *commit, at time.Time) bool {
	return o.session(c) != 0 && o.sessions[c.XID].last.After(at)
}

// own is the latest commit that is known to be a session's, and others says that
// the known commits of others aren't. That is only so if the session was ever
// seen: behind a pooler it never is, whose numbers for sessions are its own.
func (o *observations) own(window []commit, f *Finished) (own *commit, others func(*commit) bool) {
	none := func(*commit) bool { return false }
	if f.Peer == nil || f.Peer.BackendPID == 0 || o.seen[f.Peer.BackendPID] == 0 {
		return nil, none
	}
	pid := f.Peer.BackendPID
	for i := range window {
		if c := &window[i]; o.session(c) == pid && inWindow(c, f) {
			own = c
		}
	}
	return own, func(c *commit) bool {
		s := o.session(c)
		return s != 0 && s != pid
	}
}
