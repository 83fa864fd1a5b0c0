package proxy

import (
	"errors"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/wirewait/wirewait/wire"
)

// lane is one direction, and the socket that it reads from.
type lane struct {
	fd     int // -1: closed
	prefix []byte
	unix   bool

	// Of the socket.
	readable bool        // there may be something to read
	tail     bool        // an end, an error or urgent data: read until there is nothing
	full     bool        // it takes no more bytes until it says so
	broken   atomic.Bool // a write met a reset: see socket.broken

	// Of the direction.
	paused   bool       // its line is full
	readDone bool       // nothing more is read
	done     bool       // its end was carried out
	next     wire.Stamp // when its line has something to do; 0: nothing
	again    wire.Stamp // when to look whether a full line has room; 0: never
	silent   wire.Stamp // when its peer has been silent for too long; 0: never
	left     int        // bytes to read away before closing
	delivery *delivery  // a reset waits for what was written before
}

// try writes what the socket takes.
func (ln *lane) try(b []byte) (int, error) {
	if ln.full {
		return 0, nil
	}
	n, err := rawSend(ln.fd, b)
	return n, ln.took(n < len(b), err)
}

// tryv is try for several stretches.
func (ln *lane) tryv(vec [][]byte, l *loop) (n int, err error) {
	total := 0
	for _, b := range vec[:min(len(vec), maxIovecs)] {
		total += len(b)
	}
	n, l.iov, err = rawSendv(ln.fd, vec, l.iov)
	return n, ln.took(n < total, err)
}

// took notes what a write says of the socket.
func (ln *lane) took(short bool, err error) error {
	switch {
	case err == nil || err == unix.EAGAIN:
		ln.full = short
		return nil
	case errors.Is(err, unix.ECONNRESET):
		ln.broken.Store(true)
	}
	return err
}
