package proxy

import (
	"errors"
	"fmt"
	"io"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// A driver moves a connection's bytes through its pump: it waits for sockets and
// due times, reads and writes. What it does in between is the same whichever
// driver it is, and stands in this file:
//
//	read --> forward --> (what is due at once was written; the rest is in the line)
//	         readEnd     an EOF or a reset: it takes its place in the line
//	wait --> due     --> write --> wrote
//	                     carry out the end --> endWay
//	         fail        the socket to write to is gone --> endWay
type driver interface {
	// halt makes the driver end, wherever it waits, and finish the connection.
	// Any goroutine may call it, once.
	halt()
	// ruled has the driver look at what is due anew, in both directions: rules
	// have changed. Any goroutine may call it, at any time.
	ruled()
	// broken reports whether a write to the server met a reset.
	broken() bool
}

// Names of the drivers, for Config.Driver.
const (
	DriverNet   = "net"   // goroutines over net.Conn: everywhere, and for TLS
	DriverEpoll = "epoll" // event loops over plain sockets: Linux
)

// CheckDriver says what is wrong with the name of a driver on this system; nil:
// nothing. The empty name is the system's best.
func CheckDriver(name string) error {
	switch name {
	case "", DriverNet:
		return nil
	case DriverEpoll:
		if !hasEpoll {
			return errors.New("event loops are for Linux: use net")
		}
		return nil
	}
	return fmt.Errorf("unknown driver %q: use %s (Linux) or %s", name, DriverEpoll, DriverNet)
}

// writeLimit bounds one write, so that its stamp speaks of all its bytes.
const writeLimit = 256 << 10

// taker is a socket that takes what it can without waiting: possibly nothing.
type taker interface {
	try(b []byte) (n int, err error)
}

// outcome is what became of bytes that were read.
type outcome struct {
	kept  bool       // the buffer belongs to the line
	pause bool       // the line is full: read no more until resume says so
	again wire.Stamp // when to ask resume although nobody says so; 0: never
	next  wire.Stamp // when the line has something to do; 0: nothing
	other bool       // a rule gave the other direction something to do
	err   error      // of the write
}

// forward takes what was read in a direction through the pump, and writes to dst
// what is due at once.
func (c *conn) forward(dir wire.Direction, b []byte, dst taker) (o outcome) {
	p := c.link.proxy
	now := p.clock.now()
	c.mu.Lock()
	r := c.pump.Read(dir, b, now, c.settings())
	c.mu.Unlock()

	var n int
	var at wire.Stamp
	if r.Direct > 0 {
		at = p.clock.now()
		n, o.err = dst.try(b[:r.Direct])
	}

	c.mu.Lock()
	if r.Direct > 0 {
		c.pump.Sent(dir, b[:r.Direct], n, at)
	}
	c.pump.Decode(dir, b)
	if !c.unread {
		c.unread = !c.watch()
	}
	o.kept, o.pause, o.other = r.Kept, r.Pause, r.Other
	o.next, o.again = c.pump.Next(dir), c.pump.LookAgain(dir)
	c.mu.Unlock()
	return o
}

// due is what a direction may write now, appended to vec; if that is nothing, its
// end, if that has come; else when there will be something, 0 for never.
func (c *conn) due(dir wire.Direction, vec [][]byte) ([][]byte, inject.End, wire.Stamp) {
	now := c.link.proxy.clock.now()
	if vec = c.pump.Due(dir, now, writeLimit, vec); len(vec) > 0 {
		return vec, inject.EndNone, 0
	}
	if end := c.pump.Ended(dir, now); end != inject.EndNone {
		return vec, end, 0
	}
	return vec, inject.EndNone, c.pump.Next(dir)
}

// wrote says that n of the bytes that due gave were taken by a write that began
// at at. It reports whether a paused reader should try resume, and when the line
// has something to do next.
func (c *conn) wrote(dir wire.Direction, n int, at wire.Stamp) (room bool, next wire.Stamp) {
	c.mu.Lock()
	defer c.mu.Unlock()
	room = c.pump.Wrote(dir, n, at)
	return room, c.pump.Next(dir)
}

// resume ends the pause of a direction if its line has room again; if not, again
// is when to look although nobody says so (0: never).
func (c *conn) resume(dir wire.Direction) (ok bool, again wire.Stamp) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ok, _ = c.pump.Resume(dir, c.link.proxy.clock.now())
	return ok, c.pump.LookAgain(dir)
}

// readEnd passes on how the reading of a direction ended. A peer that was silent
// for too long after the other side had ended is treated as if it had ended too.
// It reports false if nobody is left to tell.
func (c *conn) readEnd(dir wire.Direction, err error) bool {
	end := inject.EndReset
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || isTimeout(err) {
		end = inject.EndEOF
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pump.ReadEnd(dir, end, c.link.proxy.clock.now(), c.settings())
	return !c.ended[dir]
}

// fail says that the socket which a direction writes to is gone. What is still
// read is thrown away; the other direction delivers what it has.
func (c *conn) fail(dir wire.Direction, err error) {
	c.mu.Lock()
	lost := c.pump.Fail(dir)
	c.mu.Unlock()
	c.link.proxy.log.Debug("write failed", "link", c.link.Name(), "direction", dir.String(), "lost", lost, "error", err)
}

// endWay counts a direction as ended. With the second one the connection is
// over; until then, which endWay reports, the other must not be silent for longer
// than the linger.
func (c *conn) endWay(dir wire.Direction) bool {
	c.mu.Lock()
	c.ended[dir] = true
	both := c.ended[0] && c.ended[1]
	c.mu.Unlock()
	if both {
		c.stop()
		return false
	}
	c.half.Store(true)
	return true
}

// checkStop ends the connection if the proxy is stopping and nothing is under
// way on it any more.
func (c *conn) checkStop() {
	select {
	case <-c.link.proxy.stopping:
		c.stopIfQuiet()
	default:
	}
}

// newDriver is the driver of an established connection, and what starts it.
func (c *conn) newDriver(e *established) (d driver, start func()) {
	if hasEpoll && c.link.proxy.config.Driver != DriverNet {
		if d, start = c.onLoop(e); d != nil {
			return d, start
		}
	}
	return c.overNet(e)
}
