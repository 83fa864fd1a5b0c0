package soak

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// flaky stands for a server that restarts: it relays to one, and drops all of
// its connections when told to.
type flaky struct {
	listener net.Listener
	upstream string
	wg       sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

func newFlaky(t *testing.T, upstream string) *flaky {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &flaky{listener: ln, upstream: upstream, conns: map[net.Conn]struct{}{}}
	f.wg.Go(f.accept)
	return f
}

func (f *flaky) addr() string { return f.listener.Addr().String() }

func (f *flaky) accept() {
	for {
		c, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.wg.Go(func() { f.serve(c) })
	}
}

func (f *flaky) serve(c net.Conn) {
	s, err := net.Dial("tcp", f.upstream)
	if err != nil {
		c.Close()
		return
	}
	f.mu.Lock()
	f.conns[c], f.conns[s] = struct{}{}, struct{}{}
	f.mu.Unlock()
	var both sync.WaitGroup
	pipe := func(dst, src net.Conn) {
		// Wrapped, so that no pipes for splice(2) stay in the runtime's pool.
		_, _ = io.Copy(struct{ io.Writer }{dst}, struct{ io.Reader }{src})
		_ = dst.(*net.TCPConn).CloseWrite()
	}
	both.Go(func() { pipe(s, c) })
	both.Go(func() { pipe(c, s) })
	both.Wait()
	f.mu.Lock()
	delete(f.conns, c)
	delete(f.conns, s)
	f.mu.Unlock()
	c.Close()
	s.Close()
}

// drop ends all connections: some by a reset, in the middle of whatever they
// were at.
func (f *flaky) drop(rnd *rand.Rand) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		if rnd.IntN(2) == 0 {
			_ = c.(*net.TCPConn).SetLinger(0)
		}
		c.Close()
	}
}

func (f *flaky) close() {
	f.listener.Close()
	f.drop(rand.New(rand.NewPCG(1, 1)))
	f.wg.Wait()
}
