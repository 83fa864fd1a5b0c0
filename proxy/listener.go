package proxy

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// listener is an address that is listened on, and the link that its connections
// go to. A reload may give it another link, so that no client is refused
// meanwhile.
type listener struct {
	net.Listener
	proxy   *Proxy
	address string // LinkConfig.Listen; guarded by Proxy.reloading
	link    atomic.Pointer[Link]
	// closed: its link was stopped. Set with Proxy.mu held, so that no connection
	// begins that was accepted before and would not be cut.
	closed atomic.Bool
}

func (p *Proxy) listen(address string) (*listener, error) {
	a, err := parseAddress(address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	ln, err := a.listen()
	if err != nil {
		return nil, err
	}
	return &listener{Listener: ln, proxy: p, address: address}, nil
}

// accept serves the listener until it is closed.
func (ln *listener) accept() {
	p := ln.proxy
	defer p.running.Done()
	var pause time.Duration
	var lastSaid time.Time
	for {
		nc, err := ln.Accept()
		if err == nil {
			pause = 0
			p.running.Add(1)
			go ln.link.Load().serve(nc, ln)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		// Out of descriptors, or the peer is gone already: neither ends a
		// listener. Descriptors come back as connections end.
		ln.link.Load().rare.acceptFails.Add(1)
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		if time.Since(lastSaid) > 10*time.Second {
			lastSaid = time.Now()
			hint := ""
			if outOfFiles(err) {
				hint = "raise the limit of open files (ulimit -n): each connection takes two"
			}
			p.log.Warn("cannot accept", "link", ln.link.Load().Name(), "error", err, "hint", hint)
		}
		select {
		case <-time.After(pause):
		case <-p.stopping:
		}
	}
}
