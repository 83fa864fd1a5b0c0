package mongod

import (
	"cmp"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// concern is what a write waits for (src/mongo/db/write_concern.cpp).
type concern struct {
	majority   bool
	members    int   // w: N; 1 if majority or mode
	mode       *mode // nil: none
	journal    bool
	timeout    time.Duration // 0: for ever
	provenance string
}

// maxNodes is the largest w that a server takes.
const maxNodes = 50

// concernOf reads a command's write concern. What it doesn't say is the set's
// default: majority (since 5.0, with no arbiters). Members among themselves ask
// for no more than w: 1.
func (s *Server) concernOf(q *request) (concern, error) {
	c := concern{members: 1, provenance: "clientSupplied"}
	if s.set != nil && !q.connection.internal.Load() {
		c.majority = true
	}
	doc := bson.Raw(q.WriteConcern.Raw)
	w, wErr := doc.LookupErr("w")
	if wErr != nil {
		c.provenance = "implicitDefault"
	} else if err := c.read(w); err != nil {
		return c, err
	}
	if s.set == nil && (c.members > 1 || c.mode != nil) {
		return c, badValue("cannot use 'w' > 1 when a host is not replicated")
	}
	fsync := truth(doc.Lookup("fsync"))
	c.journal = truth(doc.Lookup("j"))
	if fsync && c.journal {
		return c, failedToParse("fsync and j options cannot be used together")
	}
	c.journal = c.journal || fsync
	if c.timeout = q.WriteConcern.WTimeout; c.timeout < 0 {
		c.timeout = 0
	}
	return c, nil
}

func (c *concern) read(w bson.RawValue) error {
	c.majority = false
	if n, ok := w.AsInt64OK(); ok {
		if n < 0 || n > maxNodes {
			return failedToParse("w has to be a non-negative number and not greater than %d; found: %d", maxNodes, n)
		}
		c.members = int(n)
		return nil
	}
	if name, ok := w.StringValueOK(); ok {
		if c.majority = name == "majority"; !c.majority {
			c.mode = &mode{name: name}
		}
		return nil
	}
	var err error
	c.mode, err = readTags(w)
	return err
}

// document is the concern as errInfo shows it.
func (c concern) document() bson.D {
	d := bson.D{{Key: "w", Value: int32(c.members)}}
	switch {
	case c.majority:
		d[0].Value = "majority"
	case c.mode != nil:
		d[0].Value = c.mode.value()
	}
	if c.journal {
		d = append(d, bson.E{Key: "j", Value: true})
	}
	return append(d, bson.E{Key: "wtimeout", Value: int32(c.timeout.Milliseconds())}, bson.E{Key: "provenance", Value: c.provenance})
}

// await waits until the waiter's concern is met. What it returns, if anything, is
// the reply's writeConcernError: the write stays done.
func (s *Server) await(w *waiter) bson.D {
	select {
	case <-w.done:
		return w.problem
	default:
	}
	defer s.counters.waited(time.Now())
	if w.concern.majority || w.concern.journal {
		s.journal.flushSoon()
	}
	var expired <-chan time.Time
	if w.concern.timeout > 0 && !w.concern.own() {
		t := time.NewTimer(w.concern.timeout)
		defer t.Stop()
		expired = t.C
	}
	select {
	case <-w.done:
		return w.problem
	case <-expired:
		s.counters.wtimeouts.Add(1)
	case <-s.ctx.Done():
	}
	if s.giveUp(w) {
		return w.problem
	}
	return wcError(64, "WriteConcernFailed", "waiting for replication timed out",
		bson.D{{Key: "wtimeout", Value: true}, {Key: "writeConcern", Value: w.concern.document()}})
}

// own reports whether the concern is about this member alone.
func (c concern) own() bool { return !c.majority && c.mode == nil && c.members <= 1 }

func wcError(code int32, name, message string, info bson.D) bson.D {
	d := bson.D{{Key: "code", Value: code}, {Key: "codeName", Value: name}, {Key: "errmsg", Value: message}}
	if info != nil {
		d = append(d, bson.E{Key: "errInfo", Value: info})
	}
	return d
}

// label is the concern in a word or two: "majority", "3", "1 j", a mode's name,
// "tags".
func (c concern) label() string {
	s := strconv.Itoa(c.members)
	switch {
	case c.majority:
		s = "majority"
	case c.mode != nil:
		s = cmp.Or(c.mode.name, "tags")
	}
	if c.journal {
		s += " j"
	}
	return s
}
