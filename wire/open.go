package wire

import "time"

// Open is the table of one connection's unfinished exchanges and the place
// where their stamps are kept. A session opens, extends and completes
// exchanges; whoever writes the bytes calls Departed. An exchange is emitted
// once it is complete, nothing of it is left to decode, and its last byte has
// left in both directions.
//
// The caller serialises all calls (it's part of the connection's session).
type Open struct {
	// Emit gets each finished exchange and owns it from then on. It returns
	// true to keep it; after false the record is used again. Nil drops all.
	Emit func(*Exchange) (keep bool)
	// Spare gives a record that a receiver of Emit kept and is done with, with
	// whatever it holds; nil: there is none. Nil if records never come back.
	Spare func() *Exchange
	// Report gets what replication connections say, and owns it; nil: nobody
	// asks, and it isn't looked for. It's called by whoever calls this table, and
	// must be set before the connection's first bytes.
	Report func(*Report)

	protocol Protocol
	ordinal  uint64
	count    int
	marks    [2]Queue[mark]
	stalled  [2]time.Duration
	free     []*Exchange
	tails    []*Tail // for use again
	leaving  *Report
}

// NewOpen makes an empty table.
func NewOpen(p Protocol) *Open { return &Open{protocol: p} }

// Len is the number of exchanges opened and not yet emitted.
func (o *Open) Len() int { return o.count }

// New opens an exchange.
func (o *Open) New() *Exchange {
	x := o.blank()
	o.ordinal++
	o.count++
	x.Ordinal = o.ordinal
	x.Protocol = o.protocol
	x.Sides[ToServer].stallBase = o.stalled[ToServer]
	x.Sides[ToClient].stallBase = o.stalled[ToClient]
	return x
}

// blank is a zero exchange, but for memory that it may use again.
func (o *Open) blank() *Exchange {
	var x *Exchange
	if n := len(o.free); n > 0 {
		x = o.free[n-1]
		o.free = o.free[:n-1]
	} else if o.Spare != nil {
		x = o.Spare()
	}
	if x == nil {
		return &Exchange{}
	}
	raw := x.Mongo.WriteConcern.Raw[:0]
	*x = Exchange{}
	x.Mongo.WriteConcern.Raw = raw
	return x
}

// Count adds n bytes to a side. The first bytes set FirstIn, all set LastIn.
func (o *Open) Count(x *Exchange, dir Direction, n int, now Stamp) {
	s := &x.Sides[dir]
	if s.FirstIn == 0 {
		s.FirstIn = now
	}
	s.LastIn = now
	s.Bytes += int64(n)
}

// CountOnly adds n bytes to a side but leaves its stamps: bytes that belong to
// an exchange in the books and aren't waited for (a Sync after its result).
func (o *Open) CountOnly(x *Exchange, dir Direction, n int) {
	x.Sides[dir].Bytes += int64(n)
}

// Mark says that a message of the side ended at offset end of the direction's
// stream (one past its last byte): LastOut will be the departure of that byte.
// Offsets must not decrease.
func (o *Open) Mark(x *Exchange, dir Direction, end int64) {
	s := &x.Sides[dir]
	s.Stalled = o.stalled[dir] - s.stallBase
	x.marks++
	o.marks[dir].Push(mark{end: end, x: x})
}

// Hold keeps x from being emitted until a matching Release: a part of it is
// framed but not decoded.
func (o *Open) Hold(x *Exchange) { x.holds++ }

// Release undoes one Hold.
func (o *Open) Release(x *Exchange) {
	x.holds--
	o.settle(x)
}

// Complete says that nothing more will be added to x.
func (o *Open) Complete(x *Exchange) {
	x.complete = true
	o.settle(x)
}

// Discard ends x without emitting it: it turned out to be no exchange at all.
// x may still be used until its marks have left.
func (o *Open) Discard(x *Exchange) {
	x.discarded = true
	o.Complete(x)
}

// Departed says that the bytes of dir up to offset upto were handed to the
// socket at time at.
func (o *Open) Departed(dir Direction, upto int64, at Stamp) {
	q := &o.marks[dir]
	for q.Len() > 0 && q.Front().end <= upto {
		m := q.Pop()
		if m.x == nil {
			o.otherLeft(m, dir, at)
			continue
		}
		m.x.Sides[dir].LastOut = at
		m.x.marks--
		o.settle(m.x)
	}
}

// Stalled adds to the time that reading of dir stood still.
func (o *Open) Stalled(dir Direction, d time.Duration) { o.stalled[dir] += d }

// Abandon gives up on all marks of a direction: its bytes will never leave.
func (o *Open) Abandon(dir Direction) {
	q := &o.marks[dir]
	for q.Len() > 0 {
		m := q.Pop()
		if m.x == nil {
			o.otherLeft(m, dir, 0)
			continue
		}
		m.x.marks--
		o.settle(m.x)
	}
}

func (o *Open) settle(x *Exchange) {
	if !x.complete || x.emitted || x.holds > 0 || x.marks > 0 {
		return
	}
	x.emitted = true
	o.count--
	if !x.discarded && o.Emit != nil && o.Emit(x) {
		return
	}
	if len(o.free) < 64 {
		o.free = append(o.free, x)
	}
}

// otherLeft is the departure of what isn't an exchange's.
func (o *Open) otherLeft(m mark, dir Direction, at Stamp) {
	if m.tail != nil {
		o.tailLeft(m.tail, dir, at)
		return
	}
	o.reportLeft(m.report, at)
}

// mark has one of the three.
type mark struct {
	end    int64
	x      *Exchange
	tail   *Tail
	report *Report
}
