package proxy

import (
	"errors"
	"io"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// This driver works over any net.Conn, on every platform: one goroutine reads
// each direction, and one writes it while its line holds bytes, so that a
// blocked write never stops the reading and stamping, and a due run never waits
// for a read.

// writeLimit bounds one write, so that its stamp speaks of all its bytes.
const writeLimit = 256 << 10

// way is one direction under this driver.
type way struct {
	*conn
	dir      wire.Direction
	src, dst *socket
	resume   chan struct{} // the line may have room again
	writing  bool          // a writer runs; guarded by conn.mu
	vec      [][]byte      // the memory of the writer's list
}

// drive starts the moving of bytes, which goes on until both directions ended or
// the connection is stopped.
func (c *conn) drive() {
	up := &way{conn: c, dir: wire.ToServer, src: c.client, dst: c.server, resume: make(chan struct{}, 1)}
	down := &way{conn: c, dir: wire.ToClient, src: c.server, dst: c.client, resume: make(chan struct{}, 1)}
	go down.read()
	go up.read()
}

// read is the reading goroutine of a direction.
func (w *way) read() {
	defer w.ways.Done()
	for {
		b, err := w.src.read()
		if w.isOver() {
			if err == nil {
				putBuffer(b)
			}
			return
		}
		if err != nil {
			w.readEnd(err)
			return
		}
		w.renewLinger()
		if !w.forward(b) && !w.waitForRoom() {
			return
		}
	}
}

// forward takes what was read through the pump. It reports false if reading
// must pause.
func (w *way) forward(b []byte) bool {
	p := w.link.proxy
	now := p.clock.now()
	w.mu.Lock()
	r := w.pump.Read(w.dir, b, now, w.link.settings.Load())
	w.mu.Unlock()

	var n int
	var err error
	var at wire.Stamp
	if r.Direct > 0 {
		at = p.clock.now()
		n, err = w.dst.try(b[:r.Direct])
	}

	w.mu.Lock()
	if r.Direct > 0 {
		w.pump.Sent(w.dir, b[:r.Direct], n, at)
	}
	w.pump.Decode(w.dir, b)
	if !w.unread {
		w.unread = !w.watch()
	}
	w.startWriter()
	w.mu.Unlock()

	if !r.Kept {
		putBuffer(b)
	}
	if err != nil {
		w.failed(err)
	}
	w.checkStop()
	return !r.Pause
}

// waitForRoom waits until the line has room again. It reports false if the
// connection is over.
func (w *way) waitForRoom() bool {
	p := w.link.proxy
	for {
		w.mu.Lock()
		again := w.pump.LookAgain(w.dir)
		w.mu.Unlock()
		if again != 0 {
			p.alarm.wait(again, w.resume, w.over)
		} else {
			select {
			case <-w.resume:
			case <-w.over:
			}
		}
		if w.isOver() {
			return false
		}
		w.mu.Lock()
		ok, _ := w.pump.Resume(w.dir, p.clock.now())
		w.mu.Unlock()
		if ok {
			w.renewLinger() // the peer was not silent: nobody listened
			return true
		}
	}
}

// readEnd passes on how the reading ended. A peer that was silent for too long
// after the other side had ended is treated as if it had ended too.
func (w *way) readEnd(err error) {
	end := inject.EndReset
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || isTimeout(err) {
		end = inject.EndEOF
	}
	w.mu.Lock()
	w.pump.ReadEnd(w.dir, end, w.link.proxy.clock.now(), w.link.settings.Load())
	dead := w.ended[w.dir]
	w.startWriter()
	w.mu.Unlock()
	if dead {
		w.endWay() // nobody is left to tell
	}
}

// startWriter starts a writer if there is something for it. Called with mu held.
func (w *way) startWriter() {
	if !w.writing && w.pump.Next(w.dir) != 0 {
		w.writing = true
		w.ways.Add(1)
		go w.write()
	}
}

// write is the writing goroutine of a direction, while its line holds bytes.
func (w *way) write() {
	defer w.ways.Done()
	p := w.link.proxy
	for !w.isOver() {
		now := p.clock.now()
		w.mu.Lock()
		vec := w.pump.Due(w.dir, now, writeLimit, w.vec[:0])
		end, next := inject.EndNone, wire.Stamp(0)
		if len(vec) == 0 {
			if end = w.pump.Ended(w.dir, now); end == inject.EndNone {
				next = w.pump.Next(w.dir)
				w.writing = next != 0
			}
		}
		w.mu.Unlock()

		switch {
		case len(vec) > 0:
			if !w.writeDue(vec) {
				return
			}
		case end != inject.EndNone:
			w.carryOut(end)
			return
		case next == 0:
			w.checkStop()
			return
		default:
			p.alarm.wait(next, nil, w.over)
		}
	}
}

// writeDue writes what the pump said is due. It reports false if the socket is
// gone.
func (w *way) writeDue(vec [][]byte) bool {
	p := w.link.proxy
	at := p.clock.now()
	w.vec = vec[:0] // for the next time: nobody else writes meanwhile
	n, err := w.dst.writev(vec)
	clear(vec)
	w.mu.Lock()
	resume := w.pump.Wrote(w.dir, n, at)
	w.mu.Unlock()
	if resume {
		w.wakeReader()
	}
	if err != nil {
		w.failed(err)
	}
	return err == nil
}

// carryOut does to the other socket what happened to this one.
func (w *way) carryOut(e inject.End) {
	if e == inject.EndReset || w.src.broken.Load() {
		// A reset throws away what the kernel has not delivered yet.
		w.dst.delivered(w.link.proxy.config.Linger, w.over)
		w.dst.reset()
		w.tear()
		return
	}
	w.dst.closeWrite()
	w.endWay()
}

// failed says that the socket which this direction writes to is gone. What is
// still read is thrown away; the other direction delivers what it has.
func (w *way) failed(err error) {
	if w.isOver() {
		return
	}
	w.mu.Lock()
	lost := w.pump.Fail(w.dir)
	w.writing = false
	w.mu.Unlock()
	w.link.proxy.log.Debug("write failed", "link", w.link.Name(), "direction", w.dir.String(), "lost", lost, "error", err)
	w.wakeReader()
	w.endWay()
}

// endWay counts the direction as ended. With the second one the connection is
// over; until then the other must not be silent for longer than the linger.
func (w *way) endWay() {
	w.mu.Lock()
	w.ended[w.dir] = true
	both := w.ended[0] && w.ended[1]
	w.mu.Unlock()
	if both {
		w.stop()
		return
	}
	w.half.Store(true)
	// What comes next is read from the socket that this direction wrote to.
	w.linger(w.dst)
	w.checkStop()
}

// renewLinger is called when something was heard, or could not be.
func (w *way) renewLinger() {
	if w.half.Load() {
		w.linger(w.src)
	}
}

// linger bounds the silence on a socket from now on. The lock keeps it from
// undoing the deadline by which a stop ends all waiting.
func (w *way) linger(s *socket) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped {
		_ = s.SetReadDeadline(time.Now().Add(w.link.proxy.config.Linger))
	}
}

func (w *way) wakeReader() {
	select {
	case w.resume <- struct{}{}:
	default:
	}
}

func (w *way) isOver() bool {
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}

// checkStop ends the connection if the proxy is stopping and nothing is under
// way on it any more.
func (w *way) checkStop() {
	select {
	case <-w.link.proxy.stopping:
		w.stopIfQuiet()
	default:
	}
}
