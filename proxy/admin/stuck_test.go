//go:build unix

package admin

import (
	"net"
	"strings"
	"testing"

	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// TestV1_NeverWaits: every request is answered while a line is full, in front of
// a server that doesn't read, and another server never answers what comes first.
func TestV1_NeverWaits(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // whose backlog takes connections
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	up := silent.Addr().String()
	p := startProxy(t, proxy.Config{LineLimit: 1, Links: []proxy.LinkConfig{
		{Name: "full", Listen: "127.0.0.1:0", Upstream: up, Protocol: wire.TCP},
		{Name: "hanging", Listen: "127.0.0.1:0", Upstream: up, Protocol: wire.Postgres, TLS: proxy.TLSConfig{Client: "decline", Server: "require"}},
	}})
	s := start(t, Config{Listen: "127.0.0.1:0", Control: &Control{Proxy: func() *proxy.Proxy { return p }, Waits: &trace.Summary{}}})
	a := &api{t: t, s: s}
	for _, l := range p.Links() {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if l.Name() == "full" {
			go c.Write(make([]byte, 64<<20)) // until it's closed
		}
	}
	var all Connections
	soon(t, "both are stuck", func() bool {
		all = Connections{}
		a.call("GET", "/v1/connections", "", &all)
		return len(all.Connections) == 2 && all.Connections[0].ToServer.Paused && all.Connections[1].State == "connecting"
	})
	for _, request := range []string{
		"GET /v1/health", "GET /v1/config", "GET /v1/links", "GET /v1/links/full", "GET /v1/connections", "GET /v1/waits", "DELETE /v1/waits",
		`PATCH /v1/links {"links": {"full": {"rtt": "1s"}, "hanging": {"rtt": "1s"}}}`, `PATCH /v1/links/hanging {"rtt": "2s"}`,
		`PUT /v1/rules [{"name": "cut", "effect": "hold"}, {"name": "lost", "effect": "lose_reply"}]`, "GET /v1/rules", "GET /v1/rules/cut",
		`POST /v1/rules {"name": "more", "effect": "hold"}`, `PATCH /v1/rules/cut {"effect": "reset_peer"}`, "DELETE /v1/rules/cut", "PUT /v1/rules []",
		`PUT /v1/scenario {"name": "x", "end": "1h", "steps": [{"name": "y", "at": 0, "links": {"full": {"rtt": "3s"}}, "rules": [{"name": "cut", "effect": "hold"}]}]}`,
		"GET /v1/scenario", "DELETE /v1/scenario",
		"GET /v1/connections/" + jsonNumber(all.Connections[0].ID),
		"DELETE /v1/connections/" + jsonNumber(all.Connections[0].ID), "DELETE /v1/connections/" + jsonNumber(all.Connections[1].ID),
	} {
		method, rest, _ := strings.Cut(request, " ")
		path, body, _ := strings.Cut(rest, " ")
		if code, answer := a.raw(method, path, body); code != 200 {
			t.Errorf("%s: %d %s", request, code, answer)
		}
	}
	soon(t, "both are gone", func() bool { return len(p.Connections()) == 0 })
}
