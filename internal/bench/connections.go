package main

import (
	"context"
	"fmt"
	"time"

	"github.com/wirewait/wirewait/internal/study"
)

// busyConns is how many of the most connections are busy.
const busyConns = 100

// connections measures what an exchange costs on one connection and on
// thousands, and what thousands cost of which few are busy.
func (b *bench) connections(ctx context.Context) error {
	wanted := b.pick(10_000, 2_000)
	most := min(wanted, mostConns())
	if most < wanted {
		b.missing("%d connections: a process may have so few files here that %d is the most (ulimit -Hn)", wanted, most)
	}
	sizes := []int{1, 100, 1000, most}
	programs := []program{b.relayProgram()}
	for _, m := range append(b.others(), b.wirewaits(wirewaitTCP, "tcp")...) {
		if m.kind != toxiProxy { // its memory is in idle
			programs = append(programs, m)
		}
	}
	var lanes []*lane
	defer func() { release(lanes) }()
	for _, m := range programs {
		for _, n := range sizes {
			l, err := b.open(ctx, m.name(), n, n, func(upstream string) (*process, []string, error) {
				p, err := m.start(upstream, 0)
				if err != nil {
					return nil, nil, err
				}
				return p, []string{p.Addr}, nil
			})
			if err != nil {
				return fmt.Errorf("%s, %d: %w", m.name(), n, err)
			}
			lanes = append(lanes, l)
		}
	}
	got, err := b.walk(ctx, lanes)
	if err != nil {
		return err
	}
	t := b.reportSizes("connections", "CPU µs per exchange, by the number of connections",
		"One round trip of 128 bytes at a time, on each connection in turn, so that nothing differs but how many there are. "+
			"What is colder in the caches with so many, the kernel's part too, is in every program's growth: the last column compares it with the relay's.",
		sizes, lanes, got)
	for _, m := range programs {
		if m.kind == wirewaitTCP {
			b.report.goal(fmt.Sprintf("growth of the cost per exchange to %d connections, %s", most, m.name()),
				t.cell(m.name(), growth), "x", flatGoal, false)
		}
	}
	return b.crowd(ctx, most, len(sizes), lanes)
}

// crowd lets few of the most connections be busy, all at once.
func (b *bench) crowd(ctx context.Context, most, sizes int, lanes []*lane) error {
	var largest []*lane
	for i := sizes - 1; i < len(lanes); i += sizes {
		largest = append(largest, lanes[i])
	}
	got, err := b.rounds(ctx, b.pick(9, 3), largest, job{Kind: "ping", Held: true, Conns: busyConns, Warm: 50 * time.Millisecond,
		For: time.Duration(b.pick(300, 100)) * time.Millisecond})
	if err != nil {
		return err
	}
	t := b.report.table("crowd", fmt.Sprintf("%d connections of which %d are busy", most, busyConns),
		"KiB/connection", "round trips/s", "p50 µs", "p99 µs", "CPU µs/round trip", "CPU / relay")
	t.Note = "KiB/connection: the growth of the resident memory of one process while the connections were opened, each with one round trip."
	rows := rounds{}
	for i, l := range largest {
		rows[l.row] = got[i]
	}
	for _, l := range largest {
		x := target{kind: l.row, baseline: relayTCP}
		t.add(l.row, exactly(l.grown/1024, 1), study.SpreadOf(rows.column(l.row, rate)), study.SpreadOf(rows.column(l.row, p50)),
			study.SpreadOf(rows.column(l.row, p99)), study.SpreadOf(rows.column(l.row, cpu)), rows.ratio(x, cpu))
	}
	return nil
}
