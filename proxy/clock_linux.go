package proxy

import (
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
	waiters dueQueue[chan struct{}]
	set     wire.Stamp // what the timerfd is set to; 0: nothing
	closed  bool
}

// waiters are told that their time has come by the channel.
var waiters = sync.Pool{New: func() any { return &due[chan struct{}]{of: make(chan struct{}, 1)} }}

func (a *fdAlarm) wait(at wire.Stamp, wake, stop <-chan struct{}) {
	w := waiters.Get().(*due[chan struct{}])
	a.mu.Lock()
	a.waiters.set(w, max(at, 1))
	a.arm()
	a.mu.Unlock()

	select {
	case <-w.of:
	case <-wake:
		a.forget(w)
	case <-stop:
		a.forget(w)
	}
	waiters.Put(w)
}

func (a *fdAlarm) forget(w *due[chan struct{}]) {
	a.mu.Lock()
	if w.at != 0 {
		a.waiters.set(w, 0)
	} else {
		<-w.of
	}
	a.mu.Unlock()
}

// arm sets the timerfd to the earliest waiter. Called with mu held.
func (a *fdAlarm) arm() {
	next := a.waiters.next()
	if next == 0 || a.closed || a.set != 0 && a.set <= next {
		return
	}
	a.set = next
	in := max(time.Duration(next-a.clock.now()), 1)
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
		now := a.clock.now()
		for w := a.waiters.pop(now); w != nil; w = a.waiters.pop(now) {
			w.of <- struct{}{}
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
