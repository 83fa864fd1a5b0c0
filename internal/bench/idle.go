package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/wirewait/wirewait/internal/study"
)

// idleConns is how many connections are opened, used once and left alone.
const idleConns = 2000

// idle measures what a connection costs that does nothing.
func (b *bench) idle() error {
	t := b.report.table("idle", fmt.Sprintf("%d idle connections, KiB each", idleConns), "RSS", "heap and stacks")
	t.Note = "Resident memory of a process of its own for each round, garbage of opening them included. " +
		"Heap and stacks: in use right after collections (GOGC=5)."
	programs := append([]program{b.relayProgram()}, b.others()...)
	programs = append(append(programs, b.wirewaits(wirewaitTCP, "tcp")...), b.wirewaits(untraced, "postgres")...)
	rss := make([][]float64, len(programs))
	for range b.pick(6, 1) {
		for _, i := range rand.Perm(len(programs)) {
			v, err := b.idleResident(programs[i])
			if err != nil {
				return fmt.Errorf("%s: %w", programs[i].name(), err)
			}
			rss[i] = append(rss[i], v)
		}
	}
	for i, m := range programs {
		live := study.Spread{}
		if m.kind == wirewaitTCP || m.kind == untraced {
			v, err := b.idleHeap(m)
			if err != nil {
				b.missing("heap of idle connections: %v", err)
			}
			live = v
		}
		t.add(m.name(), study.SpreadOf(rss[i]), live)
		if m.kind == wirewaitTCP {
			b.report.goal(label("idle TCP connection, RSS", m.driver), t.cell(m.name(), "RSS"), "KiB", by(m.driver, 16, 4), false)
			b.report.goal(label("idle TCP connection, heap and stacks", m.driver), t.cell(m.name(), "heap and stacks"), "KiB", by(m.driver, 10, 4), false)
		}
	}
	return nil
}

// idleResident is the resident memory of a connection in KiB.
func (b *bench) idleResident(m program) (float64, error) {
	p, err := m.start(b.server.Addr, 0)
	if err != nil {
		return 0, err
	}
	return b.perConnection(p, m.speak, func() (float64, error) {
		n, err := resident(p.pid())
		return float64(n), err
	})
}

// perConnection is by how many KiB a measure of a process grows with each idle
// connection. It ends the process.
func (b *bench) perConnection(p *process, speak string, measure func() (float64, error)) (float64, error) {
	defer b.fleet.end(p.pid())
	one := job{Kind: "hold", Addr: p.Addr, Speak: speak, Conns: 1}
	if _, err := b.client.ask(one); err != nil { // what the first one needs for all
		return 0, err
	}
	before, err := settle(measure)
	if err != nil {
		return 0, err
	}
	one.Conns = idleConns
	if _, err := b.client.ask(one); err != nil {
		return 0, err
	}
	after, err := settle(measure)
	if err != nil {
		return 0, err
	}
	_, err = b.client.ask(job{Kind: "release"})
	return (after - before) / 1024 / idleConns, err
}

// settle measures until two values in a row are close to each other.
func settle(measure func() (float64, error)) (float64, error) {
	last, err := measure()
	for range 20 {
		if err != nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
		var v float64
		if v, err = measure(); v > last*0.995 && v < last*1.005 {
			return v, err
		}
		last = v
	}
	return last, err
}

// idleHeap reads heap and stacks from the metrics of a wirewait that collects
// its garbage so often that hardly any is counted.
func (b *bench) idleHeap(m program) (study.Spread, error) {
	admin, err := freeAddress()
	if err != nil {
		return study.Spread{}, err
	}
	p, err := b.wirewait(m.driver, b.server.Addr, []string{"GOGC=5"}, "--protocol", cmp.Or(m.speak, "tcp"), "--admin", admin)
	if err != nil {
		return study.Spread{}, err
	}
	v, err := b.perConnection(p, m.speak, func() (float64, error) {
		return scrape(admin, "go_memstats_heap_alloc_bytes", "go_memstats_stack_inuse_bytes")
	})
	if err != nil {
		return study.Spread{}, err
	}
	return exactly(v, 1), nil
}
