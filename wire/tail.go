package wire

import "time"

// Tail is an end that exchanges may share: the bytes that make the server
// commit, and those that say it did (PostgreSQL's Sync and ReadyForQuery).
// When they pass it isn't known yet whose end they are; that is decided after
// decoding, by CompleteWith.
type Tail struct {
	ends    [2]end
	marks   int
	waiting []*Exchange
	closed  bool
}

type end struct {
	in, out Stamp
	stalled time.Duration // all of the direction's until then
}

// NewTail makes a tail, or uses one again.
func (o *Open) NewTail() *Tail {
	n := len(o.tails)
	if n == 0 {
		return &Tail{}
	}
	t := o.tails[n-1]
	o.tails = o.tails[:n-1]
	return t
}

// MarkTail says that the tail's message of a direction came in whole at now and
// ended at that offset of the stream (one past its last byte). Offsets must not decrease.
func (o *Open) MarkTail(t *Tail, dir Direction, offset int64, now Stamp) {
	t.ends[dir] = end{in: now, stalled: o.stalled[dir]}
	t.marks++
	o.marks[dir].Push(mark{end: offset, tail: t})
}

// CompleteWith is Complete for an exchange that ends with t in both directions:
// its last bytes, in and out, are the tail's. It's emitted after they left.
func (o *Open) CompleteWith(x *Exchange, t *Tail) {
	if t.marks == 0 {
		t.give(x)
		o.Complete(x)
		return
	}
	o.Hold(x)
	t.waiting = append(t.waiting, x)
	o.Complete(x)
}

// CloseTail says that no exchange will be completed with t any more, after
// which t must not be used.
func (o *Open) CloseTail(t *Tail) {
	t.closed = true
	o.recycle(t)
}

// tailLeft records a departure; at is 0 if the bytes will never leave.
func (o *Open) tailLeft(t *Tail, dir Direction, at Stamp) {
	t.ends[dir].out = at
	t.marks--
	if t.marks > 0 {
		return
	}
	for i, x := range t.waiting {
		t.give(x)
		t.waiting[i] = nil
		o.Release(x)
	}
	t.waiting = t.waiting[:0]
	o.recycle(t)
}

// give makes the tail's ends those of x.
func (t *Tail) give(x *Exchange) {
	for dir := range t.ends {
		if e, s := t.ends[dir], &x.Sides[dir]; e.in != 0 {
			s.LastIn, s.LastOut = e.in, e.out
			s.Stalled = e.stalled - s.stallBase
		}
	}
}

func (o *Open) recycle(t *Tail) {
	if !t.closed || t.marks > 0 {
		return
	}
	waiting := t.waiting
	*t = Tail{}
	if cap(waiting) <= 64 {
		t.waiting = waiting
	}
	if len(o.tails) < 64 {
		o.tails = append(o.tails, t)
	}
}
