package proxy

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// socket is one end of a connection, with the few operations that a driver
// needs. Reading and writing may go on at once; each of them from one
// goroutine at a time.
type socket struct {
	net.Conn
	direct *direct // nil: not a plain socket (TLS, or in memory)
	prefix []byte  // bytes that were read ahead of the driver
	small  []byte  // read buffer of a socket that is not plain

	// broken: a write was told that the peer reset the connection. The kernel
	// tells it once, to whoever asks first; a read sees a mere EOF afterwards
	// (Linux, sock_error in include/net/sock.h).
	broken atomic.Bool
}

// newSocket wraps a connection. prefix was read from it already.
func newSocket(c net.Conn, prefix []byte) *socket {
	return &socket{Conn: c, direct: newDirect(c), prefix: prefix}
}

// read returns at least one byte in a buffer of the pool, which the caller owns
// then, or an error. An idle plain socket holds no buffer.
func (s *socket) read() ([]byte, error) {
	if len(s.prefix) > 0 {
		b := getBuffer()
		n := copy(b, s.prefix)
		s.prefix = s.prefix[n:]
		return b[:n], nil
	}
	if s.direct != nil {
		return s.direct.read()
	}
	// Anything else gets a small buffer to wait with.
	if s.small == nil {
		s.small = make([]byte, 16<<10)
	}
	n, err := s.Conn.Read(s.small)
	if n == 0 {
		if err == nil {
			err = io.ErrNoProgress
		}
		return nil, err
	}
	b := getBuffer()
	return b[:copy(b, s.small[:n])], nil
}

// try writes what the socket takes without waiting: possibly nothing.
func (s *socket) try(b []byte) (int, error) {
	if s.direct == nil {
		return 0, nil
	}
	n, err := s.direct.try(b)
	return n, s.note(err)
}

// note remembers a reset. EPIPE is none: the peer had closed in good order, or
// the reset was told before.
func (s *socket) note(err error) error {
	if errors.Is(err, syscall.ECONNRESET) {
		s.broken.Store(true)
	}
	return err
}

// writev writes all of vec and may wait for it.
func (s *socket) writev(vec [][]byte) (int, error) {
	n, err := s.writeAll(vec)
	return n, s.note(err)
}

func (s *socket) writeAll(vec [][]byte) (int, error) {
	if len(vec) == 1 {
		return s.Conn.Write(vec[0])
	}
	if s.direct == nil {
		total := 0
		for _, b := range vec {
			n, err := s.Conn.Write(b)
			total += n
			if err != nil {
				return total, err
			}
		}
		return total, nil
	}
	bufs := net.Buffers(vec)
	n, err := bufs.WriteTo(s.Conn)
	return int(n), err
}

// closeWrite tells the peer that no more bytes will come. For TLS this is
// close_notify; the bytes the other way may go on.
func (s *socket) closeWrite() {
	if c, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		_ = c.CloseWrite() // an error shows on the other direction
		return
	}
	_ = s.Conn.Close()
}

// reset closes the socket so that its peer sees a reset, as far as the socket
// can do it (TCP).
func (s *socket) reset() {
	c := s.underneath()
	if l, ok := c.(interface{ SetLinger(int) error }); ok {
		_ = l.SetLinger(0)
	}
	_ = c.Close()
}

// underneath is the connection without its TLS.
func (s *socket) underneath() net.Conn {
	if u, ok := s.Conn.(interface{ NetConn() net.Conn }); ok { // tls.Conn
		return u.NetConn()
	}
	return s.Conn
}

// delivered waits until the peer's kernel has all that was written, for as long
// as that gets on within patience, or until stop.
func (s *socket) delivered(patience time.Duration, stop <-chan struct{}) {
	c := s.underneath()
	least := undelivered(c)
	deadline := time.Now().Add(patience)
	for pause := time.Millisecond; least > 0 && time.Now().Before(deadline); pause = min(2*pause, 100*time.Millisecond) {
		select {
		case <-stop:
			return
		case <-time.After(pause):
		}
		if n := undelivered(c); n < least {
			least, deadline = n, time.Now().Add(patience)
		}
	}
}

const (
	drainTime  = time.Second
	drainBytes = 256 << 10
)

// finish closes the socket: first its write side, and then it reads away what
// the peer still sends, for a short while. To close(2) with bytes unread makes
// the kernel send a reset, which would destroy what the peer has not read yet,
// such as a last FATAL (RFC 2525, section 2.17).
func (s *socket) finish() {
	_ = s.SetDeadline(time.Now().Add(drainTime))
	s.closeWrite()
	b := getBuffer()
	for left := drainBytes; left > 0; {
		n, err := s.Conn.Read(b)
		if err != nil {
			break
		}
		left -= n
	}
	putBuffer(b)
	_ = s.Conn.Close()
}

func (s *socket) close() { _ = s.Conn.Close() }

func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
