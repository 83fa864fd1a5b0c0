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
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// testCA signs certificates for tests, and writes what flags want as files.
type testCA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // the authority, PEM
	pool *x509.CertPool
}

// issued is a certificate in all the forms that tests want.
type issued struct {
	pair      tls.Certificate
	cert, key string // PEM files
}

func newTestCA(t *testing.T) *testCA {
	t.Helper()
	ca := &testCA{key: newKey(t), pool: x509.NewCertPool()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	ca.cert = sign(t, template, template, ca.key, ca.key)
	ca.file = filepath.Join(t.TempDir(), "ca.pem")
	writePEM(t, ca.file, "CERTIFICATE", ca.cert.Raw)
	ca.pool.AddCert(ca.cert)
	return ca
}

// issue makes a certificate for a name, for servers and clients, that ends when
// it is told to.
func (ca *testCA) issue(t *testing.T, name string, end time.Time) issued {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: end,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	key := newKey(t)
	cert := sign(t, template, ca.cert, key, ca.key)
	dir := t.TempDir()
	i := issued{
		pair: tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert},
		cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem"),
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, i.cert, "CERTIFICATE", cert.Raw)
	writePEM(t, i.key, "PRIVATE KEY", der)
	return i
}

func soonToEnd() time.Time   { return time.Now().Add(time.Hour) }
func overAlready() time.Time { return time.Now().Add(-time.Hour) }

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func sign(t *testing.T, template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func writePEM(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
