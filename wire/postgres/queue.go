package postgres

// queue is first in, first out, and keeps its memory while small.
type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) len() int    { return len(q.items) - q.head }
func (q *queue[T]) front() *T   { return &q.items[q.head] }
func (q *queue[T]) at(i int) *T { return &q.items[q.head+i] }
func (q *queue[T]) push(v T)    { q.items = append(q.items, v) }

func (q *queue[T]) pop() T {
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
		*q = queue[T]{}
	default:
		q.items, q.head = q.items[:0], 0
	}
	return v
}
