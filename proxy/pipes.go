package proxy

import (
	"sync"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// Pipes are the wires between two places, one for each direction: what
// Delay.Bandwidth is shared in. The zero value is ready to use, by any number of
// links; it must not be copied.
type Pipes struct {
	way     [2]pipe // indexed by wire.Direction
	forward *Pipes  // whose reverse this is
}

// Reversed are the same pipes for links that lead the other way: what is to the
// server for one is to the client for the other.
func (p *Pipes) Reversed() *Pipes {
	if p.forward != nil {
		return p.forward
	}
	return &Pipes{forward: p}
}

// booker is the pipe of a direction.
func (p *Pipes) booker(dir wire.Direction) inject.Booker {
	if p.forward != nil {
		return &p.forward.way[1-dir]
	}
	return &p.way[dir]
}

// pipe is an inject.Pipe that connections share.
type pipe struct {
	mu sync.Mutex
	inject.Pipe
}

// Book is inject.Booker's.
func (p *pipe) Book(now wire.Stamp, n int, rate int64) wire.Stamp {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.Pipe.Book(now, n, rate)
}

// Free is inject.Booker's.
func (p *pipe) Free() wire.Stamp {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.Pipe.Free()
}

// root is what the pipes are a view of, and whether they are its reverse.
func (p *Pipes) root() (*Pipes, bool) {
	if p.forward != nil {
		return p.forward, true
	}
	return p, false
}

// keepPipes has links that share pipes go on sharing those of the connections
// that exist: every configuration comes with pipes of its own.
func (r *reload) keepPipes() {
	kept := map[*Pipes]*Pipes{}
	r.eachPair(func(now, then *source) {
		root, flipped := now.pipes.root()
		if kept[root] == nil {
			kept[root] = then.pipes.flip(flipped)
		}
	})
	for _, n := range r.plans {
		for _, s := range append([]*source{n.route.base}, n.route.sources.all...) {
			root, flipped := s.pipes.root()
			if pipes := kept[root]; pipes != nil {
				s.pipes = pipes.flip(flipped)
			}
		}
	}
}

func (p *Pipes) flip(flip bool) *Pipes {
	if flip {
		return p.Reversed()
	}
	return p
}
