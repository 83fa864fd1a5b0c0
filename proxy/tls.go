package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/wirewait/wirewait/wire"
)

// TLSConfig says where encryption begins and ends on a link.
//
//	client leg     pass       encrypted bytes pass as they are, unread (default)
//	               decline    PostgreSQL's requests for encryption are answered N
//	               terminate  the client's TLS ends here, with Cert and Key
//	upstream leg   off        plain, or whatever passes (default)
//	               require    TLS, with any certificate
//	               verify-full  TLS; the certificate's chain and name are checked
type TLSConfig struct {
	Client string
	// Cert and Key are PEM files for terminate.
	Cert, Key string
	Server    string
	// CA is a PEM file for verify-full; empty: the system's.
	CA string
	// ServerName is what the certificate must name; empty: the upstream's host.
	ServerName string
}

// tlsLink is a checked TLSConfig.
type tlsLink struct {
	decline  bool
	client   *tls.Config // nil: not terminated
	upstream *tls.Config // nil: plain
}

// alpn is the protocol name that PostgreSQL's direct TLS asks for. Source:
// src/include/libpq/pqcomm.h, PG_ALPN_PROTOCOL.
const alpn = "postgresql"

// handshakeTime bounds a TLS handshake with either side.
const handshakeTime = 30 * time.Second

func newTLSLink(c TLSConfig, upstream address) (t tlsLink, err error) {
	switch c.Client {
	case "", "pass":
	case "decline":
		t.decline = true
	case "terminate":
		if c.Cert == "" || c.Key == "" {
			return t, errors.New("tls terminate needs a certificate and its key: give both (--tls-cert and --tls-key)")
		}
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return t, fmt.Errorf("tls certificate %s with key %s: %w", c.Cert, c.Key, err)
		}
		// Clients that ask for no protocol by ALPN are served as well.
		t.client = &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{alpn}}
	default:
		return t, fmt.Errorf("tls %q: use pass, decline or terminate", c.Client)
	}
	if c.Client != "terminate" && (c.Cert != "" || c.Key != "") {
		return t, errors.New("a certificate and key are for tls terminate: leave them out, or choose that")
	}
	if t.upstream, err = upstreamTLS(c, upstream); err != nil {
		return t, err
	}
	if t.upstream != nil && !t.decline && t.client == nil {
		return t, errors.New("upstream tls with tls pass would encrypt twice: add --tls decline or --tls-cert/--tls-key")
	}
	return t, nil
}

func upstreamTLS(c TLSConfig, upstream address) (*tls.Config, error) {
	name := c.ServerName
	if name == "" {
		name = upstream.host
	}
	switch c.Server {
	case "", "off":
		return nil, nil
	case "require":
		return &tls.Config{ServerName: name, InsecureSkipVerify: true}, nil
	case "verify-full":
		t := &tls.Config{ServerName: name}
		if c.CA != "" {
			pem, err := os.ReadFile(c.CA)
			if err != nil {
				return nil, fmt.Errorf("certificate authority: %w", err)
			}
			t.RootCAs = x509.NewCertPool()
			if !t.RootCAs.AppendCertsFromPEM(pem) {
				return nil, fmt.Errorf("certificate authority %s: no PEM certificate in it", c.CA)
			}
		}
		return t, nil
	}
	return nil, fmt.Errorf("upstream tls %q: use off, require or verify-full", c.Server)
}

// PostgreSQL's requests that come before the start-up packet: an Int32 length
// of 8 and a code. Source: src/include/libpq/pqcomm.h, NEGOTIATE_SSL_CODE and
// NEGOTIATE_GSS_CODE.
const (
	codeSSL = 80877103
	codeGSS = 80877104
)

// establish makes the connection to the upstream and settles, on both legs,
// what is encrypted.
func (c *conn) establish(nc net.Conn, accepted wire.Stamp) (*established, error) {
	l := c.link
	e := &established{client: nc, protocol: l.config.Protocol, notBefore: c.connectCost(accepted, 1)}
	upstream, err := c.dial()
	if err != nil {
		return nil, err
	}
	e.server = upstream
	if (l.tls.decline || l.tls.client != nil) && e.protocol != wire.TCP || l.tls.upstream != nil && e.protocol == "" {
		if err = c.greet(e, accepted); err != nil {
			upstream.Close()
			return nil, fmt.Errorf("with the client: %w", err)
		}
	}
	if l.tls.upstream != nil {
		if err = c.encryptUpstream(e); err != nil {
			e.server.Close()
			return nil, fmt.Errorf("with the upstream: %w", err)
		}
	}
	return e, nil
}

