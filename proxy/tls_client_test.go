//go:build unix

package proxy

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/wirewait/wirewait/wire"
)

func terminate(i issued) TLSConfig {
	return TLSConfig{Client: "terminate", Cert: i.cert, Key: i.key}
}

// starts serves connections that begin with the start-up packet.
func starts(t *testing.T) string {
	return server(t, "tcp", "127.0.0.1:0", func(c net.Conn) { expectStartUp(t, c) })
}

// refused wants the connection to end without a byte.
func refused(t *testing.T, c net.Conn) {
	t.Helper()
	if b, err := io.ReadAll(c); len(b) > 0 {
		t.Errorf("read %q, %v; want the end", b, err)
	}
}

// TestTLS_ClientLegSaysWhy: each way in which a client's TLS fails has its line.
func TestTLS_ClientLegSaysWhy(t *testing.T) {
	ca, other := newTestCA(t), newTestCA(t)
	ours := ca.issue(t, "localhost", soonToEnd())
	hands := func(config *tls.Config) func(*testing.T, net.Conn) {
		return func(t *testing.T, c net.Conn) {
			send(t, c, sslRequest, "S")
			tc := tls.Client(c, config)
			if tc.Handshake() == nil { // TLS 1.3: the refusal is read
				refused(t, tc)
			}
		}
	}
	showing := func(i issued) *tls.Config {
		return &tls.Config{RootCAs: ca.pool, ServerName: "localhost", GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &i.pair, nil
		}}
	}
	for _, tc := range []struct {
		name   string
		wantCA bool
		expire bool
		client func(*testing.T, net.Conn)
		log    string
	}{
		{"does not trust us", false, false, hands(&tls.Config{ServerName: "localhost"}), "give it its authority (sslrootcert, tlsCAFile)"},
		{"we have expired", false, true, hands(&tls.Config{RootCAs: ca.pool, ServerName: "localhost"}), "the client refuses our certificate"},
		{"another name", false, false, hands(&tls.Config{RootCAs: ca.pool, ServerName: "db.example"}), "connect to a name that is in it"},
		{"too old", false, false, hands(&tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}), "unsupported versions"},
		{"S, and then plain text", false, false, func(t *testing.T, c net.Conn) {
			send(t, c, sslRequest, "S")
			_, _ = c.Write(startUp)
			_, _ = io.ReadAll(c)
		}, "the client went on in plain text"},
		{"S, and gone", false, false, func(t *testing.T, c net.Conn) { send(t, c, sslRequest, "S"); c.Close() }, "the client hung up"},
		{"no certificate", true, false, hands(&tls.Config{RootCAs: ca.pool, ServerName: "localhost"}), "didn't provide a certificate"},
		{"certificate of others", true, false, hands(showing(other.issue(t, "ann", soonToEnd()))), "sign it with an authority of --tls-client-ca"},
		{"certificate is over", true, false, hands(showing(ca.issue(t, "ann", overAlready()))), "it is not valid now"},
		{"plain, with certificates wanted", true, false, func(t *testing.T, c net.Conn) { _, _ = c.Write(startUp); refused(t, c) }, "it uses no TLS, and --tls-client-ca wants a certificate"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			config := terminate(ours)
			if tc.expire {
				config = terminate(ca.issue(t, "localhost", overAlready()))
			}
			if tc.wantCA {
				config.ClientCA = ca.file
			}
			var log logBuffer
			up := server(t, "tcp", "127.0.0.1:0", echo)
			_, l := start(t, LinkConfig{Upstream: up, Protocol: wire.Postgres, TLS: config}, func(c *Config) { c.Log = log.logger() })
			for range 2 {
				tc.client(t, dialLink(t, l))
			}
			soon(t, "the log says why", func() bool { return log.count(tc.log) > 0 })
			if n := log.count("level=WARN"); n != 1 {
				t.Errorf("%d warnings, want one per link:\n%s", n, log.b.String())
			}
		})
	}
}

