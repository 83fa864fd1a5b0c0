//go:build unix

package proxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wirewait/wirewait/wire"
)

var (
	sslRequest = []byte{0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f}
	gssRequest = []byte{0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x30}
	startUp    = []byte("\x00\x00\x00\x10\x00\x03\x00\x00user\x00u\x00\x00")
)

// certificate writes a self-signed certificate for localhost and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	kb, _ := x509.MarshalECPrivateKey(k)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	write := func(name, kind string, b []byte) {
		if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(cert, "CERTIFICATE", der)
	write(key, "EC PRIVATE KEY", kb)
	return cert, key
}

// expectStartUp reads the start-up packet and answers it.
func expectStartUp(t *testing.T, c io.ReadWriter) {
	got := make([]byte, len(startUp))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != string(startUp) {
		t.Errorf("the server got %q, %v", got, err)
	}
	_, _ = c.Write([]byte("R"))
}

func send(t *testing.T, c net.Conn, b []byte, want string) {
	t.Helper()
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Fatalf("answered %q, %v; want %q", got, err, want)
	}
}

func TestTLS_DeclineAnswersNAsOftenAsAsked(t *testing.T) {
	for _, protocol := range []wire.Protocol{wire.Postgres, ""} {
		up := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) { expectStartUp(t, c) })
		_, l := start(t, LinkConfig{Upstream: up, Protocol: protocol, TLS: TLSConfig{Client: "decline"}})
		c := dialLink(t, l)
		send(t, c, gssRequest, "N")
		for i := range sslRequest { // a byte at a time
			_, _ = c.Write(sslRequest[i : i+1])
			time.Sleep(time.Millisecond)
		}
		send(t, c, nil, "N")
		send(t, c, sslRequest, "N")
		send(t, c, startUp, "R")
	}
}

func TestTLS_DeclineCostsWhatItWould(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lc := LinkConfig{Protocol: wire.Postgres, Delay: rtt(40 * time.Millisecond), TLS: TLSConfig{Client: "decline"}}
		c, stop := bubble(t, lc, func(far net.Conn) { expectStartUp(t, far); far.Close() })
		defer stop()
		began := time.Now()
		send(t, c, sslRequest, "N")
		if d := time.Since(began); d != 80*time.Millisecond {
			t.Errorf("N after %v, want 80ms: a round trip to connect and one to ask", d)
		}
		send(t, c, startUp, "R")
		if d := time.Since(began); d != 120*time.Millisecond {
			t.Errorf("started after %v, want 120ms", d)
		}
	})
}

func TestTLS_TerminateServesBothWaysOfAsking(t *testing.T) {
	cert, key := certificate(t)
	up := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) { expectStartUp(t, c) })
	_, l := start(t, LinkConfig{Upstream: up, Protocol: wire.Postgres, TLS: TLSConfig{Client: "terminate", Cert: cert, Key: key}})
	t.Run("SSLRequest", func(t *testing.T) {
		c := dialLink(t, l)
		send(t, c, gssRequest, "N")
		send(t, c, sslRequest, "S")
		send(t, tls.Client(c, &tls.Config{InsecureSkipVerify: true}), startUp, "R")
	})
	t.Run("direct", func(t *testing.T) {
		c := tls.Client(dialLink(t, l), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"postgresql"}})
		send(t, c, startUp, "R")
		if p := c.ConnectionState().NegotiatedProtocol; p != "postgresql" {
			t.Errorf("ALPN chose %q", p)
		}
		// close_notify is a half-close, and comes back as one.
		_ = c.CloseWrite()
		if _, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the end is %v", err)
		}
	})
	t.Run("plain", func(t *testing.T) { send(t, dialLink(t, l), startUp, "R") })
}

func TestTLS_TerminateCarriesBulk(t *testing.T) {
	cert, key := certificate(t)
	up := server(t, "tcp", "127.0.0.1:0", echo)
	_, l := start(t, LinkConfig{Upstream: up, Protocol: "", Delay: rtt(2 * time.Millisecond), TLS: TLSConfig{Client: "terminate", Cert: cert, Key: key}})
	c := tls.Client(dialLink(t, l), &tls.Config{InsecureSkipVerify: true})
	b := make([]byte, 4<<20)
	_, _ = rand.Read(b)
	go func() { _, _ = c.Write(b); _ = c.CloseWrite() }()
	got, err := io.ReadAll(c)
	if err != nil || string(got) != string(b) {
		t.Errorf("%d of %d bytes, or others: %v", len(got), len(b), err)
	}
}

func TestTLS_Upstream(t *testing.T) {
	cert, key := certificate(t)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	up := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		b := make([]byte, 8)
		if _, err := io.ReadFull(c, b); err != nil || string(b) != string(sslRequest) {
			t.Errorf("the server was asked %x, %v", b, err)
			return
		}
		_, _ = c.Write([]byte("S"))
		tc := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{pair}})
		if tc.Handshake() == nil {
			expectStartUp(t, tc)
		}
	})
	refuses := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		_, _ = io.ReadFull(c, make([]byte, 8))
		_, _ = c.Write([]byte("N"))
	})
	for _, tc := range []struct {
		name     string
		upstream string
		tls      TLSConfig
		log      string
	}{
		{"require", up, TLSConfig{Server: "require"}, ""},
		{"verify-full", up, TLSConfig{Server: "verify-full", CA: cert, ServerName: "localhost"}, ""},
		{"verify-full, wrong name", up, TLSConfig{Server: "verify-full", CA: cert, ServerName: "db.example"}, "not db.example"},
		{"not offered", refuses, TLSConfig{Server: "require"}, "the server does not offer TLS"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var log logBuffer
			tc.tls.Client = "decline"
			_, l := start(t, LinkConfig{Upstream: tc.upstream, TLS: tc.tls, Protocol: wire.Postgres}, func(c *Config) { c.Log = log.logger() })
			c := dialLink(t, l)
			if tc.log == "" {
				send(t, c, sslRequest, "N")
				send(t, c, startUp, "R")
				return
			}
			_, _ = c.Write(startUp)
			_, _ = io.ReadAll(c)
			soon(t, "the log says why", func() bool { return log.count(tc.log) == 1 })
		})
	}
	t.Run("protocol detected first", func(t *testing.T) {
		l0 := LinkConfig{Listen: "127.0.0.1:0", Upstream: up, TLS: TLSConfig{Client: "decline", Server: "require"}}
		_, l := start(t, l0, func(c *Config) { c.Links[0].Protocol = "" })
		send(t, dialLink(t, l), startUp, "R")
	})
}
