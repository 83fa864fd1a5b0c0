package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"reflect"
	"syscall"
)

// tlsError is what went wrong on one leg, the client's or the upstream's,
// before any byte passed.
type tlsError struct {
	leg string
	err error
}

func (e *tlsError) Error() string { return e.err.Error() }
func (e *tlsError) Unwrap() error { return e.err }

// sayTLS logs what went wrong on a leg, once per leg at warning level. A client
// that came and went without a word is a health check, or a port scan.
func (c *conn) sayTLS(err error, client net.Addr) {
	if errors.Is(err, errSilent) {
		c.link.proxy.log.Debug("a client came and sent nothing", "link", c.link.Name(), "client", client)
		return
	}
	var t *tlsError
	if errors.As(err, &t) && t.leg == "upstream" {
		c.link.say(noticeTLSUpstream, "no TLS with the upstream", "upstream", c.route.config.Upstream, "error", err)
		return
	}
	c.link.say(noticeTLSClient, "a client was refused", "client", client, "error", err)
}

// explain adds to a failed handshake what it means and what to do.
func explain(err error, hint string) error {
	if hint == "" {
		return fmt.Errorf("tls handshake: %w", err)
	}
	return fmt.Errorf("tls handshake: %w: %s", err, hint)
}

// explainClient explains a handshake with a client.
func explainClient(err error) error {
	var plain tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	hint := ""
	switch alert, alerted := alertOf(err); {
	case alerted:
		hint = clientAlert(alert)
	case errors.As(err, &plain):
		hint = "the client went on in plain text"
	case errors.As(err, &certificate):
		hint = "the client's certificate is refused: " + wrongCertificate(err, "sign it with an authority of --tls-client-ca")
	case hungUp(err):
		hint = "the client hung up: it may not trust the certificate, or its name"
	case timedOut(err):
		hint = fmt.Sprintf("the client did not finish it within %v", handshakeTime)
	}
	return explain(err, hint)
}

// explainUpstream explains a handshake with a server.
func explainUpstream(err error, t *tlsLink) error {
	var plain tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	hint := ""
	switch alert, alerted := alertOf(err); {
	case alerted:
		hint = serverAlert(alert)
	case errors.As(err, &plain):
		hint = "the server does not speak TLS at this port: turn its TLS on, or use --upstream-tls off"
	case errors.As(err, &certificate):
		hint = "the server's certificate is refused: " + wrongCertificate(err, "give its authority as --upstream-ca, or use --upstream-tls require")
	case hungUp(err) && t.direct:
		hint = "the server hung up: one before PostgreSQL 17 knows no direct TLS; leave out --upstream-tls-direct"
	case hungUp(err):
		hint = "the server hung up: is its TLS on?"
	case timedOut(err):
		hint = fmt.Sprintf("the server did not finish it within %v", handshakeTime)
	}
	return explain(err, hint)
}

// wrongCertificate says what to do about a certificate that we refuse.
func wrongCertificate(err error, unknown string) string {
	var name x509.HostnameError
	var authority x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &name):
		return "say the name that is in it with --upstream-server-name, or use --upstream-tls verify-ca"
	case errors.As(err, &authority):
		return unknown
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "it is not valid now: renew it, or set the clock right"
	}
	return "make another one"
}

// Alerts by which a peer ends a handshake. Source: RFC 8446, section 6.
const (
	alertHandshakeFailure    = 40
	alertBadCertificate      = 42
	alertCertificateRevoked  = 44
	alertCertificateExpired  = 45
	alertCertificateUnknown  = 46
	alertUnknownCA           = 48
	alertProtocolVersion     = 70
	alertCertificateRequired = 116
	alertNoApplication       = 120
)

// alertOf is the alert by which the peer ended TLS. crypto/tls exports no type
// for it outside QUIC, but its value is the alert's number.
func alertOf(err error) (code uint8, ok bool) {
	var op *net.OpError
	if err == nil || !errors.As(err, &op) || op.Op != "remote error" {
		return 0, false
	}
	v := reflect.ValueOf(op.Err)
	if v.Kind() != reflect.Uint8 {
		return 0, false
	}
	return uint8(v.Uint()), true
}

const noVersion = "no version in common: TLS 1.2 and 1.3 are spoken here"

// clientAlert is what it means that a client ended the handshake.
func clientAlert(alert uint8) string {
	switch alert {
	case alertUnknownCA:
		return "the client does not trust our certificate: give it its authority (sslrootcert, tlsCAFile)"
	case alertCertificateExpired:
		return "to the client our certificate has expired: renew --tls-cert"
	case alertBadCertificate, alertCertificateUnknown:
		return "the client refuses our certificate: give it its authority (sslrootcert, tlsCAFile), connect to a name that is in it, and see that it has not expired"
	case alertProtocolVersion:
		return noVersion
	case alertHandshakeFailure:
		return "no cipher in common"
	}
	return "the client ended it"
}

// serverAlert is what it means that a server ended the handshake, or the
// connection after it.
func serverAlert(alert uint8) string {
	switch alert {
	case alertCertificateRequired:
		return "the server wants a client's certificate: give --upstream-cert and --upstream-key"
	case alertBadCertificate, alertCertificateUnknown, alertUnknownCA, alertCertificateRevoked, alertCertificateExpired:
		return "the server refuses the certificate that we show, or wants one: see --upstream-cert"
	case alertHandshakeFailure:
		return "no cipher in common, or the server wants a client's certificate: give --upstream-cert and --upstream-key"
	case alertProtocolVersion:
		return noVersion
	case alertNoApplication:
		return "the server speaks another protocol at this port"
	}
	return "the server ended it"
}

func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func timedOut(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}
