package proxy

import (
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// epollDriver drives a connection as one of many in an event loop. It owns both
// descriptors, and only the loop's thread touches anything here but by halt and
// broken.
type epollDriver struct {
	*conn
	loop  *loop
	lanes [2]lane // by direction
	phase phase

	ready bool              // in the loop's list of those who have a turn
	wake  due[*epollDriver] // when it is to have one, if nothing happens
}

type phase uint8

const (
	phaseNew     phase = iota // the loop doesn't know of it yet
	phaseDriving              // bytes pass
	phaseOver                 // nothing passes any more; halted will follow
	phaseLeaving              // the sockets are being closed
	phaseGone                 // they are
)

// onLoop is a driver for a connection of two plain sockets, and what starts it;
// nil if it isn't one, or there is no descriptor to do it with.
func (c *conn) onLoop(e *established) (driver, func()) {
	if !plain(e.client) || !plain(e.server) {
		return nil, nil
	}
	l, err := c.link.proxy.loops.pick(c.link.proxy)
	if err != nil {
		c.link.say(noticeLoop, "connections are driven by goroutines", "error", err)
		return nil, nil
	}
	fds, err := detach(e.client, e.server)
	if err != nil {
		l.load.Add(-1)
		return nil, nil
	}
	d := &epollDriver{conn: c, loop: l}
	d.wake.of = d
	up, down := &d.lanes[wire.ToServer], &d.lanes[wire.ToClient]
	up.fd, up.prefix, up.unix = fds[0], e.prefix, isUnix(e.client)
	down.fd, down.unix = fds[1], isUnix(e.server)
	return d, func() { l.post(letterAdd, d) }
}

func (d *epollDriver) halt() { d.loop.post(letterHalt, d) }

func (d *epollDriver) ruled() { d.loop.post(letterRuled, d) }

func (d *epollDriver) broken() bool { return d.lanes[wire.ToClient].broken.Load() }

// add begins the driving.
func (d *epollDriver) add() {
	d.phase = phaseDriving
	for i := range d.lanes {
		d.loop.put(d.lanes[i].fd, d)
	}
	d.lanes[wire.ToServer].readable = len(d.lanes[wire.ToServer].prefix) > 0
	for i := range d.lanes {
		if err := d.loop.watch(d.lanes[i].fd, changes); err != nil {
			d.link.proxy.log.Warn("connection ended", "link", d.link.Name(), "error", err)
			d.phase = phaseOver
			d.tear()
			return
		}
	}
	d.mu.Lock()
	stopped := d.stopped
	d.mu.Unlock()
	if stopped { // before the loop knew of it
		d.halted()
		return
	}
	d.checkStop()
	d.rulesChanged() // those that were there before
}

// happened notes what changed on a socket.
func (d *epollDriver) happened(fd int, events uint32) {
	i := wire.ToServer
	if d.lanes[i].fd != fd {
		i = wire.ToClient
	}
	ln := &d.lanes[i]
	if events&(unix.EPOLLOUT|unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		ln.full = false
	}
	if events&(unix.EPOLLRDHUP|unix.EPOLLPRI|unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		ln.readable, ln.tail = true, true
	}
	if events&unix.EPOLLIN != 0 {
		ln.readable = true
	}
}

// turn does what there is to do, but no more than one read and one write in each
// direction, and sees to the next turn.
func (d *epollDriver) turn() {
	if d.phase == phaseLeaving {
		d.drain()
		return
	}
	for dir := range wire.Direction(len(d.lanes)) {
		d.write(dir)
		d.listen(dir)
		d.read(dir)
	}
	if d.phase != phaseDriving {
		return
	}
	d.checkStop()
	d.plan()
}

// plan has the loop give another turn, as soon as there is something to do.
func (d *epollDriver) plan() {
	var due wire.Stamp // 0: only when something happens
	at := func(t wire.Stamp) {
		if t != 0 && (due == 0 || t < due) {
			due = t
		}
	}
	for dir := range d.lanes {
		ln, dst := &d.lanes[dir], &d.lanes[1-dir]
		if !ln.done && (!dst.full || ln.delivery != nil) {
			at(ln.next)
		}
		switch {
		case ln.readDone:
		case ln.paused:
			at(ln.again)
		case ln.readable:
			at(1) // at once
		default:
			at(ln.silent)
		}
	}
	if due != 0 && due <= d.loop.clock.now() {
		d.loop.makeReady(d)
		due = 0
	}
	d.loop.schedule(d, due)
}

// read reads once, if there may be something, and passes it on.
func (d *epollDriver) read(dir wire.Direction) {
	ln := &d.lanes[dir]
	if !ln.readable || ln.paused || ln.readDone || d.phase != phaseDriving {
		return
	}
	b := d.loop.buf
	var n int
	var err error
	if len(ln.prefix) > 0 {
		n = copy(b, ln.prefix)
		if ln.prefix = ln.prefix[n:]; len(ln.prefix) == 0 {
			ln.prefix = nil // and its memory
		}
	} else if n, err = rawRecv(ln.fd, b); err == nil {
		// Less than was asked for: that was all, and more is another change
		// (epoll(7), question 9), unless something stands behind it already.
		// A unix socket's read may also end where another write began.
		ln.readable = n == len(b) || ln.tail || ln.unix
	}
	switch {
	case err == unix.EAGAIN:
		ln.readable, ln.tail = false, false
	case err != nil:
		d.readEnds(dir, err)
	case n == 0:
		d.readEnds(dir, io.EOF)
	default:
		d.pass(dir, b[:n])
	}
}

func (d *epollDriver) pass(dir wire.Direction, b []byte) {
	ln, dst := &d.lanes[dir], &d.lanes[1-dir]
	d.renewSilence(ln)
	o := d.forward(dir, b, dst)
	if o.kept {
		d.loop.buf = getBuffer()
	}
	ln.next, ln.paused, ln.again = o.next, o.pause, o.again
	if o.other {
		d.lookAgain(dir.Other())
	}
	if o.err != nil {
		d.failed(dir, o.err)
	}
}

// lookAgain asks when a direction has something to do.
func (d *epollDriver) lookAgain(dir wire.Direction) {
	ln := &d.lanes[dir]
	if ln.done || ln.delivery != nil {
		return
	}
	d.mu.Lock()
	ln.next = d.pump.Next(dir)
	d.mu.Unlock()
}

// rulesChanged is ruled, on the loop.
func (d *epollDriver) rulesChanged() {
	if d.phase != phaseDriving {
		return
	}
	for dir := range d.lanes {
		d.tryResume(wire.Direction(dir)) // a rate may have gone
		d.lookAgain(wire.Direction(dir))
	}
	d.loop.makeReady(d)
}

// readEnds passes on how the reading of a direction ended.
func (d *epollDriver) readEnds(dir wire.Direction, err error) {
	ln := &d.lanes[dir]
	ln.readDone = true
	if d.readEnd(dir, err) {
		ln.next = d.loop.clock.now()
	} else {
		d.ends(dir)
	}
}

// listen does what is due in a direction whose reading stands still: it goes on
// if the line has room again, and ends if the peer was silent for too long.
func (d *epollDriver) listen(dir wire.Direction) {
	ln := &d.lanes[dir]
	if ln.readDone || d.phase != phaseDriving {
		return
	}
	switch {
	case ln.paused && ln.again != 0 && ln.again <= d.loop.clock.now():
		d.tryResume(dir)
	case !ln.paused && !ln.readable && ln.silent != 0 && ln.silent <= d.loop.clock.now():
		d.readEnds(dir, os.ErrDeadlineExceeded)
	}
}

func (d *epollDriver) tryResume(dir wire.Direction) {
	ln := &d.lanes[dir]
	if !ln.paused {
		return
	}
	ok, again := d.resume(dir)
	if ln.paused, ln.again = !ok, again; ok {
		d.renewSilence(ln) // the peer was not silent: nobody listened
	}
}

// write writes once, if something is due, or carries out the end.
func (d *epollDriver) write(dir wire.Direction) {
	ln, dst := &d.lanes[dir], &d.lanes[1-dir]
	switch {
	case ln.done || ln.next == 0 || d.phase != phaseDriving:
		return
	case ln.delivery != nil:
		d.deliver(dir)
		return
	case dst.full || ln.next > d.loop.clock.now():
		return
	}
	d.mu.Lock()
	vec, end, next := d.due(dir, d.loop.vec[:0])
	d.mu.Unlock()
	switch {
	case len(vec) > 0:
		d.loop.vec = vec[:0]
		d.writeDue(dir, vec)
		clear(vec)
	case end != inject.EndNone:
		d.carryOut(dir, end)
	default:
		ln.next = next
	}
}

func (d *epollDriver) writeDue(dir wire.Direction, vec [][]byte) {
	ln, dst := &d.lanes[dir], &d.lanes[1-dir]
	at := d.loop.clock.now()
	n, err := dst.tryv(vec, d.loop)
	room, next := d.wrote(dir, n, at)
	ln.next = next
	if err != nil {
		d.failed(dir, err)
	} else if room {
		d.tryResume(dir)
	}
}

// carryOut does to the other socket what happened to this one.
func (d *epollDriver) carryOut(dir wire.Direction, e inject.End) {
	if d.cutShort(e) {
		d.phase = phaseOver
		return
	}
	ln, dst := &d.lanes[dir], &d.lanes[1-dir]
	if e == inject.EndReset || ln.broken.Load() {
		ln.delivery = d.newDelivery(dst)
		d.deliver(dir)
		return
	}
	_ = unix.Shutdown(dst.fd, unix.SHUT_WR) // an error shows on the other direction
	d.ends(dir)
}

// failed says that the socket which a direction writes to is gone.
func (d *epollDriver) failed(dir wire.Direction, err error) {
	d.fail(dir, err)
	d.lanes[dir].paused = false // what comes now is thrown away
	d.ends(dir)
}

// ends counts a direction as ended. What comes next is read from the socket that
// it wrote to.
func (d *epollDriver) ends(dir wire.Direction) {
	d.lanes[dir].done, d.lanes[dir].next = true, 0
	if d.endWay(dir) {
		d.renewSilence(&d.lanes[1-dir])
	} else {
		d.phase = phaseOver
	}
}

// renewSilence is called when something was heard, or could not be.
func (d *epollDriver) renewSilence(ln *lane) {
	if d.half.Load() {
		ln.silent = d.loop.clock.now().Add(d.link.proxy.config.Linger)
	}
}
