//go:build unix

package proxy

import (
	"crypto/tls"
	"io"
	"net"
	"testing"

	"github.com/wirewait/wirewait/wire"
)

// tlsServer answers an SSLRequest with S, as PostgreSQL does, or begins with
// TLS at once if the client does, and expects a start-up packet.
func tlsServer(t *testing.T, config *tls.Config) string {
	return server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		first := make([]byte, 1)
		if _, err := io.ReadFull(c, first); err != nil {
			return
		}
		p := &prefixed{Conn: c, head: first}
		if first[0] == 0 {
			_, _ = io.ReadFull(p, make([]byte, len(sslRequest)))
			_, _ = c.Write([]byte("S"))
		}
		tc := tls.Server(p, config)
		if tc.Handshake() == nil {
			expectStartUp(t, tc)
		}
	})
}

// plainServer answers SSLRequest with N and expects a start-up packet behind it.
func plainServer(t *testing.T) string {
	return server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		if _, err := io.ReadFull(c, make([]byte, len(sslRequest))); err != nil {
			return
		}
		_, _ = c.Write([]byte("N"))
		if first := make([]byte, 1); readFull(c, first) {
			expectStartUp(t, struct {
				io.Reader
				io.Writer
			}{&prefixed{Conn: c, head: first}, c})
		}
	})
}

func readFull(c net.Conn, b []byte) bool { _, err := io.ReadFull(c, b); return err == nil }

func TestTLS_UpstreamModes(t *testing.T) {
	ca, other := newTestCA(t), newTestCA(t)
	named, ann := ca.issue(t, "db.example", soonToEnd()), ca.issue(t, "ann", soonToEnd())
	good := &tls.Config{Certificates: []tls.Certificate{named.pair}, NextProtos: []string{alpn}}
	over := &tls.Config{Certificates: []tls.Certificate{ca.issue(t, "db.example", overAlready()).pair}}
	strict := &tls.Config{Certificates: good.Certificates, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.pool}
	strict12 := strict.Clone()
	strict12.MaxVersion = tls.VersionTLS12
	old := &tls.Config{Certificates: good.Certificates, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	mute := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) { _, _ = c.Read(make([]byte, 8)) })
	odd := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		_, _ = io.ReadFull(c, make([]byte, 8))
		_, _ = c.Write([]byte("S220 smtp"))
	})
	nameless := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) { _ = tls.Server(c, over).Handshake() })
	for _, tc := range []struct {
		name     string
		upstream string
		tls      TLSConfig
		log      string // empty: it works without a word
	}{
		{"prefer", tlsServer(t, good), TLSConfig{Server: "prefer"}, ""},
		{"prefer, not offered", plainServer(t), TLSConfig{Server: "prefer"}, ""},
		{"require", tlsServer(t, good), TLSConfig{Server: "require"}, ""},
		{"require, not offered", plainServer(t), TLSConfig{Server: "require"}, "the server does not offer TLS"},
		{"require, expired", tlsServer(t, over), TLSConfig{Server: "require"}, ""},
		{"verify-ca", tlsServer(t, good), TLSConfig{Server: "verify-ca", CA: ca.file}, ""},
		{"verify-ca, unknown", tlsServer(t, good), TLSConfig{Server: "verify-ca", CA: other.file}, "give its authority as --upstream-ca"},
		{"verify-ca, expired", tlsServer(t, over), TLSConfig{Server: "verify-ca", CA: ca.file}, "it is not valid now"},
		{"verify-full", tlsServer(t, good), TLSConfig{Server: "verify-full", CA: ca.file, ServerName: "db.example"}, ""},
		{"verify-full, address", tlsServer(t, good), TLSConfig{Server: "verify-full", CA: ca.file}, ""},
		{"verify-full, name", tlsServer(t, good), TLSConfig{Server: "verify-full", CA: ca.file, ServerName: "db2.example"}, "--upstream-server-name"},
		{"verify-full, the system's", tlsServer(t, good), TLSConfig{Server: "verify-full"}, "give its authority as --upstream-ca"},
		{"direct", tlsServer(t, good), TLSConfig{Server: "require", Direct: true}, ""},
		{"direct, no ALPN", nameless, TLSConfig{Server: "require", Direct: true}, "leave out --upstream-tls-direct"},
		{"direct, too old a server", mute, TLSConfig{Server: "require", Direct: true}, "leave out --upstream-tls-direct"},
		{"certificate", tlsServer(t, strict), TLSConfig{Server: "require", UpstreamCert: ann.cert, UpstreamKey: ann.key}, ""},
		{"certificate is missing", tlsServer(t, strict), TLSConfig{Server: "require"}, "give --upstream-cert and --upstream-key"},
		{"certificate is missing, 1.2", tlsServer(t, strict12), TLSConfig{Server: "require"}, "or the server wants a client's certificate"},
		{"no version", tlsServer(t, old), TLSConfig{Server: "require"}, "no version in common"},
		{"not TLS", odd, TLSConfig{Server: "require"}, "the server does not speak TLS at this port"},
		{"hangs up", mute, TLSConfig{Server: "require"}, "no answer to SSLRequest"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.tls.Client = "decline"
			var log logBuffer
			_, l := start(t, LinkConfig{Upstream: tc.upstream, TLS: tc.tls, Protocol: wire.Postgres}, func(c *Config) { c.Log = log.logger() })
			for range 2 {
				c := dialLink(t, l)
				if tc.log == "" {
					send(t, c, sslRequest, "N")
					send(t, c, startUp, "R")
					continue
				}
				_, _ = c.Write(startUp)
				refused(t, c)
			}
			if tc.log != "" {
				soon(t, "the log says why", func() bool { return log.count(tc.log) > 0 })
			}
			if n, want := log.count("level=WARN"), min(len(tc.log), 1); n != want {
				t.Errorf("%d warnings, want %d:\n%s", n, want, log.b.String())
			}
		})
	}
}

