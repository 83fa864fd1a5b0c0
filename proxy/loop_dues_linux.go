package proxy

import (
	"container/heap"

	"github.com/wirewait/wirewait/wire"
)

// dues are the connections of a loop that are to have a turn at a time, the
// earliest first.
type dues struct{ heap dueDrivers }

func (q *dues) len() int { return len(q.heap) }

// next is the earliest time; 0: there is none.
func (q *dues) next() wire.Stamp {
	if len(q.heap) == 0 {
		return 0
	}
	return q.heap[0].wake
}

// set moves d to due, from wherever it is; 0 takes it out.
func (q *dues) set(d *epollDriver, due wire.Stamp) {
	was := d.wake
	d.wake = due
	switch {
	case was == 0:
		heap.Push(&q.heap, d)
	case due == 0:
		heap.Remove(&q.heap, d.index)
	default:
		heap.Fix(&q.heap, d.index)
	}
}

// pop takes the earliest out if its time has come by now; else it is nil.
func (q *dues) pop(now wire.Stamp) *epollDriver {
	if len(q.heap) == 0 || q.heap[0].wake > now {
		return nil
	}
	d := heap.Pop(&q.heap).(*epollDriver)
	d.wake = 0
	return d
}

type dueDrivers []*epollDriver

func (h dueDrivers) Len() int           { return len(h) }
func (h dueDrivers) Less(i, j int) bool { return h[i].wake < h[j].wake }
func (h dueDrivers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *dueDrivers) Push(x any) {
	d := x.(*epollDriver)
	d.index = len(*h)
	*h = append(*h, d)
}

func (h *dueDrivers) Pop() any {
	old := *h
	d := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return d
}
