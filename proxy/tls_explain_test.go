package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
)

// number is an alert as crypto/tls has it: a number with a text.
type number uint8

func (number) Error() string { return "tls: alert" }

func alerted(n uint8) error { return &net.OpError{Op: "remote error", Err: number(n)} }

func TestTLS_EveryAlertIsExplained(t *testing.T) {
	for n, want := range map[uint8][2]string{
		alertHandshakeFailure:    {"no cipher", "--upstream-cert"},
		alertBadCertificate:      {"sslrootcert", "--upstream-cert"},
		alertCertificateRevoked:  {"ended it", "--upstream-cert"},
		alertCertificateExpired:  {"renew --tls-cert", "--upstream-cert"},
		alertCertificateUnknown:  {"tlsCAFile", "--upstream-cert"},
		alertUnknownCA:           {"does not trust", "--upstream-cert"},
		alertProtocolVersion:     {"no version in common", "no version in common"},
		alertCertificateRequired: {"ended it", "wants a client's certificate"},
		alertNoApplication:       {"ended it", "another protocol"},
		255:                      {"the client ended it", "the server ended it"},
	} {
		for leg, err := range []error{explainClient(alerted(n)), explainUpstream(alerted(n), &tlsLink{})} {
			if !strings.Contains(err.Error(), want[leg]) {
				t.Errorf("alert %d: %q, want %q in it", n, err, want[leg])
			}
		}
	}
}

func TestTLS_OtherFailuresAreExplained(t *testing.T) {
	invalid := func(r x509.InvalidReason) error {
		return &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: r}}
	}
	odd := errors.New("something else")
	for _, tc := range []struct {
		err              error
		client, upstream string
	}{
		{io.EOF, "the client hung up", "is its TLS on?"},
		{fmt.Errorf("read: %w", os.ErrDeadlineExceeded), "within 30s", "within 30s"},
		{context.DeadlineExceeded, "within 30s", "within 30s"},
		{invalid(x509.Expired), "it is not valid now", "it is not valid now"},
		{invalid(x509.IncompatibleUsage), "make another one", "make another one"},
		{odd, "tls handshake: something else", "tls handshake: something else"},
		{&net.OpError{Op: "remote error", Err: odd}, "something else", "something else"},
	} {
		for want, err := range map[string]error{tc.client: explainClient(tc.err), tc.upstream: explainUpstream(tc.err, &tlsLink{})} {
			if !strings.Contains(err.Error(), want) || !errors.Is(err, tc.err) {
				t.Errorf("%q, want %q in it", err, want)
			}
		}
	}
}
