package proxy

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"
)

// ProxyProtocol says where PROXY headers are read and written: what a proxy
// sends before a connection's first byte, to say whose connection it is.
// Version 2 is spoken, the binary one.
//
//	0   12   signature: \r\n \r\n \0 \r\n QUIT \n
//	12  1    version 2, and the command: 0 LOCAL (the proxy's own), 1 PROXY
//	13  1    family: 1 IPv4, 2 IPv6, 3 unix; and transport: 1 stream, 2 datagram
//	14  2    length of what follows, big-endian
//	16       source and destination address, their ports, then what we skip
//
// Source: https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt, section
// 2.2.
type ProxyProtocol struct {
	// Accept are the peers whose connections begin with a header, and that are
	// believed; one of them that sends none is refused. What others send is not
	// looked at. A unix socket's clients count as 127.0.0.1.
	Accept []netip.Prefix
	// Send has connections to the upstream begin with one.
	Send bool
}

const (
	proxySignature = "\r\n\r\n\x00\r\nQUIT\n"
	proxyHead      = 16
	// proxyLimit bounds what follows the head. Addresses take 216 bytes at most;
	// some senders add a client certificate, of 1 to 2 KiB.
	proxyLimit = 4096
	// proxyTime bounds the wait for a header. The specification wants three
	// seconds at least, so that a lost packet is sent again.
	proxyTime = 10 * time.Second
)

var (
	errNoProxyHeader = errors.New("it sent no PROXY header (version 2), and proxy_protocol: accept wants one from its address")
	errProxyV1       = errors.New("its PROXY header is of version 1, the text: have it send version 2 (HAProxy: send-proxy-v2)")
	errProxyHeader   = errors.New("its PROXY header makes no sense")
)

// introduce says where the connection comes from.
func (c *conn) introduce(nc net.Conn) error {
	basis := basisAddress
	if c.route.config.ProxyProtocol.believes(c.from) {
		defer context.AfterFunc(c.ctx, func() { nc.Close() })()
		_ = nc.SetReadDeadline(time.Now().Add(proxyTime))
		from, to, err := readProxyHeader(nc)
		if err != nil {
			return err
		}
		_ = nc.SetReadDeadline(time.Time{})
		if from != nil {
			c.mu.Lock() // control looks at from
			c.from, c.to, basis = from, to, basisProxyHeader
			c.mu.Unlock()
		}
	}
	c.tell(c.route.sources.at(c.from), basis)
	return nil
}

// believes reports whether a peer's header is read.
func (p *ProxyProtocol) believes(peer net.Addr) bool {
	if len(p.Accept) == 0 {
		return false
	}
	ip, ok := addressOf(peer)
	if !ok {
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	for _, prefix := range p.Accept {
		if prefix.Contains(ip) {
			return true
		}
	}
	return false
}

// readProxyHeader reads a header and no byte more. The addresses are nil where
// it names none, or none of TCP.
func readProxyHeader(r io.Reader) (from, to net.Addr, err error) {
	var head [proxyHead]byte
	for n := 0; n < len(head); {
		k, err := r.Read(head[n:])
		n += k
		if err := notProxyV2(head[:min(n, len(proxySignature))]); err != nil {
			return nil, nil, err
		}
		switch {
		case err != nil && n == 0:
			return nil, nil, fmt.Errorf("%w: %w", errSilent, err)
		case err != nil && n < len(head):
			return nil, nil, fmt.Errorf("in the middle of its PROXY header: %w", err)
		}
	}
	length := binary.BigEndian.Uint16(head[14:])
	if head[12]>>4 != 2 || head[12]&15 > 1 || length > proxyLimit {
		return nil, nil, errProxyHeader
	}
	rest := make([]byte, length)
	if _, err := io.ReadFull(r, rest); err != nil {
		return nil, nil, fmt.Errorf("in the middle of its PROXY header: %w", err)
	}
	if head[12]&15 == 0 { // LOCAL: whatever follows is to be ignored
		return nil, nil, nil
	}
	return proxyAddresses(head[13], rest)
}

// notProxyV2 says why no header of version 2 begins so.
func notProxyV2(start []byte) error {
	switch {
	case bytes.HasPrefix([]byte(proxySignature), start):
		return nil
	case bytes.HasPrefix(start, []byte("PROXY ")):
		return errProxyV1
	case bytes.HasPrefix([]byte("PROXY "), start):
		return nil
	}
	return errNoProxyHeader
}

func proxyAddresses(family byte, b []byte) (from, to net.Addr, err error) {
	var size int
	switch family {
	case 0x11:
		size = 4
	case 0x21:
		size = 16
	case 0x00, 0x12, 0x22, 0x31, 0x32:
		return nil, nil, nil
	default:
		return nil, nil, errProxyHeader
	}
	if len(b) < 2*size+4 {
		return nil, nil, errProxyHeader
	}
	ports := b[2*size:]
	end := func(ip, port []byte) net.Addr {
		return &net.TCPAddr{IP: bytes.Clone(ip), Port: int(binary.BigEndian.Uint16(port))}
	}
	return end(b[:size], ports), end(b[size:2*size], ports[2:]), nil
}

// proxyHeader is what an upstream is sent. Connections that came over anything
// else than TCP are said to be our own.
func proxyHeader(from, to net.Addr) []byte {
	b := append([]byte(nil), proxySignature...)
	f, okFrom := from.(*net.TCPAddr)
	t, okTo := to.(*net.TCPAddr)
	if !okFrom || !okTo {
		return append(b, 0x20, 0, 0, 0)
	}
	family, src, dst := byte(0x11), f.IP.To4(), t.IP.To4()
	if src == nil || dst == nil {
		family, src, dst = 0x21, f.IP.To16(), t.IP.To16()
	}
	b = append(b, 0x21, family)
	b = binary.BigEndian.AppendUint16(b, uint16(2*len(src)+4))
	b = append(append(b, src...), dst...)
	b = binary.BigEndian.AppendUint16(b, uint16(f.Port))
	return binary.BigEndian.AppendUint16(b, uint16(t.Port))
}
