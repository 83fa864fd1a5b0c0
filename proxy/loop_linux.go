package proxy

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/wirewait/wirewait/wire"
)

// hasEpoll says whether there are event loops here.
const hasEpoll = true

// An event loop is one thread that drives many connections:
//
//	wait: sockets that changed, due times, mail from other threads
//	  | each makes its connections ready
//	  v
//	turn: one turn for each ready connection, of bounded work;
//	      whoever has more to do is ready again
//
// A connection belongs to one loop, whose thread alone touches its sockets.
// Whatever another thread wants of it comes as mail.
type loop struct {
	proxy *Proxy
	poller
	clock *clock
	load  atomic.Int64 // connections

	table []*epollDriver // by descriptor; nil: not ours
	dues  dueQueue[*epollDriver]
	ready []*epollDriver
	spare []*epollDriver // the memory of ready

	buf []byte // what reads go to, of all connections
	vec [][]byte
	iov []unix.Iovec

	mu   sync.Mutex
	mail []letter
	done chan struct{} // closed when the thread has ended
}

// letter asks a loop for something.
type letter struct {
	kind letterKind
	to   *epollDriver
}

type letterKind uint8

const (
	letterAdd   letterKind = iota // drive it
	letterHalt                    // end it
	letterRuled                   // look at what is due anew: rules have changed
	letterQuit                    // end the loop
)

// slack is how late the kernel may be with a wait's end, in nanoseconds, in
// order to wake for several at once. Its default is 50 µs
// (PR_SET_TIMERSLACK, prctl(2)).
const slack = 1

func newLoop(p *Proxy) (*loop, error) {
	l := &loop{proxy: p, clock: p.clock, buf: getBuffer(), done: make(chan struct{})}
	if err := l.poller.open(); err != nil {
		return nil, fmt.Errorf("event loop: %w", err)
	}
	go l.run()
	return l, nil
}

// post sends mail. It may be called by any goroutine, the loop's own too.
func (l *loop) post(k letterKind, d *epollDriver) {
	l.mu.Lock()
	l.mail = append(l.mail, letter{k, d})
	first := len(l.mail) == 1
	l.mu.Unlock()
	if first {
		l.ring()
	}
}

// run is the loop's thread. It is never unlocked from its goroutine, so that it
// ends with it, and the timer slack is nobody else's.
func (l *loop) run() {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, slack, 0, 0, 0) // without it waits end later
	defer close(l.done)
	for l.turn() {
	}
	l.poller.close()
	putBuffer(l.buf)
}

// turn waits and gives all that is ready its turn. It reports false when the
// loop is to end.
func (l *loop) turn() bool {
	mail := false
	for _, ev := range l.wait(l.patience()) {
		if ev.Fd == l.bell {
			mail = true
		} else if d := l.at(ev.Fd); d != nil {
			d.happened(int(ev.Fd), ev.Events)
			l.makeReady(d)
		}
	}
	if mail && !l.readMail() {
		return false
	}
	if l.dues.len() > 0 {
		for now := l.clock.now(); ; {
			d := l.dues.pop(now)
			if d == nil {
				break
			}
			l.makeReady(d.of)
		}
	}
	list := l.ready
	l.ready = l.spare[:0]
	for i, d := range list {
		list[i], d.ready = nil, false
		d.turn()
	}
	l.spare = list
	return true
}

// patience is how long to wait, at most; negative: for ever.
func (l *loop) patience() int64 {
	if len(l.ready) > 0 {
		return 0
	}
	if due := l.dues.next(); due != 0 {
		return max(int64(due-l.clock.now()), 0)
	}
	return -1
}

func (l *loop) makeReady(d *epollDriver) {
	if !d.ready {
		d.ready = true
		l.ready = append(l.ready, d)
	}
}

func (l *loop) readMail() bool {
	l.silence()
	l.mu.Lock()
	mail := l.mail
	l.mail = nil
	l.mu.Unlock()
	for _, m := range mail {
		switch m.kind {
		case letterAdd:
			m.to.add()
		case letterRuled:
			m.to.rulesChanged()
		case letterHalt:
			m.to.halted()
		case letterQuit:
			return false
		}
	}
	return true
}

func (l *loop) at(fd int32) *epollDriver {
	if int(fd) < len(l.table) {
		return l.table[fd]
	}
	return nil
}

func (l *loop) put(fd int, d *epollDriver) {
	for len(l.table) <= fd {
		l.table = append(l.table, nil)
	}
	l.table[fd] = d
}

// schedule has the connection made ready at due, if nothing else does before; 0:
// only then.
func (l *loop) schedule(d *epollDriver, due wire.Stamp) {
	if d.wake.at != due {
		l.dues.set(&d.wake, due)
	}
}

// loops are a proxy's event loops. They start with the first connection that
// they can drive. The zero value is ready to use.
type loops struct {
	mu  sync.Mutex
	all []*loop
	err error
}

// loopCount is how many loops there are. One is left out of the number of
// processors, so that the Go scheduler has one to run all else on while loops
// sleep in the kernel with theirs.
func loopCount() int { return max(1, min(runtime.GOMAXPROCS(0)-1, 4)) }

// pick is the loop with the fewest connections, with one more counted.
func (ls *loops) pick(p *Proxy) (*loop, error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.err == nil && len(ls.all) == 0 {
		ls.err = ls.start(p)
	}
	if ls.err != nil {
		return nil, ls.err
	}
	best := ls.all[0]
	for _, l := range ls.all[1:] {
		if l.load.Load() < best.load.Load() {
			best = l
		}
	}
	best.load.Add(1)
	return best, nil
}

func (ls *loops) start(p *Proxy) error {
	for range loopCount() {
		l, err := newLoop(p)
		if err != nil {
			if len(ls.all) > 0 {
				return nil // fewer will do
			}
			return err
		}
		ls.all = append(ls.all, l)
	}
	return nil
}

// close ends all loops. No connection may be left.
func (ls *loops) close() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.all {
		l.post(letterQuit, nil)
		<-l.done
	}
	ls.all = nil
}
