package proxy

import (
	"encoding/binary"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// poller is the kernel's side of a loop: an epoll set with the loop's sockets
// and a bell, which is an eventfd that other threads ring.
type poller struct {
	epoll  int
	bell   int32
	timer  int // a timerfd, where the kernel has no epoll_pwait2; else -1
	events [128]unix.EpollEvent
}

// changes is what a loop is told of a socket, once for each change (EPOLLET).
const changes = unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLPRI | unix.EPOLLET

func (p *poller) open() (err error) {
	p.epoll, p.bell, p.timer = -1, -1, -1
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	bell, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("eventfd: %w", err)
	}
	p.bell = int32(bell)
	if err = p.watch(bell, unix.EPOLLIN); err != nil {
		return err
	}
	// Linux 5.11 and later have it; sandboxes may refuse what they don't know.
	if _, err := p.pwait2(0); err != 0 {
		return p.openTimer()
	}
	return nil
}

// openTimer makes the timerfd do what epoll_pwait2 can't.
func (p *poller) openTimer() (err error) {
	if p.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC); err != nil {
		return fmt.Errorf("timerfd: %w", err)
	}
	// Nothing is ever read from it: each expiry is a change.
	return p.watch(p.timer, unix.EPOLLIN|unix.EPOLLET)
}

func (p *poller) close() {
	for _, fd := range []int{p.epoll, int(p.bell), p.timer} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

func (p *poller) watch(fd int, events uint32) error {
	err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
	if err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	return nil
}

// ring ends the loop's wait, from any thread.
func (p *poller) ring() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(int(p.bell), one[:]) // EAGAIN: it rings already
}

func (p *poller) silence() {
	var b [8]byte
	_, _ = unix.Read(int(p.bell), b[:])
}

// wait waits for at most patience nanoseconds, 0 for what is there already and
// less for ever, and returns what changed.
func (p *poller) wait(patience int64) []unix.EpollEvent {
	// The kernel may end a wait late by a thousandth, so as to wake for several
	// at once (select_estimate_accuracy in fs/select.c). Aim short: the rest is
	// another wait, and the thousandth of that is nothing.
	if patience > 1e6 {
		patience -= patience / 1000
	}
	var n int
	var err syscall.Errno
	switch {
	case patience == 0:
		n, err = p.poll()
	case p.timer >= 0:
		n, err = p.waitByTimer(patience)
	default:
		n, err = p.pwait2(patience)
	}
	if err != 0 {
		return nil // EINTR; anything else would be our own mistake
	}
	return p.events[:n]
}

// poll doesn't block, so the Go scheduler need not know of it.
func (p *poller) poll() (int, syscall.Errno) {
	n, _, err := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.epoll),
		uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), 0, 0, 0)
	return int(n), err
}

// timespec is the kernel's, of 64 bits on every machine
// (__kernel_timespec in include/uapi/linux/time_types.h).
type timespec struct{ seconds, nanoseconds int64 }

// pwait2 may block, so it must go through the Go scheduler: a garbage collection
// doesn't wait for a thread in a system call that it knows of.
func (p *poller) pwait2(patience int64) (int, syscall.Errno) {
	ts := timespec{patience / 1e9, patience % 1e9}
	timeout := &ts
	if patience < 0 {
		timeout = nil
	}
	n, _, err := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.epoll),
		uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), uintptr(unsafe.Pointer(timeout)), 0, 0)
	return int(n), err
}

func (p *poller) waitByTimer(patience int64) (int, syscall.Errno) {
	// A time of 0 disarms it (timerfd_settime(2)).
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(max(patience, 0))}
	_ = unix.TimerfdSettime(p.timer, 0, &at, nil)
	n, _, err := unix.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.epoll),
		uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), ^uintptr(0), 0, 0)
	return int(n), err
}
