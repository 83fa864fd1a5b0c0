package mongod

import (
	"errors"
	"fmt"
	"net"
)

// Ports are addresses of 127.0.0.1 that a set's members will listen on, and that
// nobody else gets meanwhile. A connection to one is refused while its member
// doesn't run.
type Ports struct {
	addrs []string
	holds []hold
}

// hold keeps a port from being taken.
type hold interface{ Close() error }

// ReservePorts finds n free ports. A set that gets them closes them.
func ReservePorts(n int) (*Ports, error) {
	p := &Ports{}
	for range n {
		addr, h, err := reserve()
		if err != nil {
			p.Close()
			return nil, fmt.Errorf("reserve a port: %w", err)
		}
		p.addrs = append(p.addrs, addr)
		p.holds = append(p.holds, h)
	}
	return p, nil
}

// Len is how many there are.
func (p *Ports) Len() int { return len(p.addrs) }

// Addr is the i-th, as 127.0.0.1:port.
func (p *Ports) Addr(i int) string { return p.addrs[i] }

// Close gives the ports back. It may be called more than once.
func (p *Ports) Close() {
	for _, h := range p.holds {
		_ = h.Close()
	}
	p.holds = nil
}

var errPortsClosed = errors.New("the set is closed")

func (p *Ports) listen(i int) (net.Listener, error) {
	if p.holds == nil {
		return nil, errPortsClosed
	}
	return net.Listen("tcp", p.addrs[i])
}