func TestTLS_ClientCertificate(t *testing.T) {
	ca := newTestCA(t)
	config := terminate(ca.issue(t, "localhost", soonToEnd()))
	config.ClientCA = ca.file
	_, l := start(t, LinkConfig{Upstream: starts(t), Protocol: wire.Postgres, TLS: config})
	c := dialLink(t, l)
	send(t, c, sslRequest, "S")
	ann := ca.issue(t, "ann", soonToEnd())
	send(t, tls.Client(c, &tls.Config{RootCAs: ca.pool, ServerName: "localhost", Certificates: []tls.Certificate{ann.pair}}), startUp, "R")
}

// libpq before 17 sends cancel requests in plain text, even from sessions that
// are encrypted.
func TestTLS_PlainCancelPassesWhereCertificatesAreWanted(t *testing.T) {
	ca := newTestCA(t)
	config := terminate(ca.issue(t, "localhost", soonToEnd()))
	config.ClientCA = ca.file
	cancel := []byte{0, 0, 0, 16, 0x04, 0xd2, 0x16, 0x2e, 0, 0, 0, 7, 1, 2, 3, 4}
	got := make(chan string, 1)
	up := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		b, _ := io.ReadAll(c)
		got <- string(b)
	})
	_, l := start(t, LinkConfig{Upstream: up, TLS: config}, func(c *Config) { c.Links[0].Protocol = "" })
	c := dialLink(t, l)
	_, _ = c.Write(cancel)
	_ = c.(*net.TCPConn).CloseWrite()
	if b := <-got; b != string(cancel) {
		t.Errorf("the server got %x, want %x", b, cancel)
	}
}

// A MongoDB message of 278 bytes begins as a TLS record does, one of 790 bytes
// with two such bytes.
func TestTLS_PlainMongoIsNotTakenForTLS(t *testing.T) {
	ca := newTestCA(t)
	up := server(t, "tcp", "127.0.0.1:0", echo)
	_, l := start(t, LinkConfig{Upstream: up, Protocol: wire.MongoDB, TLS: terminate(ca.issue(t, "localhost", soonToEnd()))})
	for _, size := range []int{278, 790} {
		message := make([]byte, size)
		binary.LittleEndian.PutUint32(message, uint32(size))
		binary.LittleEndian.PutUint32(message[12:], 2013)
		send(t, dialLink(t, l), message, string(message))
	}
}

func TestTLS_TerminateForPlainTCP(t *testing.T) {
	ca := newTestCA(t)
	speaksFirst := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) { _, _ = c.Write([]byte("220 ready\r\n")); echo(c) })
	_, l := start(t, LinkConfig{Upstream: speaksFirst, Protocol: wire.TCP, TLS: terminate(ca.issue(t, "localhost", soonToEnd()))})
	c := tls.Client(dialLink(t, l), &tls.Config{RootCAs: ca.pool, ServerName: "localhost"})
	send(t, c, nil, "220 ready\r\n")
	send(t, c, []byte("EHLO"), "EHLO")
}

// A direct TLS client of PostgreSQL is known by ALPN, before it says a word.
func TestTLS_DirectTLSToAnUpstreamThatWantsSSLRequest(t *testing.T) {
	ca := newTestCA(t)
	cert := ca.issue(t, "localhost", soonToEnd())
	config := terminate(cert)
	config.Server, config.CA = "verify-ca", ca.file
	_, l := start(t, LinkConfig{Upstream: tlsServer(t, &tls.Config{Certificates: []tls.Certificate{cert.pair}}), TLS: config},
		func(c *Config) { c.Links[0].Protocol = "" })
	c := tls.Client(dialLink(t, l), &tls.Config{RootCAs: ca.pool, ServerName: "localhost", NextProtos: []string{alpn}})
	send(t, c, startUp, "R")
}

// What ends with a reset on the wire ends with one for a client whose TLS ends
// here as well.
func TestTLS_RefusalIsAReset(t *testing.T) {
	ca := newTestCA(t)
	_, l := start(t, LinkConfig{Upstream: resets(t), Protocol: wire.Postgres, TLS: terminate(ca.issue(t, "localhost", soonToEnd()))})
	c := tls.Client(dialLink(t, l), &tls.Config{RootCAs: ca.pool, ServerName: "localhost"})
	_, _ = c.Write(startUp)
	if _, err := io.ReadAll(c); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("ended by %v, want a reset", err)
	}
}

// resets reads a little and resets.
func resets(t *testing.T) string {
	return server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1))
		_ = c.(*net.TCPConn).SetLinger(0)
	})
}
