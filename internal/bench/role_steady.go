package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// steadyFor sends by a timetable and takes the time from each message's own
// writing to its reply, however many are under way.
func steadyFor(j job) (o outcome, err error) {
	all, err := newPingers(j)
	if err != nil {
		return o, err
	}
	defer closeAll(all)
	every := time.Duration(j.Conns) * time.Second / time.Duration(j.Rate)
	warm, count := int(j.Warm/every), int((j.Warm+j.For)/every)
	if count <= warm {
		return o, fmt.Errorf("%s are too short for a message on each of %d connections", j.For, j.Conns)
	}
	start := time.Now()
	var running sync.WaitGroup
	for i, p := range all {
		sent := make(chan time.Time, count)
		first := start.Add(every * time.Duration(i) / time.Duration(len(all)))
		running.Go(func() { p.send(first, every, count, sent) })
		running.Go(func() { p.receive(warm, sent) })
	}
	time.Sleep(time.Until(start.Add(j.Warm)))
	measured, before := time.Now(), watched(j.Watch)
	running.Wait()
	o.Elapsed, o.CPU = time.Since(measured), watched(j.Watch)-before
	var samples []float64
	for _, p := range all {
		if p.err != nil {
			return o, p.err
		}
		samples = append(samples, p.samples...)
	}
	return o, o.summarise(samples)
}

// send closes sent when it is through.
func (p *pinger) send(first time.Time, every time.Duration, count int, sent chan<- time.Time) {
	defer close(sent)
	for i := range count {
		time.Sleep(time.Until(first.Add(every * time.Duration(i))))
		sent <- time.Now() // never blocks: there is room for all
		if _, err := p.conn.Write(p.request); err != nil {
			return // receive says what happened
		}
	}
}

// receive leaves the first ones out.
func (p *pinger) receive(warm int, sent <-chan time.Time) {
	for t := range sent {
		if _, err := io.ReadFull(p.conn, p.reply); err != nil {
			p.err = fmt.Errorf("steady load: %w", err)
			p.conn.Close() // or send would go on
			return
		}
		if p.all++; p.all > warm {
			p.samples = append(p.samples, float64(time.Since(t)))
		}
	}
}