// libpq's prefer begins again without TLS if it fails.
func TestTLS_PreferBeginsAgainInPlainText(t *testing.T) {
	var log logBuffer
	up := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		b := make([]byte, 8)
		if !readFull(c, b) {
			return
		}
		if string(b) == string(sslRequest) {
			_, _ = c.Write([]byte("Sorry, not today."))
			_, _ = io.ReadAll(c)
			return
		}
		expectStartUp(t, struct {
			io.Reader
			io.Writer
		}{&prefixed{Conn: c, head: b}, c})
	})
	_, l := start(t, LinkConfig{Upstream: up, TLS: TLSConfig{Client: "decline", Server: "prefer"}, Protocol: wire.Postgres},
		func(c *Config) { c.Log = log.logger() })
	send(t, dialLink(t, l), startUp, "R")
	if log.count("going on in plain text") != 1 {
		t.Errorf("the log does not say so: %s", log.b.String())
	}
}

func TestTLS_UpstreamOfMongoDB(t *testing.T) {
	ca := newTestCA(t)
	cert := ca.issue(t, "localhost", soonToEnd())
	up := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		tc := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert.pair}})
		_, _ = io.Copy(tc, tc)
	})
	ping := append([]byte{21, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xdd, 7, 0, 0}, 0, 0, 0, 0, 0)
	for _, protocol := range []wire.Protocol{wire.MongoDB, ""} {
		config := TLSConfig{Client: "decline", Server: "verify-full", CA: ca.file, ServerName: "localhost"}
		_, l := start(t, LinkConfig{Upstream: up, TLS: config}, func(c *Config) { c.Links[0].Protocol = protocol })
		send(t, dialLink(t, l), ping, string(ping))
	}
	t.Run("prefer asks PostgreSQL only", func(t *testing.T) {
		var log logBuffer
		_, l := start(t, LinkConfig{Upstream: up, Protocol: wire.MongoDB, TLS: TLSConfig{Client: "decline", Server: "prefer"}},
			func(c *Config) { c.Log = log.logger() })
		c := dialLink(t, l)
		_, _ = c.Write(ping)
		refused(t, c)
		soon(t, "the log says why", func() bool { return log.count("prefer needs PostgreSQL") == 1 })
	})
	t.Run("TLS in TLS", func(t *testing.T) {
		var log logBuffer
		_, l := start(t, LinkConfig{Upstream: up, Protocol: wire.MongoDB, TLS: TLSConfig{Client: "decline", Server: "require"}},
			func(c *Config) { c.Log = log.logger() })
		if err := tls.Client(dialLink(t, l), &tls.Config{InsecureSkipVerify: true}).Handshake(); err == nil {
			t.Error("the handshake succeeded")
		}
		soon(t, "the log says why", func() bool { return log.count("it begins with TLS, which this link declines") == 1 })
	})
}

func TestTLS_BadConfigurations(t *testing.T) {
	ca := newTestCA(t)
	pair := ca.issue(t, "localhost", soonToEnd())
	for _, tc := range []struct {
		tls  TLSConfig
		unix bool
	}{
		{tls: TLSConfig{Client: "decline", ClientCA: ca.file}},
		{tls: TLSConfig{Client: "decline", Cert: pair.cert, Key: pair.key}},
		{tls: TLSConfig{Client: "terminate", Cert: pair.cert}},
		{tls: TLSConfig{Client: "terminate", Cert: pair.cert, Key: pair.cert}},
		{tls: TLSConfig{Client: "terminate", Cert: pair.cert, Key: pair.key, ClientCA: pair.key}},
		{tls: TLSConfig{Client: "terminate", Cert: pair.cert, Key: pair.key, ClientCA: "/nonexistent"}},
		{tls: TLSConfig{Client: "decline", Server: "allow"}},
		{tls: TLSConfig{Client: "decline", Server: "verify-ca", CA: pair.key}},
		{tls: TLSConfig{Client: "decline", Server: "prefer", Direct: true}},
		{tls: TLSConfig{Client: "decline", Server: "require", UpstreamKey: pair.key}},
		{tls: TLSConfig{Server: "verify-full"}},
		{tls: TLSConfig{Client: "decline", Server: "verify-full"}, unix: true},
	} {
		upstream := address{network: "tcp", host: "localhost"}
		if tc.unix {
			upstream = address{network: "unix", host: "/run/db.sock"}
		}
		if _, err := newTLSLink(tc.tls, upstream); err == nil {
			t.Errorf("%+v is taken", tc.tls)
		}
	}
}
