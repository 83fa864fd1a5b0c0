package toxiproxy

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
)

// rig is an API, as its clients see it, and a server for the proxies to lead to.
type rig struct {
	*testing.T
	proxy *proxy.Proxy
	api   *API
	url   string
	up    string // an echo server's address
}

// drivers are what moves the bytes of proxies, here.
func drivers(t *testing.T, f func(t *testing.T, driver string)) {
	for _, d := range []string{proxy.DriverNet, proxy.DriverEpoll} {
		if proxy.CheckDriver(d) == nil {
			t.Run(d, func(t *testing.T) { f(t, d) })
		}
	}
}

func newRig(t *testing.T, c proxy.Config) *rig {
	t.Helper()
	p, err := proxy.Start(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		_ = p.Shutdown(now)
	})
	r := &rig{T: t, proxy: p, up: serve(t, func(c net.Conn) { _, _ = io.Copy(c, c) })}
	rules := c.Rules
	r.api = New(Config{Proxy: func() *proxy.Proxy { return p }, Version: "v0.9.1", Rules: func() []inject.Rule { return rules }})
	s := httptest.NewServer(r.api)
	t.Cleanup(s.Close)
	r.url = s.URL
	return r
}

// serve accepts connections until the test's end; f ends with them closed.
func serve(t *testing.T, f func(net.Conn)) string {
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
			go func() {
				defer c.Close()
				f(c)
			}()
		}
	}()
	return ln.Addr().String()
}

// answer is what came back.
type answer struct {
	status int
	body   string
	header http.Header
}

// patient bounds what must not hang, with much room.
const patient = time.Minute

func (r *rig) raw(method, path, body string, headers ...string) answer {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(q)
	if err != nil {
		r.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.Fatal(err)
	}
	return answer{resp.StatusCode, string(text), resp.Header}
}

// does asks "POST /path body" and wants a status and, unless it's empty, a body.
func (r *rig) does(request string, status int, body string) answer {
	r.Helper()
	method, rest, _ := strings.Cut(request, " ")
	path, sent, _ := strings.Cut(rest, " ")
	got := r.raw(method, path, sent)
	if got.status != status || body != "" && got.body != body {
		r.Errorf("%s: %d %s, want %d %s", request, got.status, got.body, status, body)
	}
	return got
}

// add makes a proxy to the echo server, and returns where it listens.
func (r *rig) add(name string) string { return r.addTo(name, r.up) }

func (r *rig) addTo(name, up string) string {
	r.Helper()
	got := r.does(`POST /proxies {"name":"`+name+`","listen":"127.0.0.1:0","upstream":"`+up+`"}`, 201, "")
	var p Proxy
	if err := json.Unmarshal([]byte(got.body), &p); err != nil {
		r.Fatalf("%v: %s", err, got.body)
	}
	return p.Listen
}

// toxic adds one to a proxy.
func (r *rig) toxic(proxy, text string) {
	r.Helper()
	r.does("POST /proxies/"+proxy+"/toxics "+text, 200, "")
}

// client is a connection whose reads and writes end some time.
type client struct {
	*testing.T
	*net.TCPConn
}

func (r *rig) dial(addr string) client {
	r.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patient)); err != nil {
		r.Fatal(err)
	}
	return client{r.T, c.(*net.TCPConn)}
}

// says writes, and wants the same back.
func (c client) echoes(s string) {
	c.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		c.Fatal(err)
	}
	b := make([]byte, len(s))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != s {
		c.Fatalf("%q came back as %q: %v", s, b, err)
	}
}

// ends reads to the end, and returns how that was.
func (c client) ends() error {
	_, err := io.Copy(io.Discard, c.TCPConn)
	return err
}

func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patient); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}
