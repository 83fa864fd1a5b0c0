//go:build unix

package proxy

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/wirewait/wirewait/wire"
)

func tcpAddr(s string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(s)) }

func TestProxyHeader_RoundTrips(t *testing.T) {
	unix := &net.UnixAddr{Name: "/run/a", Net: "unix"}
	for _, tc := range []struct {
		from, to net.Addr
		want     string // as read again; empty: none
	}{
		{tcpAddr("10.0.0.7:5000"), tcpAddr("10.0.0.1:27017"), "10.0.0.7:5000 10.0.0.1:27017"},
		{tcpAddr("[fd00::7]:5000"), tcpAddr("[fd00::1]:27017"), "[fd00::7]:5000 [fd00::1]:27017"},
		{tcpAddr("10.0.0.7:65535"), tcpAddr("[fd00::1]:1"), "10.0.0.7:65535 [fd00::1]:1"},
		{unix, tcpAddr("10.0.0.1:27017"), ""},
		{unix, unix, ""},
	} {
		r := bytes.NewReader(append(proxyHeader(tc.from, tc.to), "and more"...))
		from, to, err := readProxyHeader(iotest.OneByteReader(r))
		got := ""
		if from != nil {
			got = from.String() + " " + to.String()
		}
		if rest, _ := io.ReadAll(r); got != tc.want || err != nil || string(rest) != "and more" {
			t.Errorf("%v %v: %q, %v, and %q is left", tc.from, tc.to, got, err, rest)
		}
	}
}

// TestProxyHeader_IsAsOthersWriteIt: as go-proxyproto 0.15.0 does.
func TestProxyHeader_IsAsOthersWriteIt(t *testing.T) {
	for _, tc := range []struct{ from, to, want string }{
		{"10.0.0.7:5000", "10.0.0.1:27017", "0d0a0d0a000d0a515549540a2111000c0a0000070a00000113886989"},
		{"[fd00::7]:5000", "[fd00::1]:27017", "0d0a0d0a000d0a515549540a21210024fd000000000000000000000000000007fd00000000000000000000000000000113886989"},
	} {
		if got := hex.EncodeToString(proxyHeader(tcpAddr(tc.from), tcpAddr(tc.to))); got != tc.want {
			t.Errorf("%s, want %s", got, tc.want)
		}
	}
}

func TestProxyHeader_Refuses(t *testing.T) {
	head := func(more ...byte) string { return proxySignature + string(more) }
	for text, want := range map[string]string{
		"":                                      "nothing was sent",
		"PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\n":    "version 1",
		"\x00\x00\x00\x08\x04\xd2\x16\x2f":      "sent no PROXY header",
		"\r\n\r\n":                              "in the middle",
		head(0x21, 0x11, 0, 12) + "0123456789":  "in the middle",
		head(0x11, 0x11, 0, 0):                  "makes no sense", // version 1 in binary
		head(0x22, 0x11, 0, 0):                  "makes no sense", // no such command
		head(0x21, 0x11, 0, 11) + "0123456789a": "makes no sense", // too short for its addresses
		head(0x21, 0x41, 0, 0):                  "makes no sense", // no such family
		head(0x21, 0x11, 0x10, 1):               "makes no sense", // too long
	} {
		if from, _, err := readProxyHeader(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) || from != nil {
			t.Errorf("%q: %v, %v; want %q", text, from, err, want)
		}
	}
	for _, text := range []string{
		head(0x20, 0x11, 0, 3) + "abc",                       // LOCAL: anything may follow
		head(0x21, 0x00, 0, 2) + "ab",                        // unspecified
		head(0x21, 0x31, 0, 216) + string(make([]byte, 216)), // unix sockets
	} {
		if from, _, err := readProxyHeader(strings.NewReader(text)); err != nil || from != nil {
			t.Errorf("%q: %v, %v; want neither", text, from, err)
		}
	}
}

