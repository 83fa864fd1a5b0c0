package main

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestFile(t *testing.T) {
	golden(t, "file.txt", transcript(t,
		"wirewait check testdata/mesh.yaml",
		"wirewait links testdata/mesh.yaml",
		"wirewait check testdata/members.yaml",
		"wirewait links testdata/members.yaml",
		"wirewait check ../../examples/wan/wirewait.yaml",
		"wirewait links ../../examples/wan/wirewait.yaml",
		"wirewait check testdata/broken.yaml",
		"wirewait links testdata/broken.yaml",
		"wirewait run testdata/broken.yaml",
		"wirewait check",
		"wirewait links",
		"wirewait check testdata/none.yaml",
		"wirewait check testdata/mesh.yaml testdata/mesh.yaml",
		"wirewait run testdata/mesh.yaml testdata/mesh.yaml",
		"wirewait run --rtt 80ms --upstream db:5432 --tls decline --connect=false --drain soon testdata/mesh.yaml",
		"wirewait run --admin 127.0.0.1:0 testdata/mesh.yaml",
		"wirewait run --admin off --seed 7 ../../examples/wan/wirewait.yaml",
		"wirewait run testdata/mesh.yaml --rtt 80ms",
	))
}

// TestFile_EveryFlagIsDecided: a flag is for links, and then refused beside a
// file, or it may stand there; a new one must not be forgotten.
func TestFile_EveryFlagIsDecided(t *testing.T) {
	for _, f := range runFlags() {
		name := f.Names()[0]
		if slices.Contains(besideFile, name) {
			continue
		}
		value := "1"
		if name == "connect" || name == "upstream-tls-direct" {
			value = "true"
		}
		got := transcript(t, "wirewait run --"+name+"="+value+" testdata/mesh.yaml")
		if !strings.Contains(got, "--"+name+" is for a run without a file") || !strings.Contains(got, "exit 2") {
			t.Errorf("--%s: %s", name, got)
		}
	}
}

