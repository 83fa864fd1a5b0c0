package mongod

import (
	"context"
	"sync"
	"time"
)

// notice tells everybody who waits that something has changed. Its user's mutex
// guards it. The zero value is usable.
type notice struct{ ch chan struct{} }

// next is closed at the next change.
func (n *notice) next() <-chan struct{} {
	if n.ch == nil {
		n.ch = make(chan struct{})
	}
	return n.ch
}

func (n *notice) raise() {
	if n.ch != nil {
		close(n.ch)
		n.ch = nil
	}
}

// sleep waits until the time is over, something changes (nil: nothing can), or
// the context ends, which is its only error.
func sleep(ctx context.Context, d time.Duration, changed <-chan struct{}) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-changed:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// gate can be shut, and lets nobody pass until it's opened again: a member that
// is paused, as by SIGSTOP, keeps its sockets and does nothing.
type gate struct {
	mu   sync.Mutex
	shut chan struct{} // closed when it opens; nil: it's open
}

func (g *gate) set(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case open && g.shut != nil:
		close(g.shut)
		g.shut = nil
	case !open && g.shut == nil:
		g.shut = make(chan struct{})
	}
}

// pass waits while the gate is shut. Its only error is the context's end.
func (g *gate) pass(ctx context.Context) error {
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if shut == nil {
		return ctx.Err()
	}
	select {
	case <-shut:
	case <-ctx.Done():
	}
	return ctx.Err()
}
