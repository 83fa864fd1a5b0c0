package proxy

import (
	"sync"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// Pipes are the wires between two places, one for each direction, indexed by
// wire.Direction: what Delay.Bandwidth is shared in. The zero value is ready to
// use, by any number of links; it must not be copied.
type Pipes [2]pipe

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

// bookers are the pipes that the link's connections share.
func (l *Link) bookers() (b [2]inject.Booker) {
	pipes := l.config.Pipes
	if pipes == nil {
		pipes = &l.pipes
	}
	for d := range pipes {
		b[d] = &pipes[d]
	}
	return b
}
