package inject

import (
	"math"
	"time"

	"github.com/wirewait/wirewait/wire"
)

// End is how a direction ends.
type End uint8

// EndEOF becomes a half-close of the other socket, EndReset a reset of it. The
// other two are a rule's: EndCut is the end of the whole connection in good
// order, whatever else waits; EndAbort resets both its sockets.
const (
	EndNone End = iota
	EndEOF
	EndReset
	EndCut
	EndAbort
)

// Never is when bytes are due that are held: not before Line.Release.
const Never = wire.Stamp(math.MaxInt64)

// chunkSize is what the line allocates for bytes that it copies.
const chunkSize = 16 << 10

// Line is the queue of runs in front of one socket: bytes with due times that
// never decrease, and at last the direction's end. The zero value is an empty
// line. It's not safe for concurrent use.
type Line struct {
	// Free gets back every adopted buffer that the line is done with. Nil
	// leaves them to the garbage collector.
	Free func([]byte)
	// Held is what came before it was due, and left since.
	Held Tally

	now     wire.Stamp // of what is pushed
	runs    []run
	head    int
	bytes   int
	lastDue wire.Stamp
	tail    *chunk // the chunk that Push may still append to
	end     End
	endCame wire.Stamp
	endDue  wire.Stamp
}

// run is a stretch of a chunk with one due time.
type run struct {
	came, due wire.Stamp
	data      []byte
	*chunk
}

// Tally adds up the delays of runs. A peer that takes its time with what is due
// counts as well: that is what was achieved.
type Tally struct {
	Runs uint64
	// Planned and Achieved are in seconds: nanoseconds overflow within days of
	// many connections.
	Planned, Achieved float64
	// MaxError is the most that a run left too late by.
	MaxError time.Duration
}

func (t *Tally) add(r *run, at wire.Stamp) {
	t.Runs++
	t.Planned += r.due.Sub(r.came).Seconds()
	t.Achieved += at.Sub(r.came).Seconds()
	t.MaxError = max(t.MaxError, at.Sub(r.due))
}

// chunk is memory that runs point into. A run that is not written yet and a
// reader that still decodes hold one reference each.
type chunk struct {
	buf     []byte
	used    int
	refs    int
	adopted bool
}

// Empty says that no byte waits. The end may still.
func (l *Line) Empty() bool { return l.head == len(l.runs) }

// Bytes is the number of bytes that wait.
func (l *Line) Bytes() int { return l.bytes }

// Clamp moves due to no earlier than anything that came before it.
func (l *Line) Clamp(due wire.Stamp) wire.Stamp {
	l.lastDue = max(due, l.lastDue)
	return l.lastDue
}

// Arrived is when the bytes came that are pushed next.
func (l *Line) Arrived(now wire.Stamp) { l.now = now }

// Push copies b to the end of the line.
func (l *Line) Push(due wire.Stamp, b []byte) {
	for len(b) > 0 {
		if l.tail == nil || l.tail.used == len(l.tail.buf) {
			l.tail = &chunk{buf: make([]byte, max(min(len(b), chunkSize), 512))}
		}
		c := l.tail
		n := copy(c.buf[c.used:], b)
		l.append(due, c, c.buf[c.used:c.used+n])
		c.used += n
		b = b[n:]
	}
}

// Adoption is a buffer that the line took over instead of copying it.
type Adoption struct{ c *chunk }

// Adopt takes the buffer buf over. The caller may go on reading it until it
// calls Done, and must not write to it any more.
func (l *Line) Adopt(buf []byte) Adoption {
	return Adoption{&chunk{buf: buf, used: len(buf), refs: 1, adopted: true}}
}

// PushAdopted puts the stretch [lo, hi) of an adopted buffer at the end.
func (l *Line) PushAdopted(due wire.Stamp, a Adoption, lo, hi int) {
	l.append(due, a.c, a.c.buf[lo:hi])
}

// Done says that the caller no longer reads the adopted buffer.
func (l *Line) Done(a Adoption) { l.unref(a.c) }

func (l *Line) append(due wire.Stamp, c *chunk, data []byte) {
	l.bytes += len(data)
	if n := len(l.runs); n > l.head {
		// Bytes that follow in the same memory and are due together are one
		// run: one system call.
		if r := &l.runs[n-1]; r.chunk == c && r.due == due && cap(r.data)-len(r.data) == cap(data) {
			r.data = r.data[:len(r.data)+len(data)]
			return
		}
	}
	c.refs++
	l.runs = append(l.runs, run{came: l.now, due: due, data: data, chunk: c})
}

