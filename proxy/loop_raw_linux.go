package proxy

import (
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// System calls on non-blocking sockets never wait, so they are made without
// telling the Go scheduler. MSG_NOSIGNAL saves the signal of a broken pipe.

func rawRecv(fd int, b []byte) (int, error) {
	return raw(unix.SYS_RECVFROM, fd, unsafe.Pointer(&b[0]), len(b), 0)
}

func rawSend(fd int, b []byte) (int, error) {
	return raw(unix.SYS_SENDTO, fd, unsafe.Pointer(&b[0]), len(b), unix.MSG_NOSIGNAL)
}

// rawSendv sends as much of vec as one call takes. iov is memory to use.
func rawSendv(fd int, vec [][]byte, iov []unix.Iovec) (int, []unix.Iovec, error) {
	if len(vec) == 1 {
		n, err := rawSend(fd, vec[0])
		return n, iov, err
	}
	iov = iov[:0]
	for _, b := range vec[:min(len(vec), maxIovecs)] {
		v := unix.Iovec{Base: &b[0]}
		v.SetLen(len(b))
		iov = append(iov, v)
	}
	var m unix.Msghdr
	m.Iov = &iov[0]
	m.SetIovlen(len(iov))
	n, err := raw(unix.SYS_SENDMSG, fd, unsafe.Pointer(&m), unix.MSG_NOSIGNAL, 0)
	clear(iov)
	return n, iov, err
}

// maxIovecs is the kernel's UIO_MAXIOV.
const maxIovecs = 1024

func raw(call uintptr, fd int, p unsafe.Pointer, n, flags int) (int, error) {
	for {
		r, _, err := unix.RawSyscall6(call, uintptr(fd), uintptr(p), uintptr(n), uintptr(flags), 0, 0)
		switch err {
		case 0:
			return int(r), nil
		case unix.EINTR:
		default:
			return 0, errno(err)
		}
	}
}

// errno saves the allocation of the error that is no error.
func errno(e syscall.Errno) error {
	if e == unix.EAGAIN {
		return errAgain
	}
	return e
}

var errAgain error = unix.EAGAIN

// plain reports whether a connection is a socket and nothing else.
func plain(c net.Conn) bool {
	switch c.(type) {
	case *net.TCPConn, *net.UnixConn:
		return true
	}
	return false
}

func isUnix(c net.Conn) bool { _, ok := c.(*net.UnixConn); return ok }

// detach takes sockets out of the hands of package net, and so of the runtime's
// poller: the descriptors are the caller's, and the connections are closed. It
// does it for all or, with an error, for none.
func detach(conns ...net.Conn) ([]int, error) {
	fds := make([]int, 0, len(conns))
	for _, c := range conns {
		fd, err := duplicate(c)
		if err != nil {
			for _, fd := range fds {
				_ = unix.Close(fd)
			}
			return nil, err
		}
		fds = append(fds, fd)
	}
	for _, c := range conns {
		_ = c.Close() // of this descriptor only: the socket has another
	}
	return fds, nil
}

func duplicate(c net.Conn) (fd int, err error) {
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return -1, err
	}
	if e := raw.Control(func(old uintptr) {
		fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0)
	}); e != nil {
		return -1, e
	}
	return fd, err
}
