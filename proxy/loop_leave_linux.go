package proxy

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/wirewait/wirewait/wire"
)

// How a connection leaves its loop. What socket.delivered, finish and reset wait
// for is waited for here in turns.

// delivery is the wait, before a reset, for the peer's kernel to have all that
// was written: a reset throws away what it has not.
type delivery struct {
	least int        // bytes not delivered
	until wire.Stamp // when to give up, unless that gets on
	pause time.Duration
}

func (d *epollDriver) newDelivery(dst *lane) *delivery {
	return &delivery{undeliveredBy(dst.fd), d.loop.clock.now().Add(d.link.proxy.config.Linger), time.Millisecond}
}

// deliver resets the socket that a direction writes to once all is delivered, and
// looks again a little later if it is not.
func (d *epollDriver) deliver(dir wire.Direction) {
	ln, dst := &d.lanes[dir], &d.lanes[1-dir]
	now := d.loop.clock.now()
	if now < ln.next {
		return
	}
	wait := ln.delivery
	n := undeliveredBy(dst.fd)
	if n < wait.least {
		wait.least, wait.until = n, now.Add(d.link.proxy.config.Linger)
	}
	if n > 0 && now < wait.until {
		ln.next = now.Add(wait.pause)
		wait.pause = min(2*wait.pause, 100*time.Millisecond)
		return
	}
	d.reset(dst)
	d.phase = phaseOver
	d.tear()
}

// halted begins the end: the sockets are closed now, or soon.
func (d *epollDriver) halted() {
	if d.phase != phaseDriving && d.phase != phaseOver {
		return // add sees to it, or the end has begun
	}
	d.phase = phaseLeaving
	how := d.leave()
	for i := range d.lanes {
		switch ln := &d.lanes[i]; how {
		case leaveDrained:
			_ = unix.Shutdown(ln.fd, unix.SHUT_WR)
			ln.readable, ln.left = true, drainBytes
		case leaveClosed:
			d.close(ln)
		case leaveReset:
			d.reset(ln)
		}
	}
	d.loop.schedule(d, d.loop.clock.now().Add(drainTime))
	d.loop.makeReady(d)
}

// drain reads away what the peers still send, for a short while: see
// socket.finish.
func (d *epollDriver) drain() {
	late := d.wake.at == 0 // the time that was scheduled has come
	for i := range d.lanes {
		ln := &d.lanes[i]
		if ln.fd >= 0 && (late || d.drained(ln)) {
			d.close(ln)
		}
	}
	up, down := &d.lanes[wire.ToServer], &d.lanes[wire.ToClient]
	switch {
	case up.fd < 0 && down.fd < 0:
		d.gone()
	case up.fd >= 0 && up.readable, down.fd >= 0 && down.readable:
		d.loop.makeReady(d)
	}
}

// drained reads away what there is, at most one buffer of it, and reports
// whether that was the last.
func (d *epollDriver) drained(ln *lane) bool {
	if !ln.readable {
		return false
	}
	n, err := rawRecv(ln.fd, d.loop.buf)
	if err == unix.EAGAIN {
		ln.readable = false
		return false
	}
	ln.left -= n
	return err != nil || n == 0 || ln.left <= 0
}

// gone takes the connection off the books.
func (d *epollDriver) gone() {
	d.phase = phaseGone
	d.loop.schedule(d, 0)
	d.loop.load.Add(-1)
	d.finished()
}

// close is the one place where a driven descriptor is closed.
func (d *epollDriver) close(ln *lane) {
	if ln.fd >= 0 {
		d.loop.table[ln.fd] = nil
		_ = unix.Close(ln.fd)
		ln.fd = -1
	}
}

// reset closes the socket so that its peer sees a reset, as far as it can (TCP).
func (d *epollDriver) reset(ln *lane) {
	if ln.fd >= 0 {
		_ = unix.SetsockoptLinger(ln.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
		d.close(ln)
	}
}
