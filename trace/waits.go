package trace

import (
	"time"

	"github.com/wirewait/wirewait/wire"
)

// The parts of an exchange's time, as Waits.Dominant and metrics name them.
const (
	PartReceive     = "receive"
	PartRequest     = "request"
	PartServer      = "server"
	PartReplication = "replication"
	PartReply       = "reply"
)

// Waits is an exchange's time, divided. None is negative, and
//
//	Receive + Request + Server + Replication + Reply == Total
//
// exactly, whatever stamps are missing.
type Waits struct {
	// Receive is the request's first byte in to its last byte in.
	Receive time.Duration
	// Request is its last byte in to its last byte out: what we held it for.
	Request time.Duration
	// Server is the request's last byte out to the reply's last byte in, less
	// Replication.
	Server time.Duration
	// Replication is the wait for other members; zero if none was seen.
	Replication time.Duration
	// Reply is the reply's last byte in to its last byte out.
	Reply time.Duration
	// Total is the request's first byte in to the last byte out.
	Total time.Duration

	// Planned is the delay that was asked for, and Achieved what the line
	// really held, both directions together. Only sides that had a plan and
	// whose last byte left are counted, so that the two can be compared.
	Planned, Achieved time.Duration
	// Stalled is how long reading stood still because the line was full. It is
	// contained in Request and Reply: a full line is our doing, neither the
	// client's (receive) nor the server's.
	Stalled time.Duration
	// Dominant names the largest part.
	Dominant string
}

// Split divides an exchange's time by its stamps. The ends are fixed first:
// the first stamp, and the last byte out (without a reply: the request's last
// byte out). The stamps between are then clamped into order, so a missing one
// makes its part zero and never a sum wrong.
func Split(x *wire.Exchange) Waits {
	req, rep := &x.Sides[wire.ToServer], &x.Sides[wire.ToClient]
	start, end := Start(x), End(x)
	in := min(max(req.LastIn, start), end)
	out := min(max(req.LastOut, in), end)
	back := min(max(rep.LastIn, out), end)

	w := Waits{
		Receive: time.Duration(in - start),
		Request: time.Duration(out - in),
		Server:  time.Duration(back - out),
		Reply:   time.Duration(end - back),
		Total:   time.Duration(end - start),
	}
	if rep.LastIn == 0 {
		// Nothing came back, so nothing of the time can be the reply's.
		w.Server, w.Reply = w.Server+w.Reply, 0
	}
	w.move(&w.Receive, &w.Request, req.Stalled)
	w.move(&w.Server, &w.Reply, rep.Stalled)
	w.addDelay(req)
	w.addDelay(rep)
	w.Dominant = w.dominant()
	return w
}

// Start is the exchange's first stamp: the request's first byte in.
func Start(x *wire.Exchange) wire.Stamp {
	req, rep := &x.Sides[wire.ToServer], &x.Sides[wire.ToClient]
	for _, s := range [...]wire.Stamp{req.FirstIn, req.LastIn, req.LastOut, rep.FirstIn, rep.LastIn, rep.LastOut} {
		if s != 0 {
			return s
		}
	}
	return 0
}

// End is the exchange's last stamp: the reply's last byte out; where the
// reply was cut, the last byte that came; where there is none, the request's
// last byte out, or in.
func End(x *wire.Exchange) wire.Stamp {
	req, rep := &x.Sides[wire.ToServer], &x.Sides[wire.ToClient]
	start := Start(x)
	if s := max(rep.LastIn, rep.LastOut); s != 0 {
		return max(s, start)
	}
	return max(req.LastOut, req.LastIn, start)
}

// move takes a stall out of the part in which the peer seemed slow and puts it
// into the part that is ours.
func (w *Waits) move(from, to *time.Duration, stalled time.Duration) {
	d := min(max(stalled, 0), *from)
	*from -= d
	*to += d
	w.Stalled += d
}

func (w *Waits) addDelay(s *wire.Side) {
	planned, achieved, _ := Held(s)
	w.Planned += planned
	w.Achieved += achieved
}

// Held is the delay that a side was to have and had. Not ok: it had none to
// have, or its last byte never left.
func Held(s *wire.Side) (planned, achieved time.Duration, ok bool) {
	if s.Planned <= 0 || s.LastIn == 0 || s.LastOut == 0 {
		return 0, 0, false
	}
	return s.Planned, max(s.LastOut.Sub(s.LastIn), 0), true
}

// Part is one named part of the time.
type Part struct {
	Name string
	Time time.Duration
}

// Parts lists the parts in the order in which they happen.
func (w *Waits) Parts() [5]Part {
	return [5]Part{
		{PartReceive, w.Receive},
		{PartRequest, w.Request},
		{PartServer, w.Server},
		{PartReplication, w.Replication},
		{PartReply, w.Reply},
	}
}

// dominant is the name of the largest part; the server's on a tie, as it's the
// one that was asked to do something.
func (w *Waits) dominant() string {
	name, most := PartServer, w.Server
	for _, p := range w.Parts() {
		if p.Time > most {
			name, most = p.Name, p.Time
		}
	}
	return name
}