// writeFile makes a configuration of what stands behind upstream.
func writeFile(t *testing.T, path string, parts ...string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(strings.Join(parts, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
}

func oneLink(listen, upstream, more string) string {
	return `  - {from: app, to: sgp, listen: "` + listen + `", upstream: "` + upstream + `", protocol: tcp` + more + `}`
}

// echoed is how long a byte takes there and back.
func echoed(t *testing.T, c net.Conn) time.Duration {
	t.Helper()
	begin := time.Now()
	if _, err := io.WriteString(c, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return time.Since(begin)
}

// TestRun_FileAndReload: a signal changes the delay of a connection that
// exists; a broken file changes nothing.
func TestRun_FileAndReload(t *testing.T) {
	up, file := echoServer(t), filepath.Join(t.TempDir(), "wirewait.yaml")
	fast := "network:\n  - {between: [app, sgp], rtt: 2ms}\nlinks:"
	slow := "network:\n  - {between: [app, sgp], rtt: 300ms}\nlinks:"
	writeFile(t, file, fast, oneLink("127.0.0.1:0", up, ", connect: false"), oneLink("127.0.0.1:0", up, ", name: other, rtt: 1ms"))

	w := start(t, nil, "--seed", "7", file)
	addr := w.line(`^link app-sgp: (\S+) -> ` + regexp.QuoteMeta(up) + `, tcp, rtt 2ms \(1ms each way\), connecting is free, seed 7$`)[1]
	w.line(`^link other: .*, rtt 1ms \(500µs each way\), seed 7$`)
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if d := echoed(t, c); d < 2*time.Millisecond {
		t.Errorf("%v before the reload, want 2ms at least", d)
	}

	writeFile(t, file, slow, oneLink("127.0.0.1:0", up, ", connect: false"), oneLink("127.0.0.1:0", up, ", name: other, rtt: 1ms"))
	w.signal(syscall.SIGHUP)
	w.line(`msg="delay changed" link=app-sgp from="rtt 2ms .*" to="rtt 300ms `)
	w.line(`msg=reloaded file=\S+ links_changed=1 waiting_for_restart=0$`)
	if d := echoed(t, c); d < 300*time.Millisecond {
		t.Errorf("%v on a connection that was there, want 300ms at least", d)
	}

	writeFile(t, file, "network:\n  - {between: [app, sgp], rtt: 5}\nlinks:", oneLink("127.0.0.1:0", up, ", wait: 1"))
	w.signal(syscall.SIGHUP)
	w.line(`level=ERROR msg="reload refused, nothing has changed"`)
	w.line(`problem=.*wirewait\.yaml:2:.* has no unit: write 5ms`)
	w.line(`problem=.*wirewait\.yaml:4:.* a link has no key`)
	if d := echoed(t, c); d < 300*time.Millisecond {
		t.Errorf("%v after a reload that was refused, want 300ms at least", d)
	}

	taken := echoServer(t)
	writeFile(t, file, fast, oneLink(taken, up, ""), oneLink("127.0.0.1:0", up, ", name: secret, tls: {client: terminate, cert: none.pem, key: none.key}"))
	w.signal(syscall.SIGHUP)
	w.line(`level=ERROR msg="reload refused, nothing has changed"`)
	w.line(`error="link app-sgp: listen tcp ` + taken + `: .*address already in use`)
	w.line(`error="link secret: tls certificate .*none.pem`)

	other := namesItself(t, "b")
	writeFile(t, file, "seed: 8\nadmin: off", fast, oneLink("127.0.0.1:0", other, ", tls: {client: pass}"), oneLink("127.0.0.1:0", other, ", name: more"))
	w.signal(syscall.SIGHUP)
	w.line(`msg="link removed; its connections go on" link=other$`)
	w.line(`msg="delay changed" link=app-sgp `)
	w.line(`msg="link changed, for connections from now on" link=app-sgp keys="upstream, tls"$`)
	more := w.line(`msg="link added" link=more listen=(\S+) upstream=` + other + ` delay="rtt 2ms`)[1]
	for _, change := range []string{"admin", "seed"} {
		w.line(`msg="reload: this waits for a restart" change="?` + change)
	}
	w.line(`msg=reloaded file=\S+ links_changed=3 waiting_for_restart=2$`)
	for _, at := range []string{addr, more} {
		n, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 1)
		if _, err := io.ReadFull(n, b); err != nil || string(b) != "b" {
			t.Errorf("%s leads to %q, %v", at, b, err)
		}
		n.Close()
	}

	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	w.signal(syscall.SIGHUP)
	w.line(`msg=reload error="configuration: open .*no such file`)
	if d := echoed(t, c); d < 2*time.Millisecond {
		t.Errorf("%v at the end", d)
	}
	w.signal(syscall.SIGTERM)
	w.stopped()
}

// namesItself serves connections by saying a name.
func namesItself(t *testing.T, name string) string {
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
			_, _ = io.WriteString(c, name)
			defer c.Close()
		}
	}()
	return ln.Addr().String()
}

// TestRun_FileWithTakenPort: the hint names the file, not a flag.
func TestRun_FileWithTakenPort(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	file := filepath.Join(t.TempDir(), "wirewait.yaml")
	taken := echoServer(t)
	writeFile(t, file, "admin: off\nlinks:", `  - {listen: "`+taken+`", upstream: "127.0.0.1:9", rtt: 0}`)
	got := transcript(t, "wirewait run "+file)
	if !strings.Contains(got, "choose another port in "+file) || !strings.Contains(got, "exit 1") {
		t.Error(got)
	}
}

// TestRun_FileWithBandwidth: 25,000 bytes take 200 ms at 1 Mbit/s, whichever of
// the links that share it they take.
func TestRun_FileWithBandwidth(t *testing.T) {
	up, file := echoServer(t), filepath.Join(t.TempDir(), "wirewait.yaml")
	writeFile(t, file, "network:\n  - {between: [app, sgp], rtt: 0, bandwidth: 1Mbit/s}\nlinks:",
		oneLink("127.0.0.1:0", up, ", name: one"), oneLink("127.0.0.1:0", up, ", name: two"))
	w := start(t, nil, file)
	begin := time.Now()
	var conns []net.Conn
	for _, name := range []string{"one", "two"} {
		c, err := net.Dial("tcp", w.line(`^link ` + name + `: (\S+) -> .*, tcp, no delay, 1Mbit/s, seed `)[1])
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write(make([]byte, 25_000)); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	for _, c := range conns {
		if _, err := io.ReadFull(c, make([]byte, 25_000)); err != nil {
			t.Fatal(err)
		}
	}
	if d := time.Since(begin); d < 400*time.Millisecond {
		t.Errorf("50,000 bytes took %v, want 400ms at least", d)
	}
	w.signal(syscall.SIGTERM)
	w.stopped()
}
