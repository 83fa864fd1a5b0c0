package proxy

import (
	"sync"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// netDriver works over any net.Conn, on every platform: one goroutine reads each
// direction, and one writes it while its line holds bytes, so that a blocked
// write never stops the reading and stamping, and a due run never waits for a
// read.
type netDriver struct {
	*conn
	client, server *socket
	running        sync.WaitGroup // its goroutines
	over           chan struct{}  // closed when they are to end
	ways           [2]*way
}

// way is one direction under this driver.
type way struct {
	*netDriver
	dir      wire.Direction
	src, dst *socket
	room     chan struct{} // the line may have room again
	sooner   chan struct{} // something may be due sooner than the writer knows
	writing  bool          // a writer runs; guarded by conn.mu
	vec      [][]byte      // the memory of the writer's list
}

// overNet is a driver for any connection, and what starts it.
func (c *conn) overNet(e *established) (d *netDriver, start func()) {
	d = &netDriver{conn: c, client: newSocket(e.client, e.prefix), server: newSocket(e.server, nil), over: make(chan struct{})}
	d.running.Add(2)
	d.ways = [2]*way{
		wire.ToServer: {netDriver: d, dir: wire.ToServer, src: d.client, dst: d.server},
		wire.ToClient: {netDriver: d, dir: wire.ToClient, src: d.server, dst: d.client},
	}
	for _, w := range d.ways {
		w.room, w.sooner = make(chan struct{}, 1), make(chan struct{}, 1)
	}
	return d, func() {
		go d.ways[wire.ToClient].read()
		go d.ways[wire.ToServer].read()
	}
}

// ruled starts a writer that is needed, and has one that waits look again.
func (d *netDriver) ruled() {
	for _, w := range d.ways {
		w.startWriter()
		signal(w.sooner)
		signal(w.room) // a rate may have gone
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// halt ends all waiting on the sockets.
func (d *netDriver) halt() {
	close(d.over)
	past := time.Unix(1, 0)
	_ = d.client.SetDeadline(past)
	_ = d.server.SetDeadline(past)
	go d.finish()
}

func (d *netDriver) broken() bool { return d.server.broken.Load() }

// finish closes both sockets once the goroutines are done, in a way that lets the
// peers read what was sent to them, and closes the books.
func (d *netDriver) finish() {
	defer d.finished()
	d.running.Wait()
	end := [...]func(*socket){leaveDrained: (*socket).finish, leaveClosed: (*socket).close, leaveReset: (*socket).reset}[d.leave()]
	var both sync.WaitGroup
	both.Go(func() { end(d.client) })
	both.Go(func() { end(d.server) })
	both.Wait()
}

// read is the reading goroutine of a direction.
func (w *way) read() {
	defer w.running.Done()
	for {
		b, err := w.src.read()
		if w.isOver() {
			if err == nil {
				putBuffer(b)
			}
			return
		}
		if err != nil {
			if w.readEnd(w.dir, err) {
				w.startWriter()
			} else {
				w.ends()
			}
			return
		}
		w.renewLinger()
		if !w.pass(b) && !w.waitForRoom() {
			return
		}
	}
}

// pass takes what was read through the pump. It reports false if reading must
// pause.
func (w *way) pass(b []byte) bool {
	o := w.forward(w.dir, b, w.dst)
	if o.next != 0 {
		w.startWriter()
	}
	if o.other {
		w.ways[w.dir.Other()].startWriter()
	}
	if !o.kept {
		putBuffer(b)
	}
	if o.err != nil {
		w.failed(o.err)
	}
	w.checkStop()
	return !o.pause
}

// waitForRoom waits until the line has room again. It reports false if the
// connection is over.
func (w *way) waitForRoom() bool {
	for !w.isOver() {
		ok, again := w.resume(w.dir)
		switch {
		case ok:
			w.renewLinger() // the peer was not silent: nobody listened
			return true
		case again != 0:
			w.link.proxy.alarm.wait(again, w.room, w.over)
		default:
			select {
			case <-w.room:
			case <-w.over:
			}
		}
	}
	return false
}

// startWriter starts a writer if there is something for it.
func (w *way) startWriter() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.writing && !w.stopped && w.pump.Next(w.dir) != 0 {
		w.writing = true
		w.running.Add(1)
		go w.write()
	}
}

// write is the writing goroutine of a direction, while its line holds bytes.
func (w *way) write() {
	defer w.running.Done()
	for !w.isOver() {
		w.mu.Lock()
		vec, end, next := w.due(w.dir, w.vec[:0])
		if len(vec) == 0 && end == inject.EndNone {
			w.writing = next != 0
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
			w.link.proxy.alarm.wait(next, w.sooner, w.over)
		}
	}
}

// writeDue writes what the pump said is due. It reports false if the socket is
// gone.
func (w *way) writeDue(vec [][]byte) bool {
	at := w.link.proxy.clock.now()
	w.vec = vec[:0] // for the next time: nobody else writes meanwhile
	n, err := w.dst.writev(vec)
	clear(vec)
	if room, _ := w.wrote(w.dir, n, at); room {
		w.wakeReader()
	}
	if err != nil {
		w.failed(err)
	}
	return err == nil
}

// carryOut does to the other socket what happened to this one.
func (w *way) carryOut(e inject.End) {
	if w.cutShort(e) {
		return
	}
	if e == inject.EndReset || w.src.broken.Load() {
		// A reset throws away what the kernel has not delivered yet.
		w.dst.delivered(w.link.proxy.config.Linger, w.over)
		w.dst.reset()
		w.tear()
		return
	}
	w.dst.closeWrite()
	w.ends()
}

// failed says that the socket which this direction writes to is gone.
func (w *way) failed(err error) {
	if w.isOver() {
		return
	}
	w.fail(w.dir, err)
	w.mu.Lock()
	w.writing = false
	w.mu.Unlock()
	w.wakeReader()
	w.ends()
}

// ends counts the direction as ended. What comes next is read from the socket
// that it wrote to.
func (w *way) ends() {
	if w.endWay(w.dir) {
		w.linger(w.dst)
		w.checkStop()
	}
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

func (w *way) wakeReader() { signal(w.room) }

func (w *way) isOver() bool {
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}
