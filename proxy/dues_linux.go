package proxy

import (
	"container/heap"

	"github.com/wirewait/wirewait/wire"
)

// due is something that is to have a turn at a time.
type due[T any] struct {
	at    wire.Stamp // 0: not in a queue
	index int        // in the queue's heap
	of    T
}

// dueQueue has the earliest first. The zero value is empty.
type dueQueue[T any] struct{ heap dueHeap[T] }

func (q *dueQueue[T]) len() int { return len(q.heap) }

// next is the earliest time; 0: there is none.
func (q *dueQueue[T]) next() wire.Stamp {
	if len(q.heap) == 0 {
		return 0
	}
	return q.heap[0].at
}

// set moves d to a time, from wherever it is; 0 takes it out.
func (q *dueQueue[T]) set(d *due[T], at wire.Stamp) {
	was := d.at
	d.at = at
	switch {
	case was == 0 && at != 0:
		heap.Push(&q.heap, d)
	case was == 0:
	case at == 0:
		heap.Remove(&q.heap, d.index)
	default:
		heap.Fix(&q.heap, d.index)
	}
}

// pop takes the earliest out if its time has come by now; else it is nil.
func (q *dueQueue[T]) pop(now wire.Stamp) *due[T] {
	if len(q.heap) == 0 || q.heap[0].at > now {
		return nil
	}
	d := heap.Pop(&q.heap).(*due[T])
	d.at = 0
	return d
}

type dueHeap[T any] []*due[T]

func (h dueHeap[T]) Len() int           { return len(h) }
func (h dueHeap[T]) Less(i, j int) bool { return h[i].at < h[j].at }
func (h dueHeap[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *dueHeap[T]) Push(x any) {
	d := x.(*due[T])
	d.index = len(*h)
	*h = append(*h, d)
}

func (h *dueHeap[T]) Pop() any {
	old := *h
	d := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return d
}