func FuzzProxyHeader(f *testing.F) {
	f.Add(proxyHeader(tcpAddr("10.0.0.7:5000"), tcpAddr("10.0.0.1:27017")))
	f.Add(proxyHeader(tcpAddr("[fd00::7]:5000"), tcpAddr("[fd00::1]:27017")))
	f.Add([]byte(proxySignature + "\x21\x31\x00\xd8"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		from, to, err := readProxyHeader(r)
		if err != nil || from == nil {
			return
		}
		whole := len(b) - r.Len()
		if length := int(b[14])<<8 | int(b[15]); whole != proxyHead+length {
			t.Errorf("%d bytes were read of a header of %d", whole, proxyHead+length)
		}
		again, _, err := readProxyHeader(bytes.NewReader(proxyHeader(from, to)))
		if err != nil || again.String() != from.String() {
			t.Errorf("%v is written so that it is read as %v, %v", from, again, err)
		}
	})
}

// TestLink_PassesOnWhoDials: the header that one proxy was sent is the one that
// it sends, and both count the client as where it says it is.
func TestLink_PassesOnWhoDials(t *testing.T) { eachDriver(t, passesOnWhoDials) }

func passesOnWhoDials(t *testing.T, on driverName) {
	heads := make(chan string, 1)
	up := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		r := bufio.NewReader(c)
		from, to, err := readProxyHeader(r)
		if err != nil {
			heads <- err.Error()
			return
		}
		heads <- from.String() + " " + to.String()
		_, _ = io.Copy(c, r)
	})
	p, l := on.start(t, LinkConfig{
		Upstream: up, Protocol: wire.TCP, From: "members", To: "a",
		Sources:       []Source{{Name: "b", Addresses: prefixes("10.0.0.7/32")}},
		ProxyProtocol: ProxyProtocol{Accept: prefixes("127.0.0.1/32"), Send: true},
	})
	c := dialLink(t, l)
	if _, err := c.Write(proxyHeader(tcpAddr("10.0.0.7:5000"), tcpAddr("10.0.0.1:27017"))); err != nil {
		t.Fatal(err)
	}
	exchange(t, c, "x")
	if got := <-heads; got != "10.0.0.7:5000 10.0.0.1:27017" {
		t.Errorf("the upstream is told %q", got)
	}
	wantWho(t, p, "b proxy_header 10.0.0.7")
}

// TestLink_BelievesOnlyWhomItIsTold: a peer that isn't among those that are
// believed can't lie; its header is bytes like others.
func TestLink_BelievesOnlyWhomItIsTold(t *testing.T) {
	p, l := start(t, LinkConfig{
		Upstream: server(t, "tcp", "127.0.0.1:0", echo), Protocol: wire.TCP, From: "members", To: "a",
		Sources:       []Source{{Name: "b", Addresses: prefixes("10.0.0.7/32")}},
		ProxyProtocol: ProxyProtocol{Accept: prefixes("127.0.0.2/32")},
	})
	c := dialLink(t, l)
	exchange(t, c, string(proxyHeader(tcpAddr("10.0.0.7:5000"), tcpAddr("10.0.0.1:27017"))))
	wantWho(t, p, "members unknown 127.0.0.1")
}

// TestLink_RefusesPeersWithoutHeader: at once, if what they send is none, and
// after a while, if they send nothing; and the log says why.
func TestLink_RefusesPeersWithoutHeader(t *testing.T) {
	var log logBuffer
	_, l := start(t, LinkConfig{
		Upstream: server(t, "tcp", "127.0.0.1:0", echo), ProxyProtocol: ProxyProtocol{Accept: prefixes("127.0.0.0/8")},
	}, func(c *Config) { c.Log = log.logger() })
	c := dialLink(t, l)
	if _, err := c.Write([]byte(sslRequest)); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(proxyTime / 2))
	refused(t, c)
	soon(t, "the log says why", func() bool { return log.count("sent no PROXY header") > 0 })
}
