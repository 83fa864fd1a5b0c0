package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/wirewait/wirewait/internal/study"
)

// lane is a client with connections that stay open, the process that they go
// through, and a server, all its own, so that neither files nor ports nor
// garbage of one lane are another's.
type lane struct {
	row    string
	size   int // of what is varied
	middle int // the process's id
	client *process
	grown  float64 // by how many bytes the process in the middle grew per connection
}

// open makes a lane with so many connections spread over the addresses of a
// process in the middle.
func (b *bench) open(ctx context.Context, row string, size, conns int, start func(upstream string) (*process, []string, error)) (*lane, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	server, err := b.fleet.role("server")
	if err != nil {
		return nil, err
	}
	client, err := b.fleet.role("client")
	if err != nil {
		return nil, err
	}
	p, addrs, err := start(server.Addr)
	if err != nil {
		return nil, err
	}
	l := &lane{row: row, size: size, middle: p.pid(), client: client}
	if err := l.hold(addrs, len(addrs)); err != nil { // what the first ones need for all
		return nil, err
	}
	before, err := l.resident()
	if err != nil {
		return nil, err
	}
	if rest := conns - len(addrs); rest > 0 {
		if err := l.hold(addrs, rest); err != nil {
			return nil, err
		}
		after, err := l.resident()
		if err != nil {
			return nil, err
		}
		l.grown = (after - before) / float64(rest)
	}
	return l, nil
}

func (l *lane) hold(addrs []string, conns int) error {
	_, err := l.client.ask(job{Kind: "hold", Addrs: addrs, Conns: conns})
	return err
}

func (l *lane) resident() (float64, error) {
	return settle(func() (float64, error) {
		n, err := resident(l.middle)
		return float64(n), err
	})
}

// release closes the connections before their processes are stopped, which
// would wait for them.
func release(lanes []*lane) {
	for _, l := range lanes {
		_, _ = l.client.ask(job{Kind: "release"}) // one that is gone holds none
	}
}

// rounds gives every lane its turns until the context ends, in an order drawn
// anew for each round; the outcomes are by lane, in the order of the rounds.
func (b *bench) rounds(ctx context.Context, n int, lanes []*lane, j job) ([][]outcome, error) {
	got := make([][]outcome, len(lanes))
	for range n {
		for _, i := range rand.Perm(len(lanes)) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			l := lanes[i]
			j.Watch = l.middle
			o, err := l.client.ask(j)
			if err != nil {
				return nil, fmt.Errorf("%s, %d: %w", l.row, l.size, err)
			}
			got[i] = append(got[i], o)
		}
	}
	return got, nil
}

// walk measures each lane with one round trip at a time, on each of its
// connections in turn, so that lanes differ in nothing but their size.
func (b *bench) walk(ctx context.Context, lanes []*lane) ([][]outcome, error) {
	return b.rounds(ctx, b.pick(12, 4), lanes, job{Kind: "walk", Warm: 20 * time.Millisecond,
		For: time.Duration(b.pick(150, 60)) * time.Millisecond})
}

// reportSizes makes a table of a row for each program and a column for each
// size, and of how much the largest costs more than the smallest. The lanes
// are those of the first program, by size, then those of the next.
func (b *bench) reportSizes(id, title, note string, sizes []int, lanes []*lane, got [][]outcome) *Table {
	var columns []string
	for _, n := range sizes {
		columns = append(columns, fmt.Sprint(n))
	}
	t := b.report.table(id, title, append(columns, growth, growthToFirst)...)
	t.Note = note
	var baseline []float64
	for i := 0; i < len(lanes); i += len(sizes) {
		var cells []study.Spread
		costs := make([][]float64, len(sizes))
		for k := range sizes {
			for _, o := range got[i+k] {
				costs[k] = append(costs[k], cpu(o))
			}
			cells = append(cells, study.SpreadOf(costs[k]))
		}
		grown := study.Ratios(costs[len(sizes)-1], costs[0])
		if i == 0 {
			baseline = grown
		}
		t.add(lanes[i].row, append(cells, study.SpreadOf(grown), study.SpreadOf(study.Ratios(grown, baseline)))...)
	}
	return t
}

// Columns of such a table: the largest size's cost by the smallest's, and that
// by the first row's.
const (
	growth        = "last / first"
	growthToFirst = "by the first row's"
)

// flatGoal is up to what growth a cost counts as flat.
const flatGoal = 1.1
