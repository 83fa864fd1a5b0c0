//go:build unix

package admin

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// api is a client of a server's /v1.
type api struct {
	t     *testing.T
	s     *Server
	token string
	slow  *trace.Slow
	did   *trace.Activities
}

// call asks and decodes the answer into to, unless that is nil.
func (a *api) call(method, path, body string, to any) int {
	a.t.Helper()
	status, answer := a.raw(method, path, body)
	if to != nil {
		d := json.NewDecoder(strings.NewReader(answer))
		d.DisallowUnknownFields()
		if err := d.Decode(to); err != nil {
			a.t.Fatalf("%s %s: %v in %s", method, path, err, answer)
		}
	}
	return status
}

func (a *api) raw(method, path, body string) (int, string) {
	a.t.Helper()
	r, err := http.NewRequest(method, "http://"+a.s.Addr().String()+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	if a.token != "" {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// refused asks for what can't be had and returns the problems.
func (a *api) refused(method, path, body string, want int) string {
	a.t.Helper()
	var r Refusal
	if got := a.call(method, path, body, &r); got != want {
		a.t.Errorf("%s %s %s: %d, want %d (%v)", method, path, body, got, want, r.Problems)
	}
	if len(r.Problems) == 0 {
		a.t.Errorf("%s %s %s: no problem is named", method, path, body)
	}
	return strings.Join(r.Problems, "\n")
}

// control starts a proxy with two links to an echo server and /v1 beside it.
func control(t *testing.T) (*api, *proxy.Proxy, *trace.Summary) {
	t.Helper()
	up, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { up.Close() })
	go func() {
		for {
			c, err := up.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); io.Copy(c, c) }()
		}
	}()
	summary, slow, did := &trace.Summary{}, &trace.Slow{}, &trace.Activities{}
	p := startProxy(t, proxy.Config{Links: []proxy.LinkConfig{
		{Name: "a", From: "app", To: "sgp", Listen: "127.0.0.1:0", Upstream: up.Addr().String(), Protocol: wire.TCP, Delay: inject.Symmetric(20*time.Millisecond, time.Millisecond)},
		{Name: "b", Listen: "127.0.0.1:0", Upstream: up.Addr().String()},
	}})
	s := start(t, Config{Listen: "127.0.0.1:0", Control: &Control{
		Proxy: func() *proxy.Proxy { return p }, Waits: summary, Slow: slow, Observed: did, Version: "v1.2.3",
		Settings: func() any { return map[string]string{"seed": "42"} },
	}})
	return &api{t: t, s: s, slow: slow, did: did}, p, summary
}

func startProxy(t *testing.T, c proxy.Config) *proxy.Proxy {
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
	return p
}

// dial opens a connection over a link and has five bytes come back.
func dial(t *testing.T, p *proxy.Proxy, link string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Link(link).Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, "hello"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	return c
}

// soon waits, without limit but that of the test, for what must come.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}
