package proxy

import (
	"crypto/x509"
	"os"
	"strings"
	"testing"
)

func TestThrowAway_NamesAndFile(t *testing.T) {
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for host, names := range map[string][]string{
		"127.0.0.1":  {"localhost", "127.0.0.1", "::1"},
		"192.0.2.7":  {"localhost", "192.0.2.7"},
		"db.example": {"localhost", "db.example"},
		"0.0.0.0":    {"localhost", own},
		"::":         {"::1", own},
	} {
		a, err := NewThrowAway(host)
		if err != nil {
			t.Fatal(err)
		}
		pem, err := os.ReadFile(a.CAFile)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(pem), "PRIVATE") || strings.Count(string(pem), "BEGIN") != 1 {
			t.Errorf("the file holds more than a certificate: %s", pem)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		for _, name := range names {
			if _, err := a.Pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
				t.Errorf("listening on %s, as %s: %v", host, name, err)
			}
		}
		for range 2 {
			if err := a.Remove(); err != nil {
				t.Error(err)
			}
		}
		if _, err := os.Stat(a.CAFile); err == nil {
			t.Error("the file stays behind")
		}
	}
}
