//go:build unix

package proxy_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/wire"
)

func startMongo(t *testing.T) *lab.Mongo {
	t.Helper()
	m, err := lab.StartMongo(lab.MongoOptions{Compressors: []string{"zstd"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Stop() })
	return m
}

// behindTLS puts TLS in front of a server that speaks none, and returns its
// address and the files of its certificate, which is its own authority, and of
// the key. With a file of authorities for clients it wants their certificates.
func behindTLS(t *testing.T, addr, clientCA string) (front, ca, keyFile string) {
	t.Helper()
	cert, key, err := lab.SelfSigned()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ca, keyFile = filepath.Join(dir, "ca.pem"), filepath.Join(dir, "key.pem")
	for file, pem := range map[string][]byte{ca: cert, keyFile: key} {
		if err := os.WriteFile(file, pem, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}}
	if clientCA != "" {
		pem, err := os.ReadFile(clientCA)
		if err != nil {
			t.Fatal(err)
		}
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		config.ClientCAs.AppendCertsFromPEM(pem)
	}
	ln, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	var relays sync.WaitGroup
	relays.Go(func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			relays.Go(func() { relay(near, addr) })
		}
	})
	t.Cleanup(func() { ln.Close(); relays.Wait() })
	return ln.Addr().String(), ca, keyFile
}

// relay copies both ways until one side has ended.
func relay(near net.Conn, addr string) {
	defer near.Close()
	far, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	go func() { _, _ = io.Copy(far, near); far.Close() }()
	_, _ = io.Copy(near, far)
}

// insert writes one document with the driver and reads it again.
func insert(t *testing.T, uri string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		return err
	}
	defer func() { _ = c.Disconnect(context.WithoutCancel(ctx)) }()
	coll := c.Database("shop").Collection("orders")
	id := bson.NewObjectID()
	if _, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: id}, {Key: "note", Value: strings.Repeat("x", 100_000)}}); err != nil {
		return err
	}
	return coll.FindOne(ctx, bson.D{{Key: "_id", Value: id}}).Err()
}

// TestTLS_MongoDB: the Go driver in every placement, with the connection
// strings of docs/tls.md.
func TestTLS_MongoDB(t *testing.T) {
	m, auto, carol := startMongo(t), newThrowAway(t), newIdentity(t, "carol")
	encrypted, ca, _ := behindTLS(t, m.Addr(), "")
	strict, strictCA, _ := behindTLS(t, m.Addr(), carol.cert)
	both := filepath.Join(t.TempDir(), "client.pem")
	var pem []byte
	for _, file := range []string{carol.cert, carol.key} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pem = append(pem, b...)
	}
	if err := os.WriteFile(both, pem, 0o600); err != nil {
		t.Fatal(err)
	}
	const plain = "directConnection=true&compressors=zstd"
	trusting := plain + "&tls=true&tlsCAFile=" + auto.CAFile
	for _, tc := range []struct {
		name, upstream string
		tls            proxy.TLSConfig
		options        string
	}{
		{"plain, plain", m.Addr(), proxy.TLSConfig{}, plain},
		{"TLS, plain", m.Addr(), proxy.TLSConfig{Client: "terminate", Pair: &auto.Pair}, trusting},
		{"TLS that trusts anybody, plain", m.Addr(), proxy.TLSConfig{Client: "terminate", Pair: &auto.Pair}, plain + "&tls=true&tlsInsecure=true"},
		{"TLS with a certificate, plain", m.Addr(), proxy.TLSConfig{Client: "terminate", Pair: &auto.Pair, ClientCA: carol.cert}, trusting + "&tlsCertificateKeyFile=" + both},
		{"plain, TLS", encrypted, proxy.TLSConfig{Client: "decline", Server: "verify-full", CA: ca}, plain},
		{"plain, TLS without a look", encrypted, proxy.TLSConfig{Client: "decline", Server: "require"}, plain},
		{"TLS, TLS", encrypted, proxy.TLSConfig{Client: "terminate", Pair: &auto.Pair, Server: "verify-ca", CA: ca}, trusting},
		{"plain, TLS with a certificate", strict, proxy.TLSConfig{Client: "decline", Server: "verify-full", CA: strictCA, UpstreamCert: carol.cert, UpstreamKey: carol.key}, plain},
	} {
		for _, protocol := range []wire.Protocol{wire.MongoDB, ""} {
			t.Run(tc.name+"/"+string(protocol), func(t *testing.T) {
				r := newRig(t, proxy.LinkConfig{Upstream: tc.upstream, Protocol: protocol, TLS: tc.tls, Delay: inject.Symmetric(1e6, 0)})
				if err := insert(t, "mongodb://"+r.addr()+"/?"+tc.options); err != nil {
					t.Fatalf("%v; log:\n%s", err, r.log.String())
				}
				if got := r.writes(t)["insert"]; got != 1 {
					t.Errorf("%d writes were seen, want 1", got)
				}
				if strings.Contains(r.log.String(), "level=WARN") {
					t.Errorf("warned without a reason:\n%s", r.log.String())
				}
			})
		}
	}
	t.Run("passed on", func(t *testing.T) {
		r := newRig(t, proxy.LinkConfig{Upstream: encrypted, Protocol: wire.MongoDB})
		if err := insert(t, "mongodb://"+r.addr()+"/?"+plain+"&tls=true&tlsCAFile="+ca); err != nil {
			t.Fatal(err)
		}
		r.cut()
		if strings.Count(r.log.String(), "encrypted, not decoded") != 1 {
			t.Errorf("it isn't said that nothing is read:\n%s", r.log.String())
		}
	})
	t.Run("the server wants a certificate", func(t *testing.T) {
		r := newRig(t, proxy.LinkConfig{Upstream: strict, Protocol: wire.MongoDB, TLS: proxy.TLSConfig{Client: "decline", Server: "require"}})
		if err := insert(t, "mongodb://"+r.addr()+"/?"+plain+"&serverSelectionTimeoutMS=2000"); err == nil {
			t.Error("it works without one")
		}
		soon(t, "the log says why", func() bool {
			return strings.Contains(r.log.String(), "the server wants a client's certificate: give --upstream-cert and --upstream-key")
		})
	})
}
