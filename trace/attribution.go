package trace

import (
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/wirewait/wirewait/wire"
)

// How it's known which member released a write, beside those of basis.go.
const (
	// BasisUnanimous: every commit that may be this one was released by the same
	// member, so it's certain although the commit isn't.
	BasisUnanimous = "window_unanimous"
	// BasisThenPrimary: the member satisfied the rule, but the reply came more than
	// a millisecond later: the server's own disk may have been last.
	BasisThenPrimary = "position_then_primary"
	// BasisTie: two acknowledgements, either of which may have been the one, came so
	// close together that the order in which the server took them in can't be told.
	BasisTie = "tie"
	// BasisNotWaited: the level asks for no other member, or none is listed.
	BasisNotWaited = "not_waited"
	// BasisNoCommit: no commit is in the log that could be this one: nothing was
	// changed that had to be.
	BasisNoCommit = "no_commit"
	// BasisInterrupted: the wait was cancelled, or its session ended.
	BasisInterrupted = "interrupted"
)

// Replication is what a write waited for in other members. The zero value is
// that of a write of which nothing is known for lack of links to them.
type Replication struct {
	// Basis is how the rest is known; empty if nobody asked.
	Basis string
	// ReleasedBy is the member whose acknowledgement ended the wait; empty if
	// none did or it isn't certain which.
	ReleasedBy string
	// Began is when the write's place in the log was first read on its way to a
	// member, Released when the acknowledgement was passed on; zero if unknown.
	Began, Released wire.Stamp
	// Spread is by how much the wait would differ if another of the Candidates
	// were this write's commit.
	Spread time.Duration
	// Journal is how long, at most, a MongoDB write waited for the server's own
	// disk; zero if it didn't, or nobody knows.
	Journal    time.Duration
	Candidates int
	// Commit is the write's place in the log and XID its transaction; zero if
	// several may be.
	Commit wire.Position
	XID    uint32
	// Acknowledged are the members that had it when the reply left, in the order
	// of their acknowledgements; Behind are the others.
	Acknowledged []MemberWait
	Behind       []string
}

// MemberWait is how one member came to have a write.
type MemberWait struct {
	Member string
	// Sent is when it was first read on its way there; Acknowledged when the
	// acknowledgement was passed on.
	Sent, Acknowledged wire.Stamp
	// SyncSource is whom it followed, where heartbeats told: a MongoDB member.
	SyncSource string
}

func (r *Replication) reset() {
	*r = Replication{Acknowledged: r.Acknowledged[:0], Behind: r.Behind[:0]}
}

// settleTime is how much later than its end a write is looked at. The reports
// that it depends on were made before, on other connections, whose goroutines
// may not have got further.
const settleTime = 100 * time.Millisecond

// attribution finds which member released a write. One goroutine uses it, but
// for its rules and defaults.
type attribution struct {
	rules    perServer[[]ruling]
	defaults perServer[*CommitDefaults]
	standbys perServer[[]string]
	servers  map[string]*replicas
	mongo    mongoSets
}

const maxServers = 256

// serverOf names the server that a connection leads to: the member, if the
// configuration calls it one, else the address.
func serverOf(c *Conn) string {
	if strings.Contains(c.To, ".") {
		return c.To
	}
	return net.JoinHostPort(c.ServerHost, strconv.Itoa(c.ServerPort))
}

// report takes in a report of a connection to a server.
func (a *attribution) report(r *wire.Report, c *Conn) {
	switch g := a.group; {
	case r.Set != nil:
		a.reportSet(r, c)
	case r.Kind == wire.ReportObserved:
		g(serverOf(c)).observed.add(r.Backends, c.Time(r.In))
	default:
		g(serverOf(c)).report(r)
	}
}

// group is what was seen of a server's members.
func (a *attribution) group(name string) *replicas {
	g := a.servers[name]
	if g == nil {
		if a.servers == nil || len(a.servers) >= maxServers {
			a.servers = map[string]*replicas{}
		}
		g = &replicas{}
		a.servers[name] = g
	}
	return g
}

// lost notes that reports of that time found no room.
func (a *attribution) lost(from, to wire.Stamp) {
	for _, g := range a.servers {
		g.lost(from, to)
	}
}

// waitsFor reports whether an exchange must wait for reports.
func (a *attribution) waitsFor(x *wire.Exchange, c *Conn) bool {
	return x.Write && len(a.servers) > 0 && a.servers[serverOf(c)] != nil
}

// judge finds what f waited for in other members, and divides its time anew. It
// does nothing where no member's link was seen.
func (a *attribution) judge(f *Finished) {
	f.Replication.reset()
	if f.Write && f.Protocol == wire.Postgres {
		a.believe(f)
	}
	if !f.Write || len(a.servers) == 0 || f.Deferred() {
		return
	}
	server := serverOf(f.Conn)
	g := a.servers[server]
	if g == nil {
		return
	}
	switch f.Protocol {
	case wire.Postgres:
		g.judgePostgres(f, a.ruleFor(server, f), a.standbys.of(server))
	case wire.MongoDB:
		a.judgeMongo(g, f)
	}
	if r := &f.Replication; r.Began != 0 && r.Released != 0 {
		f.Waits.replicate(f.Exchange, r.Began, r.Released)
	}
}

// replicate makes a wait for other members out of a part of the server's time.
func (w *Waits) replicate(x *wire.Exchange, began, released wire.Stamp) {
	from := max(began, x.Sides[wire.ToServer].LastOut)
	to := min(released, x.Sides[wire.ToClient].LastIn)
	d := min(max(time.Duration(to-from), 0), w.Server)
	w.Server -= d
	w.Replication += d
	w.Dominant = w.dominant()
}
