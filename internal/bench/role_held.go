package main

import (
	"cmp"
	"errors"
	"sync"
	"time"
)

var errNothingHeld = errors.New("no connection is held")

// openers is how many connections are opened at a time.
const openers = 16

// hold opens connections and makes a round trip on each.
func (c *client) hold(j job) error {
	addrs := j.Addrs
	if len(addrs) == 0 {
		addrs = []string{j.Addr}
	}
	opened, errs := make([]*pinger, j.Conns), make([]error, openers)
	var opening sync.WaitGroup
	for worker := range openers {
		opening.Go(func() {
			for i := worker; i < j.Conns && errs[worker] == nil; i += openers {
				one := j
				one.Addr = addrs[i%len(addrs)]
				p, err := newPinger(one)
				if err == nil {
					opened[i] = p
					err = p.ping()
				}
				errs[worker] = err
			}
		})
	}
	opening.Wait()
	for _, p := range opened {
		if p != nil {
			c.held = append(c.held, p)
		}
	}
	return cmp.Or(errs...)
}

// walk makes one round trip at a time, on each connection held in turn.
func (c *client) walk(j job) (o outcome, err error) {
	var samples []float64
	start := time.Now()
	for begun := start; begun.Sub(start) < j.Warm; begun = time.Now() {
		if err := c.step(); err != nil {
			return o, err
		}
	}
	before := watched(j.Watch)
	start = time.Now()
	for begun := start; begun.Sub(start) < j.For; {
		if err := c.step(); err != nil {
			return o, err
		}
		now := time.Now()
		samples = append(samples, float64(now.Sub(begun)))
		begun = now
	}
	o.Elapsed = time.Since(start)
	o.CPU = watched(j.Watch) - before
	return o, o.summarise(samples)
}

func (c *client) step() error {
	if len(c.held) == 0 {
		return errNothingHeld
	}
	p := c.held[c.at%len(c.held)]
	c.at++
	return p.ping()
}
