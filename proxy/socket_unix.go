//go:build unix

package proxy

import (
	"errors"
	"io"
	"net"
	"syscall"
)

// direct reads and writes a plain socket by its descriptor, so that a reader
// holds a buffer only while there is something to read, and a write can be
// tried without waiting. The callbacks are made once: none is allocated later.
type direct struct {
	raw syscall.RawConn

	onRead  func(fd uintptr) bool
	buf     []byte
	n       int
	readErr error

	onWrite  func(fd uintptr) bool
	out      []byte
	wrote    int
	writeErr error
}

func newDirect(c net.Conn) *direct {
	switch c.(type) {
	case *net.TCPConn, *net.UnixConn:
	default:
		return nil
	}
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return nil
	}
	d := &direct{raw: raw}
	d.onRead = func(fd uintptr) bool {
		// Read before waiting: the poller is edge-triggered, so to ask for a
		// wake-up without having seen EAGAIN may wait for ever.
		d.buf = getBuffer()
		d.n, d.readErr = retry(syscall.Read, int(fd), d.buf)
		if d.readErr == syscall.EAGAIN {
			putBuffer(d.buf)
			d.buf = nil
			return false
		}
		return true
	}
	d.onWrite = func(fd uintptr) bool {
		d.wrote, d.writeErr = retry(syscall.Write, int(fd), d.out)
		return true
	}
	return d
}

func (d *direct) read() ([]byte, error) {
	if err := d.raw.Read(d.onRead); err != nil {
		return nil, err
	}
	b := d.buf
	d.buf = nil
	if d.readErr == nil && d.n == 0 {
		d.readErr = io.EOF
	}
	if d.readErr != nil {
		putBuffer(b)
		return nil, d.readErr
	}
	return b[:d.n], nil
}

func (d *direct) try(b []byte) (int, error) {
	d.out = b
	err := d.raw.Write(d.onWrite)
	d.out = nil
	if err != nil {
		return 0, err
	}
	if d.writeErr == syscall.EAGAIN {
		return 0, nil
	}
	return max(d.wrote, 0), d.writeErr
}

func retry(call func(int, []byte) (int, error), fd int, b []byte) (int, error) {
	for {
		if n, err := call(fd, b); err != syscall.EINTR {
			return n, err
		}
	}
}

// outOfFiles reports whether the process or the machine has no descriptor left.
func outOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
