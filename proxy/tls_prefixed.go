package proxy

import (
	"crypto/tls"
	"errors"
	"net"
)

// prefixed is a connection of which some bytes were read already.
type prefixed struct {
	net.Conn
	head        []byte
	handshaking bool
	last        [alertRecord]byte // that were read while handshaking
}

func (p *prefixed) Read(b []byte) (n int, err error) {
	if len(p.head) > 0 {
		n = copy(b, p.head)
		p.head = p.head[n:]
	} else {
		n, err = p.Conn.Read(b)
	}
	if p.handshaking {
		tail := b[max(0, n-alertRecord):n]
		copy(p.last[:], p.last[len(tail):])
		copy(p.last[alertRecord-len(tail):], tail)
	}
	return n, err
}

// alertRecord is the length of an alert in plain text: type 21, the version,
// a length of 2, the level 2 (fatal), and what it is (RFC 8446, section 6).
const alertRecord = 7

// alert is why the client ended a handshake that failed for us by err. OpenSSL,
// and so libpq, refuses a certificate in plain text where TLS 1.3 has the
// server expect encrypted records: to crypto/tls that is a bad record MAC.
func (p *prefixed) alert(err error) error {
	r := p.last
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "local error" {
		return err
	}
	if r[0] != 21 || r[1] != 3 || r[3] != 0 || r[4] != 2 || r[5] != 2 {
		return err
	}
	return &net.OpError{Op: "remote error", Err: tls.AlertError(r[6])}
}

// SetLinger is what a reset needs (socket.reset).
func (p *prefixed) SetLinger(seconds int) error {
	if c, ok := p.Conn.(interface{ SetLinger(int) error }); ok {
		return c.SetLinger(seconds)
	}
	return errors.ErrUnsupported
}
