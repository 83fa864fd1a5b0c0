package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"
)

// TLSConfig says where encryption begins and ends on a link.
//
//	client leg     pass       encrypted bytes pass as they are, unread (default)
//	               decline    plain: PostgreSQL's requests for encryption are answered N
//	               terminate  the client's TLS ends here, with Cert and Key or Pair
//	upstream leg   off          plain, or whatever passes (default)
//	               prefer       PostgreSQL: TLS if the server has it
//	               require      TLS, with any certificate
//	               verify-ca    TLS; the certificate's chain is checked
//	               verify-full  TLS; its chain and name are checked
//
// The words for the upstream leg mean what libpq's sslmode means by them, but
// that require stays require where a CA is at hand. libpq's allow is left out:
// it tries without encryption and starts again once the server has said no,
// which only the one who holds the password can do.
type TLSConfig struct {
	Client string
	// Cert and Key are PEM files for terminate, and Pair is the same in memory,
	// instead of them.
	Cert, Key string
	Pair      *tls.Certificate
	// ClientCA is a PEM file. With it a client must show a certificate that one
	// of these authorities signed; plain-text clients are refused.
	ClientCA string

	Server string
	// CA is a PEM file for verify-ca and verify-full; empty: the system's.
	CA string
	// ServerName is what the certificate must name, and what the server is told
	// (SNI); empty: the upstream's host.
	ServerName string
	// UpstreamCert and UpstreamKey are PEM files: what we show to a server that
	// asks for a certificate.
	UpstreamCert, UpstreamKey string
	// Direct begins TLS without PostgreSQL's SSLRequest, as servers from 17 on
	// allow it (libpq's sslnegotiation=direct).
	Direct bool
}

// tlsLink is a checked TLSConfig.
type tlsLink struct {
	decline        bool
	client         *tls.Config // nil: not terminated
	upstream       *tls.Config // nil: plain
	prefer, direct bool
}

// alpn is the protocol name that PostgreSQL's direct TLS asks for. Source:
// src/include/libpq/pqcomm.h, PG_ALPN_PROTOCOL.
const alpn = "postgresql"

const (
	// handshakeTime bounds a TLS handshake with either side.
	handshakeTime = 30 * time.Second
	// oldestTLS: 1.0 and 1.1 are deprecated (RFC 8996), and PostgreSQL's own
	// ssl_min_protocol_version and MongoDB's default leave them out as well.
	oldestTLS = tls.VersionTLS12
)

func newTLSLink(c TLSConfig, upstream address) (t tlsLink, err error) {
	switch c.Client {
	case "", "pass":
	case "decline":
		t.decline = true
	case "terminate":
		if t.client, err = clientTLS(c); err != nil {
			return t, err
		}
	default:
		return t, fmt.Errorf("tls %q: use pass, decline or terminate", c.Client)
	}
	if c.Client != "terminate" && (c.Cert != "" || c.Key != "" || c.Pair != nil) {
		return t, errors.New("a certificate and key are for tls terminate: leave them out, or choose that")
	}
	if c.Client != "terminate" && c.ClientCA != "" {
		return t, errors.New("a certificate authority for clients is for tls terminate: leave it out, or choose that")
	}
	if t.upstream, err = upstreamTLS(c, upstream); err != nil {
		return t, err
	}
	t.prefer, t.direct = c.Server == "prefer", c.Direct
	if t.upstream != nil && !t.decline && t.client == nil {
		return t, errors.New("upstream tls with tls pass would encrypt twice: add --tls decline or --tls-cert/--tls-key")
	}
	return t, nil
}

func clientTLS(c TLSConfig) (*tls.Config, error) {
	// Clients that ask for no protocol by ALPN are served as well.
	t := &tls.Config{MinVersion: oldestTLS, NextProtos: []string{alpn}}
	if c.Pair != nil {
		t.Certificates = []tls.Certificate{*c.Pair}
	} else {
		pair, err := keyPair(c.Cert, c.Key, "tls terminate", "--tls-cert and --tls-key")
		if err != nil {
			return nil, err
		}
		t.Certificates = []tls.Certificate{pair}
	}
	if c.ClientCA == "" {
		return t, nil
	}
	t.ClientAuth = tls.RequireAndVerifyClientCert
	var err error
	t.ClientCAs, err = authorities(c.ClientCA)
	return t, err
}

func upstreamTLS(c TLSConfig, upstream address) (*tls.Config, error) {
	name := c.ServerName
	if name == "" && upstream.network != "unix" {
		name = upstream.host
	}
	t := &tls.Config{MinVersion: oldestTLS, ServerName: name}
	switch c.Server {
	case "", "off":
		return nil, nil
	case "prefer", "require":
		t.InsecureSkipVerify = true
	case "verify-ca":
		t.InsecureSkipVerify = true // of the name; the chain is checked below
		t.VerifyConnection = func(s tls.ConnectionState) error { return verifyChain(s, t.RootCAs) }
	case "verify-full":
		if name == "" {
			return nil, errors.New("verify-full needs a name to look for: give --upstream-server-name")
		}
	default:
		return nil, fmt.Errorf("upstream tls %q: use off, prefer, require, verify-ca or verify-full", c.Server)
	}
	if c.Direct && c.Server == "prefer" {
		return nil, errors.New("direct tls can't fall back to plain text: use require, verify-ca or verify-full")
	}
	var err error
	if c.CA != "" {
		if t.RootCAs, err = authorities(c.CA); err != nil {
			return nil, err
		}
	}
	if c.UpstreamCert == "" && c.UpstreamKey == "" {
		return t, nil
	}
	pair, err := keyPair(c.UpstreamCert, c.UpstreamKey, "a client certificate", "--upstream-cert and --upstream-key")
	if err != nil {
		return nil, err
	}
	// As libpq does, it is shown whatever authorities the server names: one that
	// doesn't like it shall say so.
	t.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	return t, nil
}

// verifyChain checks a server's certificate but for its name.
func verifyChain(s tls.ConnectionState, roots *x509.CertPool) error {
	between := x509.NewCertPool()
	for _, c := range s.PeerCertificates[1:] {
		between.AddCert(c)
	}
	_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between})
	if err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: s.PeerCertificates, Err: err}
	}
	return nil
}

func keyPair(cert, key, what, flags string) (tls.Certificate, error) {
	if cert == "" || key == "" {
		return tls.Certificate{}, fmt.Errorf("%s needs a certificate and its key: give both (%s)", what, flags)
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return pair, fmt.Errorf("tls certificate %s with key %s: %w", cert, key, err)
	}
	return pair, nil
}

func authorities(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("certificate authority %s: no PEM certificate in it", file)
	}
	return pool, nil
}
