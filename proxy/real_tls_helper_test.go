//go:build unix

package proxy_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/wire"
)

// tlsServer is a PostgreSQL server with TLS and roles to try it with:
//
//	postgres   trusted
//	ann        SCRAM-SHA-256, the password is "secret"
//	carol      a client certificate
type tlsServer struct {
	*lab.Postgres
	cert, key string // the server's own, PEM files; cert is its own authority
	carol     identity
}

// identity is a client's certificate, which is its own authority.
type identity struct{ cert, key string }

func startTLSServer(t *testing.T) *tlsServer {
	t.Helper()
	s := &tlsServer{Postgres: startPostgres(t, lab.PostgresOptions{TLS: true}), carol: newIdentity(t, "carol")}
	data := strings.TrimSpace(s.must(t, "show data_directory"))
	s.cert, s.key = filepath.Join(t.TempDir(), "server.crt"), filepath.Join(data, "server.key")
	write := func(file string, b []byte) {
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(s.cert, s.Certificate())
	ca, err := os.ReadFile(s.carol.cert)
	if err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(data, "root.crt"), ca)
	write(filepath.Join(data, "pg_hba.conf"), []byte(
		"host all postgres all trust\nhostssl all carol all cert\nhost all ann all scram-sha-256\n"))
	s.must(t, "create role ann login password 'secret'; create role carol login")
	s.must(t, "alter system set ssl_ca_file = 'root.crt'")
	before := s.must(t, "select pg_conf_load_time()")
	s.must(t, "select pg_reload_conf()")
	soon(t, "the server has read its files", func() bool { return s.must(t, "select pg_conf_load_time()") != before })
	return s
}

func (s *tlsServer) must(t *testing.T, sql string) string {
	t.Helper()
	return psql(t, s.Postgres, s.Addr(), "postgres", "-qAtc", sql).must(t)
}

// link leads to the server, with its TLS as given.
func (s *tlsServer) link(c proxy.TLSConfig) proxy.LinkConfig {
	return proxy.LinkConfig{Upstream: s.Addr(), Protocol: wire.Postgres, TLS: c}
}

// encrypted asks whether the server's connection is, and writes.
const encrypted = "create temp table t (n int); select ssl from pg_stat_ssl where pid = pg_backend_pid()"

// psqlAs runs psql with these PG... variables and returns its one answer, and
// what it says when it fails.
func (s *tlsServer) psqlAs(t *testing.T, addr string, env ...string) (answer, fails string) {
	t.Helper()
	c := psql(t, s.Postgres, addr, "postgres", "-qAtc", encrypted)
	c.Env = append(append(c.Env, "PGPASSWORD=secret"), env...)
	o := c.run(t)
	return strings.TrimSpace(o.Out), o.Err
}

// pgxAs does the same with pgx, whose parameters have the names of libpq's.
func (s *tlsServer) pgxAs(t *testing.T, addr, user string, parameters ...string) (answer, fails string) {
	t.Helper()
	url := "postgres://" + user + ":secret@" + addr + "/postgres?default_query_exec_mode=simple_protocol&" + strings.Join(parameters, "&")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", err.Error()
	}
	defer c.Close(ctx)
	before, after, _ := strings.Cut(encrypted, ";")
	if _, err := c.Exec(ctx, before); err != nil {
		return "", err.Error()
	}
	var yes bool
	if err := c.QueryRow(ctx, after).Scan(&yes); err != nil {
		return "", err.Error()
	}
	return map[bool]string{true: "t", false: "f"}[yes], ""
}

// newIdentity makes a certificate that a client may show, and its key.
func newIdentity(t *testing.T, name string) identity {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	i := identity{cert: filepath.Join(dir, "client.crt"), key: filepath.Join(dir, "client.key")}
	for file, block := range map[string]*pem.Block{i.cert: {Type: "CERTIFICATE", Bytes: der}, i.key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return i
}
