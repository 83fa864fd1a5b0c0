package proxy

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/wirewait/wirewait/wire"
)

var (
	errNotOffered = errors.New("the server does not offer TLS: turn its ssl on (it has none on unix sockets), or use --upstream-tls off")
	errPrefer     = errors.New("prefer needs PostgreSQL, whose servers say whether they have TLS: use --upstream-tls require, verify-ca, verify-full or off")
	errNoALPN     = errors.New("the server did not choose the protocol postgresql (ALPN), as direct TLS wants it: leave out --upstream-tls-direct")
)

// encryptUpstream begins TLS with the server, in the way of its protocol.
func (c *conn) encryptUpstream(e *established) error {
	t := &c.route.tls
	if t.prefer && e.protocol != wire.Postgres {
		return &tlsError{"upstream", errPrefer}
	}
	err := c.startTLS(e)
	if err == nil || t.prefer && errors.Is(err, errNotOffered) {
		return nil
	}
	err = &tlsError{"upstream", err}
	if !t.prefer || c.ctx.Err() != nil {
		return err
	}
	// libpq's prefer begins again in plain text if TLS fails.
	c.sayTLS(fmt.Errorf("%w; going on in plain text", err), nil)
	server, err := c.dial()
	if err != nil {
		return err
	}
	e.server.Close()
	e.server = server
	return nil
}

// startTLS leaves e.server encrypted, or says why it is not.
func (c *conn) startTLS(e *established) error {
	t, nc := &c.route.tls, e.server
	defer context.AfterFunc(c.ctx, func() { nc.Close() })()
	config := t.upstream
	if e.protocol == wire.Postgres {
		config = config.Clone()
		config.NextProtos = []string{alpn}
		if !t.direct {
			if err := askForTLS(nc); err != nil {
				return err
			}
		}
	}
	u := &upstreamConn{Conn: tls.Client(nc, config)}
	if err := c.shakeHands(u.Conn); err != nil {
		return explainUpstream(err, t)
	}
	if t.direct && e.protocol == wire.Postgres && u.ConnectionState().NegotiatedProtocol != alpn {
		return errNoALPN
	}
	u.refused = func(err error) { c.sayTLS(&tlsError{"upstream", explainUpstream(err, t)}, nil) }
	e.server = u
	return nil
}

// askForTLS sends an SSLRequest and reads its one-byte answer, and no byte more:
// what stood in plain text behind it would be taken for the server's word
// (CVE-2021-23222).
func askForTLS(server io.ReadWriter) error {
	request := binary.BigEndian.AppendUint32([]byte{0, 0, 0, 8}, codeSSL)
	if _, err := server.Write(request); err != nil {
		return err
	}
	var answer [1]byte
	if _, err := io.ReadFull(server, answer[:]); err != nil {
		return fmt.Errorf("no answer to SSLRequest: %w", err)
	}
	switch answer[0] {
	case 'S':
		return nil
	case 'N':
		return errNotOffered
	}
	return fmt.Errorf("%q is no answer to SSLRequest: is there a PostgreSQL server at this port?", answer[0])
}

// upstreamConn is TLS with the server. In TLS 1.3 a server looks at the client's
// certificate when for the client the handshake is over, so that a refusal is
// the first thing to be read.
type upstreamConn struct {
	*tls.Conn
	refused func(error)
	offer   *offer // nil: nothing is taken out of it
}

func (u *upstreamConn) Read(b []byte) (n int, err error) {
	if u.offer != nil {
		n, err = u.offer.read(b, u.Conn.Read)
	} else {
		n, err = u.Conn.Read(b)
	}
	if _, ok := alertOf(err); ok {
		u.refused(err)
	}
	return n, err
}
