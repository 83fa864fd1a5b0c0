package proxy

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/wirewait/wirewait/wire"
)

// PostgreSQL's requests that come instead of a start-up packet: an Int32 length
// and a code. Source: src/include/libpq/pqcomm.h, NEGOTIATE_SSL_CODE,
// NEGOTIATE_GSS_CODE and CANCEL_REQUEST_CODE.
const (
	codeCancel = 80877102
	codeSSL    = 80877103
	codeGSS    = 80877104
)

var (
	errSilent      = errors.New("nothing was sent")
	errTLSClient   = errors.New("it begins with TLS, which this link declines: turn TLS off in the client, or give --tls-cert/--tls-key or --tls auto")
	errPlainClient = errors.New("it uses no TLS, and --tls-client-ca wants a certificate: turn TLS on in the client, with a certificate")
)

// establish makes the connection to the upstream and settles, on both legs,
// what is encrypted.
func (c *conn) establish(nc net.Conn, accepted wire.Stamp) (*established, error) {
	if err := c.introduce(nc); err != nil {
		return nil, &tlsError{"client", err}
	}
	c.awaitMembers()
	r := c.route
	e := &established{client: nc, protocol: r.config.Protocol, notBefore: c.connectCost(accepted, 1)}
	var err error
	if e.server, err = c.dial(); err != nil {
		return nil, err
	}
	if err = c.settleClient(e, accepted); err != nil {
		e.server.Close()
		return nil, &tlsError{"client", err}
	}
	if r.tls.upstream == nil {
		return e, nil
	}
	if err = c.encryptUpstream(e); err != nil {
		e.server.Close()
		return nil, err
	}
	return e, nil
}

// settleClient settles what is encrypted between the client and us. Nothing is
// read from the client where nothing depends on what it sends.
func (c *conn) settleClient(e *established, accepted wire.Stamp) error {
	t := &c.route.tls
	switch {
	case e.protocol == wire.TCP && t.client != nil:
		return c.handshake(e, c.connected(accepted))
	case e.protocol == wire.TCP:
		return nil
	case t.decline || t.client != nil:
		return c.greet(e, accepted)
	}
	return nil
}

// greet reads the client's first bytes, answers what asks for encryption, and
// leaves in e.prefix what the server is to see. Answers take the time that they
// would over the link.
func (c *conn) greet(e *established, accepted wire.Stamp) error {
	t, nc := &c.route.tls, e.client
	defer context.AfterFunc(c.ctx, func() { nc.Close() })()
	for {
		var err error
		if e.prefix, err = readHead(e.client); len(e.prefix) == 0 {
			return fmt.Errorf("%w: %w", errSilent, err)
		}
		encrypted, err := beginsTLS(e)
		if err != nil {
			return err
		}
		code := encryptionRequest(e.prefix)
		switch {
		case code == codeSSL && t.client != nil:
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
		case encrypted && t.client != nil:
			return c.handshake(e, c.connected(accepted))
		case encrypted && t.upstream != nil:
			return errTLSClient
		case t.client != nil && t.client.ClientAuth != tls.NoClientCert:
			return c.plainCancel(e)
		default:
			return c.detectEarly(e)
		}
	}
}

// beginsTLS reports whether the client's first bytes are a TLS record's: the
// type handshake, major version 3, minor version (RFC 8446, section 5.1).
// A MongoDB message of 278 bytes has the first of them, one of 790 the first
// two; its length's third byte is 0, where TLS 1.0 and later say 1 or more.
func beginsTLS(e *established) (bool, error) {
	if e.prefix[0] != 0x16 {
		return false, nil
	}
	err := readUpTo(e, 3)
	return err == nil && e.prefix[1] == 3 && e.prefix[2] >= 1 && e.prefix[2] <= 4, err
}

// connected is when a client that began to connect when it was accepted is
// connected: TLS that begins at once has connecting still to be paid for.
func (c *conn) connected(accepted wire.Stamp) wire.Stamp {
	return max(accepted.Add(c.settings().RTT()), c.link.proxy.clock.now())
}

// plainCancel lets PostgreSQL's cancel requests pass where TLS is a duty: libpq
// sends them in plain text, before 17 even from encrypted sessions, and a
// server takes them from anybody (src/backend/postmaster/postmaster.c,
// ProcessStartupPacket).
func (c *conn) plainCancel(e *established) error {
	if err := readUpTo(e, 8); err != nil {
		return err
	}
	if binary.BigEndian.Uint32(e.prefix[4:]) != codeCancel {
		return errPlainClient
	}
	e.protocol = wire.Postgres
	return nil
}

// detectEarly reads as much as detection needs where the upstream leg depends
// on the protocol.
func (c *conn) detectEarly(e *established) error {
	if c.route.tls.upstream == nil {
		return nil
	}
	for e.protocol == "" {
		if e.protocol = detect(e.prefix); e.protocol != "" {
			break
		}
		if err := readUpTo(e, len(e.prefix)+1); err != nil {
			return fmt.Errorf("the protocol cannot be told from %d bytes: %w", len(e.prefix), err)
		}
	}
	return nil
}

// readUpTo reads until the prefix has n bytes, and none more.
func readUpTo(e *established, n int) error {
	have := len(e.prefix)
	if have >= n {
		return nil
	}
	e.prefix = append(e.prefix, make([]byte, n-have)...)
	got, err := io.ReadFull(e.client, e.prefix[have:])
	e.prefix = e.prefix[:have+got]
	return err
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
	clock, set := c.link.proxy.clock, c.settings()
	there := clock.now().Add(set.Delay[wire.ToServer].Draw(c.draws[wire.ToServer]))
	there = max(there, e.notBefore[wire.ToServer])
	back := there.Add(set.Delay[wire.ToClient].Draw(c.draws[wire.ToClient]))
	if back > clock.now() {
		c.link.proxy.alarm.wait(back, nil, c.ctx.Done())
	}
	e.prefix, e.notBefore = nil, [2]wire.Stamp{} // the cost of connecting is paid
	_, err := e.client.Write([]byte{reply})
	return err
}

// handshake ends the client's TLS here. A handshake of TLS 1.3 costs a round
// trip, which the first bytes after it are made to pay.
func (c *conn) handshake(e *established, from wire.Stamp) error {
	p := &prefixed{Conn: e.client, head: e.prefix, handshaking: true}
	tc := tls.Server(p, c.route.tls.client)
	if err := c.shakeHands(tc); err != nil {
		return explainClient(p.alert(err))
	}
	p.handshaking = false
	c.tellByCertificate(tc.ConnectionState())
	e.client, e.prefix, e.notBefore = tc, nil, c.connectCost(from, 1)
	if e.protocol == "" && tc.ConnectionState().NegotiatedProtocol == alpn {
		e.protocol = wire.Postgres
	}
	return c.detectEarly(e)
}

func (c *conn) shakeHands(tc *tls.Conn) error {
	ctx, cancel := context.WithTimeout(c.ctx, handshakeTime)
	defer cancel()
	return tc.HandshakeContext(ctx)
}
