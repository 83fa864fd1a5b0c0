package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wirewait/wirewait/internal/study"
)

// client makes the load, in a process of its own like all others.
type client struct {
	held []*pinger // by "hold"
	at   int       // the next one that a walk comes to
}

func (c *client) do(j job) outcome {
	var o outcome
	var err error
	switch j.Kind {
	case "ping":
		if j.Count > 0 {
			o, err = pingCount(j)
		} else {
			o, err = c.pingFor(j)
		}
	case "steady":
		o, err = steadyFor(j)
	case "walk":
		o, err = c.walk(j)
	case "stream":
		o, err = readStream(j)
	case "hold":
		err = c.hold(j)
	case "release":
		closeAll(c.held)
		c.held, c.at = nil, 0
	default:
		err = fmt.Errorf("there is no job %q", j.Kind)
	}
	o.Error = text(err)
	return o
}

// pinger is one connection.
type pinger struct {
	conn    net.Conn
	request []byte
	reply   []byte
	ids     bool // requests are numbered as MongoDB's are
	samples []float64
	all     int
	err     error
}

func newPinger(j job) (*pinger, error) {
	nc, err := net.Dial("tcp", j.Addr)
	if err != nil {
		return nil, err
	}
	p := &pinger{conn: nc, request: make([]byte, pingSize), reply: make([]byte, pingSize)}
	switch j.Speak {
	case "postgres":
		p.request = pgInsert()
		err = pgConnect(nc)
	case "mongodb":
		p.request, p.ids = mongoInsert(), true
	default:
		_, err = nc.Write([]byte("E"))
	}
	if err != nil {
		nc.Close()
	}
	return p, err
}

func pgConnect(nc net.Conn) error {
	if _, err := nc.Write(pgStartup()); err != nil {
		return err
	}
	_, err := io.ReadFull(nc, make([]byte, len(pgWelcome)))
	return err
}

func (p *pinger) ping() error {
	if p.ids {
		binary.LittleEndian.PutUint32(p.request[4:], uint32(p.all+1))
	}
	if _, err := p.conn.Write(p.request); err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	if _, err := io.ReadFull(p.conn, p.reply); err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	p.all++
	return nil
}

// The phases of a measurement.
const (
	warming = iota
	measuring
	over
)

// run pings until the phase says that it is over. With a rate it keeps to a
// timetable and catches up when it is behind.
func (p *pinger) run(phase *atomic.Int32, every time.Duration) {
	next := time.Now()
	for t := next; ; {
		at := phase.Load()
		if at == over {
			return
		}
		if every > 0 {
			if wait := time.Until(next); wait > 0 {
				time.Sleep(wait)
			}
			next = next.Add(every)
			t = time.Now()
		}
		if p.err = p.ping(); p.err != nil {
			return
		}
		now := time.Now()
		if at == measuring {
			p.samples = append(p.samples, float64(now.Sub(t)))
		}
		t = now
	}
}

func newPingers(j job) ([]*pinger, error) {
	var all []*pinger
	for range j.Conns {
		p, err := newPinger(j)
		if err != nil {
			closeAll(all)
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func closeAll(pingers []*pinger) {
	for _, p := range pingers {
		p.conn.Close()
	}
}

// pingers are new connections, or some of those held, far from each other.
func (c *client) pingers(j job) (all []*pinger, done func(), err error) {
	if !j.Held {
		all, err = newPingers(j)
		return all, func() { closeAll(all) }, err
	}
	if len(c.held) < j.Conns {
		return nil, nil, fmt.Errorf("%d connections are held, not %d", len(c.held), j.Conns)
	}
	for i := range j.Conns {
		all = append(all, c.held[i*len(c.held)/j.Conns])
	}
	return all, func() {}, nil
}

func (c *client) pingFor(j job) (outcome, error) {
	var o outcome
	all, done, err := c.pingers(j)
	if err != nil {
		return o, err
	}
	defer done()
	for _, p := range all {
		p.samples, p.all = make([]float64, 0, 1<<17), 0
	}
	var every time.Duration
	if j.Rate > 0 {
		every = time.Duration(j.Conns) * time.Second / time.Duration(j.Rate)
	}
	var phase atomic.Int32
	var running sync.WaitGroup
	for _, p := range all {
		running.Go(func() { p.run(&phase, every) })
	}
	time.Sleep(j.Warm)
	before := watched(j.Watch)
	start := time.Now()
	phase.Store(measuring)
	time.Sleep(j.For)
	phase.Store(over)
	o.Elapsed = time.Since(start)
	o.CPU = watched(j.Watch) - before
	running.Wait()

	var samples []float64
	for _, p := range all {
		if p.err != nil {
			return o, p.err
		}
		samples = append(samples, p.samples...)
		p.samples = nil
		o.All += p.all
	}
	return o, o.summarise(samples)
}

// summarise sorts the round trips.
func (o *outcome) summarise(samples []float64) error {
	if len(samples) == 0 {
		return errors.New("no round trip was finished in time: the machine is too busy to measure on")
	}
	slices.Sort(samples)
	o.Count, o.P50, o.P99 = len(samples), study.Quantile(samples, 0.5), study.Quantile(samples, 0.99)
	return nil
}

// pingCount makes so many pings on one connection, each after a gap.
func pingCount(j job) (o outcome, err error) {
	p, err := newPinger(j)
	if err != nil {
		return o, err
	}
	defer p.conn.Close()
	for i := -3; i < j.Count; i++ { // the first ones don't count
		if j.Gap > 0 {
			time.Sleep(j.Gap)
		}
		t := time.Now()
		if err := p.ping(); err != nil {
			return o, err
		}
		if i >= 0 {
			o.Samples = append(o.Samples, float64(time.Since(t)))
		}
	}
	return o, nil
}

// watched is a process's processor time; 0 if there is none to watch.
func watched(pid int) time.Duration {
	if pid == 0 {
		return 0
	}
	d, _ := cpuTime(pid)
	return d
}

// readStream measures from the first bytes on, so that a delay's own length is
// not counted against the throughput.
func readStream(j job) (o outcome, err error) {
	nc, err := net.Dial("tcp", j.Addr)
	if err != nil {
		return o, err
	}
	defer nc.Close()
	ask := binary.BigEndian.AppendUint64([]byte("B"), uint64(j.Bytes))
	if j.Speak == "postgres" {
		if err := pgConnect(nc); err != nil {
			return o, err
		}
		ask = pgSelect(j.Bytes)
	}
	before := watched(j.Watch)
	if _, err := nc.Write(ask); err != nil {
		return o, err
	}
	b := make([]byte, 256<<10)
	n, err := nc.Read(b)
	if err != nil {
		return o, err
	}
	start := time.Now()
	for left := j.Bytes - int64(n); left > 0; left -= int64(n) {
		if n, err = nc.Read(b); err != nil {
			return o, fmt.Errorf("stream: %d bytes were missing: %w", left, err)
		}
	}
	o.Bytes, o.Elapsed = j.Bytes, time.Since(start)
	o.CPU = watched(j.Watch) - before
	return o, nil
}