// greet reads the client's first bytes, answers what asks for encryption, and
// leaves in e.prefix what the server is to see. Answers take the time that they
// would over the link.
func (c *conn) greet(e *established, accepted wire.Stamp) error {
	nc := e.client
	defer context.AfterFunc(c.ctx, func() { nc.Close() })()
	for {
		var err error
		if e.prefix, err = readHead(nc); len(e.prefix) == 0 {
			return fmt.Errorf("nothing was sent: %w", err)
		}
		code := encryptionRequest(e.prefix)
		switch {
		case code == codeSSL && c.link.tls.client != nil:
			e.protocol = wire.Postgres
			if err := c.answer(e, 'S'); err != nil {
				return err
			}
			return c.handshake(e, c.link.proxy.clock.now())
		case code != 0:
			e.protocol = wire.Postgres
			if err := c.answer(e, 'N'); err != nil {
				return err
			}
		case c.link.tls.client != nil && e.prefix[0] == 0x16:
			// Direct TLS: connecting is still to be paid for.
			connected := accepted.Add(c.link.settings.Load().RTT())
			return c.handshake(e, max(connected, c.link.proxy.clock.now()))
		default:
			return c.detectEarly(e)
		}
	}
}

// detectEarly reads as much as detection needs where the upstream leg depends
// on the protocol.
func (c *conn) detectEarly(e *established) error {
	if e.protocol != "" || c.link.tls.upstream == nil {
		return nil
	}
	for {
		if e.protocol = detect(e.prefix); e.protocol != "" {
			return nil
		}
		var b [1]byte
		if _, err := io.ReadFull(e.client, b[:]); err != nil {
			return fmt.Errorf("the protocol cannot be told from %d bytes: %w", len(e.prefix), err)
		}
		e.prefix = append(e.prefix, b[0])
	}
}

// encryptionRequest is the code of an SSLRequest or GSSENCRequest, or 0.
func encryptionRequest(head []byte) uint32 {
	if len(head) != 8 || binary.BigEndian.Uint32(head) != 8 {
		return 0
	}
	if code := binary.BigEndian.Uint32(head[4:]); code == codeSSL || code == codeGSS {
		return code
	}
	return 0
}

// readHead reads the first bytes, one by one as long as they could become a
// request for encryption, so that none of what follows is taken.
func readHead(r io.Reader) ([]byte, error) {
	request := []byte{0, 0, 0, 8, 0x04, 0xd2, 0x16}
	head := make([]byte, 0, headSize)
	for len(head) < 8 {
		n, err := r.Read(head[len(head) : len(head)+1])
		head = head[:len(head)+n]
		if err != nil {
			return head, err
		}
		if i := len(head) - 1; i < len(request) && head[i] != request[i] {
			break
		}
	}
	return head, nil
}

// answer answers a request for encryption, no sooner than the server could have.
func (c *conn) answer(e *established, reply byte) error {
	clock, set := c.link.proxy.clock, c.link.settings.Load()
	there := clock.now().Add(set.Delay[wire.ToServer].Draw(c.sources[wire.ToServer]))
	there = max(there, e.notBefore[wire.ToServer])
	back := there.Add(set.Delay[wire.ToClient].Draw(c.sources[wire.ToClient]))
	if back > clock.now() {
		c.link.proxy.alarm.wait(back, nil, c.over)
	}
	e.prefix, e.notBefore = nil, [2]wire.Stamp{} // the cost of connecting is paid
	_, err := e.client.Write([]byte{reply})
	return err
}

// handshake ends the client's TLS here. A handshake of TLS 1.3 costs a round
// trip, which the first bytes after it are made to pay.
func (c *conn) handshake(e *established, from wire.Stamp) error {
	tc := tls.Server(&prefixed{Conn: e.client, head: e.prefix}, c.link.tls.client)
	if err := c.shakeHands(tc); err != nil {
		return err
	}
	e.client, e.prefix, e.notBefore = tc, nil, c.connectCost(from, 1)
	return c.detectEarly(e)
}

func (c *conn) shakeHands(tc *tls.Conn) error {
	ctx, cancel := context.WithTimeout(c.ctx, handshakeTime)
	defer cancel()
	if err := tc.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("tls handshake: %w", err)
	}
	return nil
}

// encryptUpstream begins TLS with the server, in the way of its protocol.
func (c *conn) encryptUpstream(e *established) error {
	nc := e.server
	defer context.AfterFunc(c.ctx, func() { nc.Close() })()
	if e.protocol == wire.Postgres {
		request := binary.BigEndian.AppendUint32([]byte{0, 0, 0, 8}, codeSSL)
		if _, err := e.server.Write(request); err != nil {
			return err
		}
		var answer [1]byte
		if _, err := io.ReadFull(e.server, answer[:]); err != nil {
			return fmt.Errorf("no answer to SSLRequest: %w", err)
		}
		if answer[0] != 'S' {
			return errors.New("the server does not offer TLS: turn its ssl on, or use --upstream-tls off")
		}
	}
	config := c.link.tls.upstream
	if e.protocol == wire.Postgres {
		config = config.Clone()
		config.NextProtos = []string{alpn}
	}
	tc := tls.Client(e.server, config)
	if err := c.shakeHands(tc); err != nil {
		return err
	}
	e.server = tc
	return nil
}

// prefixed is a connection of which some bytes were read already.
type prefixed struct {
	net.Conn
	head []byte
}

func (p *prefixed) Read(b []byte) (int, error) {
	if len(p.head) > 0 {
		n := copy(b, p.head)
		p.head = p.head[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}

func (p *prefixed) CloseWrite() error {
	if c, ok := p.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return p.Conn.Close()
}
