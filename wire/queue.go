package wire

// Queue is first in, first out, and keeps its memory while small. The zero
// value is empty. Front, At and Pop need an element to be there.
type Queue[T any] struct {
	items []T
	head  int
}

// Len is the number of elements.
func (q *Queue[T]) Len() int { return len(q.items) - q.head }

// Front is the oldest element, valid until the next Push or Pop.
func (q *Queue[T]) Front() *T { return &q.items[q.head] }

// At is the element i after the oldest, valid until the next Push or Pop.
func (q *Queue[T]) At(i int) *T { return &q.items[q.head+i] }

// Rest is all elements, oldest first, valid until the next Push or Pop.
func (q *Queue[T]) Rest() []T { return q.items[q.head:] }

// Push puts v behind all others.
func (q *Queue[T]) Push(v T) { q.items = append(q.items, v) }

// Pop takes the oldest element.
func (q *Queue[T]) Pop() T {
	var zero T
	v := q.items[q.head]
	q.items[q.head] = zero
	q.head++
	switch {
	case q.head < len(q.items):
		if q.head > 1024 && q.head*2 > len(q.items) {
			n := copy(q.items, q.items[q.head:])
			clear(q.items[n:])
			q.items, q.head = q.items[:n], 0
		}
	case cap(q.items) > 64:
		*q = Queue[T]{}
	default:
		q.items, q.head = q.items[:0], 0
	}
	return v
}
