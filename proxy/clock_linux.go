package proxy

import (
	"container/heap"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wirewait/wirewait/wire"
)

// newAlarm is the precise alarm: one timerfd for all lines, on which one
// goroutine sleeps in the runtime's poller. The poller is woken by the kernel's
// high-resolution timer, not by a timeout rounded to milliseconds.
func newAlarm(c *clock) (alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("timerfd: %w", err)
	}
	// os.NewFile puts a non-blocking descriptor into the poller.
	a := &fdAlarm{clock: c, fd: fd, file: os.NewFile(uintptr(fd), "timerfd"), done: make(chan struct{})}
	if a.raw, err = a.file.SyscallConn(); err != nil {
		a.file.Close()
		return nil, fmt.Errorf("timerfd: %w", err)
	}
	go a.run()
	return a, nil
}

type fdAlarm struct {
	clock *clock
	fd    int
	file  *os.File
	raw   syscall.RawConn
	done  chan struct{}

	mu      sync.Mutex
	waiters dueHeap
	set     wire.Stamp // what the timerfd is set to; 0: nothing
	closed  bool
}

type waiter struct {
	due   wire.Stamp
	index int // in the heap; -1: not there
	fired chan struct{}
}

var waiters = sync.Pool{New: func() any { return &waiter{fired: make(chan struct{}, 1)} }}

func (a *fdAlarm) wait(due wire.Stamp, wake, stop <-chan struct{}) {
	w := waiters.Get().(*waiter)
	w.due = due
	a.mu.Lock()
	heap.Push(&a.waiters, w)
	a.arm()
	a.mu.Unlock()

	select {
	case <-w.fired:
	case <-wake:
		a.forget(w)
	case <-stop:
		a.forget(w)
	}
	waiters.Put(w)
}

func (a *fdAlarm) forget(w *waiter) {
	a.mu.Lock()
	if w.index >= 0 {
		heap.Remove(&a.waiters, w.index)
	} else {
		<-w.fired
	}
	a.mu.Unlock()
}

// arm sets the timerfd to the earliest waiter. Called with mu held.
func (a *fdAlarm) arm() {
	if len(a.waiters) == 0 || a.closed {
		return
	}
	due := a.waiters[0].due
	if a.set != 0 && a.set <= due {
		return
	}
	a.set = due
	in := max(time.Duration(due-a.clock.now()), 1)
	// The error could only be EINVAL or EBADF; both would be our own mistake.
	_ = unix.TimerfdSettime(a.fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(in))}, nil)
}

func (a *fdAlarm) run() {
	defer close(a.done)
	var buf [8]byte
	read := func(fd uintptr) bool {
		_, err := unix.Read(int(fd), buf[:])
		return err != unix.EAGAIN
	}
	for a.raw.Read(read) == nil {
		a.mu.Lock()
		a.set = 0
		for now := a.clock.now(); len(a.waiters) > 0 && a.waiters[0].due <= now; {
			heap.Pop(&a.waiters).(*waiter).fired <- struct{}{}
		}
		a.arm()
		a.mu.Unlock()
	}
}

// close ends the alarm's goroutine. Nobody may wait any more.
func (a *fdAlarm) close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.file.Close()
	<-a.done
}

type dueHeap []*waiter

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due < h[j].due }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *dueHeap) Push(x any) {
	w := x.(*waiter)
	w.index = len(*h)
	*h = append(*h, w)
}

func (h *dueHeap) Pop() any {
	old := *h
	w := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	w.index = -1
	return w
}
