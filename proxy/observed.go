package proxy

import "github.com/wirewait/wirewait/wire"

// seen is what a connection's exchanges said of it. Guarded by conn.mu.
type seen struct {
	exchanges uint64
	protocol  wire.Protocol
	peer      *wire.Peer
}

// saw notes a finished exchange. Called with mu held, as all of the pump is.
func (s *seen) saw(x *wire.Exchange) {
	s.exchanges++
	s.protocol, s.peer = x.Protocol, x.Peer
}
