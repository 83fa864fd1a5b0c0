package proxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"time"
)

// ThrowAway is a certificate for a link to terminate TLS with, of an authority
// that exists for nothing else: it signs this one certificate and its key is
// forgotten before NewThrowAway returns.
type ThrowAway struct {
	// Pair is what TLSConfig.Pair wants: the certificate and its key, which is
	// in memory only.
	Pair tls.Certificate
	// CAFile is a PEM file with the authority, in the temporary directory and
	// readable by everybody: what clients are given as sslrootcert or tlsCAFile.
	CAFile string
}

// throwAwayTime is how long a throw-away certificate is good for.
const throwAwayTime = 365 * 24 * time.Hour

// NewThrowAway makes one for localhost, 127.0.0.1, ::1 and hosts, which are
// names or IP addresses; those that are empty or a wildcard stand for the
// machine's own name. The caller removes the file with Remove.
func NewThrowAway(hosts ...string) (*ThrowAway, error) {
	ca, caKey, err := newCertificate(&x509.Certificate{
		Subject: pkix.Name{CommonName: "wirewait throw-away CA"}, IsCA: true,
		KeyUsage: x509.KeyUsageCertSign, MaxPathLenZero: true,
	}, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("throw-away certificate authority: %w", err)
	}
	leaf := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "localhost"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	for _, h := range hosts {
		addHost(leaf, h)
	}
	cert, key, err := newCertificate(leaf, ca, caKey)
	if err != nil {
		return nil, fmt.Errorf("throw-away certificate: %w", err)
	}
	t := &ThrowAway{Pair: tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}}
	if t.CAFile, err = writeAuthority(ca); err != nil {
		return nil, err
	}
	return t, nil
}

func addHost(c *x509.Certificate, host string) {
	ip := net.ParseIP(host)
	switch {
	case host == "" || ip != nil && ip.IsUnspecified():
		if name, err := os.Hostname(); err == nil && name != "" {
			c.DNSNames = append(c.DNSNames, name)
		}
	case ip != nil:
		c.IPAddresses = append(c.IPAddresses, ip)
	default:
		c.DNSNames = append(c.DNSNames, host)
	}
}

// newCertificate makes a certificate and its key. Without a parent it signs
// itself.
func newCertificate(template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if parent == nil {
		parent, parentKey = template, key
	}
	now := time.Now()
	template.NotBefore, template.NotAfter = now.Add(-time.Hour), now.Add(throwAwayTime)
	template.BasicConstraintsValid = true
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return cert, key, err
}

func writeAuthority(ca *x509.Certificate) (string, error) {
	f, err := os.CreateTemp("", "wirewait-ca-*.pem")
	if err != nil {
		return "", fmt.Errorf("throw-away certificate authority: %w", err)
	}
	err = errors.Join(
		pem.Encode(f, &pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw}),
		f.Chmod(0o644), // clients run as other users
		f.Close(),
	)
	if err != nil {
		os.Remove(f.Name())
		return "", fmt.Errorf("throw-away certificate authority: %w", err)
	}
	return f.Name(), nil
}

// Remove removes the authority's file.
func (t *ThrowAway) Remove() error {
	if err := os.Remove(t.CAFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("throw-away certificate authority: %w", err)
	}
	return nil
}
