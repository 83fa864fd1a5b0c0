package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"
)

// echoServer sends back what it gets, until the test ends.
func echoServer(t *testing.T) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); c.Close() }()
		}
	}()
	return ln.Addr().String()
}

func TestRun_ThrowAwayCertificate(t *testing.T) {
	w := start(t, nil, "--listen", "127.0.0.1:0", "--upstream", echoServer(t), "--protocol", "tcp", "--tls", "auto")
	file := w.line(`^tls: clients trust (\S+) \(sslrootcert, tlsCAFile\); it is removed at exit$`)[1]
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o644 {
		t.Errorf("the file's mode is %o, want 644", mode)
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		t.Fatalf("no certificate in %q", pem)
	}
	for _, name := range []string{"127.0.0.1", "localhost", "::1"} {
		c, err := tls.Dial("tcp", w.addr(), &tls.Config{RootCAs: roots, ServerName: name})
		if err != nil {
			t.Fatalf("as %s: %v", name, err)
		}
		got := make([]byte, 5)
		if _, err := io.WriteString(c, "hello"); err != nil {
			t.Error(err)
		}
		if _, err := io.ReadFull(c, got); err != nil || string(got) != "hello" {
			t.Errorf("as %s: %q, %v", name, got, err)
		}
		c.Close()
	}
	w.signal(syscall.SIGTERM)
	w.stopped()
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file stays behind: %v", err)
	}
}

// A start that fails leaves no file behind either.
func TestRun_ThrowAwayCertificateOfAFailedStart(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	if code := run(t.Context(), []string{"wirewait", "run", "--admin", "off", "--listen", "192.0.2.1:1", "--upstream", "127.0.0.1:9",
		"--tls", "auto"}, nil, io.Discard, io.Discard); code != exitFailure {
		t.Fatalf("exit %d, want %d", code, exitFailure)
	}
	left, err := os.ReadDir(os.TempDir())
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
