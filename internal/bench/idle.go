package main

import (
	"cmp"
	"fmt"
	"time"
)

// idleConns is how many connections are opened, used once and left alone.
const idleConns = 2000

// idle measures what a connection costs that does nothing.
func (b *bench) idle() error {
	makers := []struct {
		name  string
		speak string
		start func() (*process, error)
	}{
		{relayTCP, "", func() (*process, error) { return b.fleet.role("relay", "copy32", b.server.Addr) }},
		{wirewaitTCP, "", func() (*process, error) { return b.wirewait(b.server.Addr, nil, "--protocol", "tcp") }},
		{untraced, "postgres", func() (*process, error) { return b.wirewait(b.server.Addr, nil, "--protocol", "postgres") }},
	}
	t := &Table{Title: fmt.Sprintf("%d idle connections, KiB each", idleConns),
		Note: "Resident memory of a process of its own for each round, garbage of opening them included. " +
			"Heap and stacks: in use right after collections (GOGC=5).",
		Columns: []string{"", "RSS", "heap and stacks"}}
	b.report.Tables = append(b.report.Tables, t)
	if b.wirewaitPath == "" {
		makers = makers[:1]
	}
	for _, m := range makers {
		var rss []float64
		for range b.pick(6, 1) {
			p, err := m.start()
			if err != nil {
				return err
			}
			v, err := b.perConnection(p, m.speak, func() (float64, error) {
				n, err := resident(p.pid())
				return float64(n), err
			})
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			rss = append(rss, v)
		}
		var live Spread
		if m.name != relayTCP {
			v, err := b.idleHeap(m.speak)
			if err != nil {
				b.missing("heap of idle connections: %v", err)
			}
			live = v
		}
		t.add(m.name, spread(rss), live)
		if m.name == wirewaitTCP {
			b.report.goal("idle TCP connection, RSS", spread(rss), "KiB", 16, false)
			b.report.goal("idle TCP connection, heap and stacks", live, "KiB", 10, false)
		}
	}
	return nil
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
func (b *bench) idleHeap(speak string) (Spread, error) {
	protocol := cmp.Or(speak, "tcp")
	admin, err := freeAddress()
	if err != nil {
		return Spread{}, err
	}
	p, err := b.wirewait(b.server.Addr, []string{"GOGC=5"}, "--protocol", protocol, "--admin", admin)
	if err != nil {
		return Spread{}, err
	}
	v, err := b.perConnection(p, speak, func() (float64, error) {
		return scrape(admin, "go_memstats_heap_alloc_bytes", "go_memstats_stack_inuse_bytes")
	})
	if err != nil {
		return Spread{}, err
	}
	return exactly(v, 1), nil
}
