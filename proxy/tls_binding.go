package proxy

import (
	"bytes"
	"crypto/tls"

	"github.com/wirewait/wirewait/wire"
)

// SCRAM can be bound to the TLS channel that it runs in (SCRAM-SHA-256-PLUS):
// the client signs a hash of the certificate that it sees, and the server
// compares it with its own (tls-server-end-point, RFC 5929 section 4).
//
//	client leg   upstream leg            bound SCRAM
//	TLS          plain                   the server offers none: works without
//	TLS          TLS, same certificate   works
//	TLS          TLS, another one        the client fails, unless told not to bind
//	plain        TLS                     taken out of the server's offer: see offer
const boundElsewhere = "the server offers SCRAM that is bound to its certificate, and clients see another one: " +
	"libpq fails with \"SCRAM channel binding check failed\" unless the client sets channel_binding=disable. " +
	"Do that, leave the upstream plain (--upstream-tls off), " +
	"or give the server's own certificate and key as --tls-cert and --tls-key"

// unbound is what to do when the server offers bound SCRAM on a connection
// where it can't work; nil where it can, or where the offer is mended.
func (c *conn) unbound(e *established) func() {
	server, ok := e.server.(*upstreamConn)
	if !ok {
		return nil
	}
	if _, ok := e.client.(*tls.Conn); !ok {
		if e.protocol == wire.Postgres {
			server.offer = &offer{}
		}
		return nil
	}
	ours := c.route.tls.client.Certificates[0].Certificate[0]
	if bytes.Equal(ours, server.ConnectionState().PeerCertificates[0].Raw) {
		return nil
	}
	return func() { c.link.say(noticeBinding, boundElsewhere, "upstream", c.route.config.Upstream) }
}