// PushFront puts b before everything else, due at once: bytes that were on
// their way and that the socket did not take. It copies b.
func (l *Line) PushFront(due wire.Stamp, b []byte) {
	c := &chunk{buf: append([]byte(nil), b...), used: len(b), refs: 1}
	l.bytes += len(b)
	if l.head == 0 {
		l.runs = append(l.runs, run{})
		copy(l.runs[1:], l.runs)
		l.head = 1
	}
	l.head--
	l.runs[l.head] = run{came: due, due: due, data: c.buf, chunk: c}
}

// Due appends to vec the stretches that may be written at now, up to limit
// bytes, in order. They stay in the line until Wrote; vec is valid until then.
func (l *Line) Due(now wire.Stamp, limit int, vec [][]byte) [][]byte {
	for i := l.head; i < len(l.runs) && l.runs[i].due <= now && limit > 0; i++ {
		d := l.runs[i].data
		if len(d) > limit {
			d = d[:limit]
		}
		limit -= len(d)
		vec = append(vec, d)
	}
	return vec
}

// Late reports whether at least n bytes were due by now and wait all the same:
// the socket in front of the line doesn't take them.
func (l *Line) Late(now wire.Stamp, n int) bool {
	if l.bytes < n {
		return false
	}
	for i := l.head; i < len(l.runs) && l.runs[i].due <= now; i++ {
		if n -= len(l.runs[i].data); n <= 0 {
			return true
		}
	}
	return false
}

// Wrote takes n bytes off the front of the line, which left at at.
func (l *Line) Wrote(n int, at wire.Stamp) {
	l.bytes -= n
	for n > 0 {
		r := &l.runs[l.head]
		if n < len(r.data) {
			r.data = r.data[n:]
			return
		}
		n -= len(r.data)
		if r.due > r.came {
			l.Held.add(r, at)
		}
		l.unref(r.chunk)
		*r = run{}
		l.head++
	}
	switch {
	case l.head == len(l.runs):
		l.head, l.runs, l.tail = 0, l.runs[:0], nil
		if cap(l.runs) > 64 {
			l.runs = nil
		}
	case l.head > 64 && l.head*2 > len(l.runs):
		m := copy(l.runs, l.runs[l.head:])
		clear(l.runs[m:])
		l.runs, l.head = l.runs[:m], 0
	}
}

// Close puts the direction's end behind everything else.
func (l *Line) Close(due wire.Stamp, e End) {
	if l.end == EndNone {
		l.end, l.endDue, l.endCame = e, l.Clamp(due), l.now
	}
}

// Ended is the direction's end if it is due and nothing waits before it.
func (l *Line) Ended(now wire.Stamp) End {
	if l.end != EndNone && l.Empty() && l.endDue <= now {
		return l.end
	}
	return EndNone
}

// Next is when there will be something to do: a run or the end falling due.
// Zero means never, as things stand.
func (l *Line) Next() wire.Stamp {
	next := wire.Stamp(0)
	switch {
	case !l.Empty():
		next = l.runs[l.head].due
	case l.end != EndNone:
		next = l.endDue
	}
	if next == Never {
		return 0
	}
	return next
}

// Release makes due what was held: due says when n bytes are, of each run in order.
func (l *Line) Release(now wire.Stamp, due func(n int) wire.Stamp) {
	first := len(l.runs)
	for first > l.head && l.runs[first-1].due == Never {
		first--
	}
	last := now
	for i := first; i < len(l.runs); i++ {
		last = max(last, due(len(l.runs[i].data)))
		l.runs[i].due = last
	}
	if l.endDue == Never {
		l.endDue = last
	}
	if l.lastDue == Never {
		l.lastDue = last
	}
}

// Hasten moves forward what waits: due says of a run that came then and is due
// then when it leaves instead, if that is earlier, and the same of the direction's
// end. Nothing overtakes anything, and what is held stays so.
func (l *Line) Hasten(due func(came, due wire.Stamp, end bool) wire.Stamp) {
	last := wire.Stamp(0)
	for i := l.head; i < len(l.runs); i++ {
		if r := &l.runs[i]; r.due != Never {
			r.due = max(min(r.due, due(r.came, r.due, false)), last)
			last = r.due
		}
	}
	if l.end != EndNone && l.endDue != Never {
		l.endDue = max(min(l.endDue, due(l.endCame, l.endDue, true)), last)
		last = l.endDue
	}
	if l.lastDue != Never {
		l.lastDue = min(l.lastDue, last)
	}
}

// Drop throws away what waits and returns how many bytes that was.
func (l *Line) Drop() int {
	n := l.bytes
	for i := l.head; i < len(l.runs); i++ {
		l.unref(l.runs[i].chunk)
	}
	l.runs, l.head, l.bytes, l.tail = nil, 0, 0, nil
	return n
}

func (l *Line) unref(c *chunk) {
	c.refs--
	if c.refs == 0 && c.adopted && l.Free != nil {
		l.Free(c.buf)
	}
}
