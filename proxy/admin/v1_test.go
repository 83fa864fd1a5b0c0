//go:build unix

package admin

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

func TestV1_Links(t *testing.T) {
	a, p, _ := control(t)
	dial(t, p, "a")
	var l Link
	soon(t, "the bytes are counted", func() bool {
		return a.call("GET", "/v1/links/a", "", &l) == 200 && l.ToClient.Bytes == 5
	})
	if l.From != "app" || l.To != "sgp" || l.Listen != p.Link("a").Addr().String() || l.Connections.Open != 1 || l.ToServer.Bytes != 5 {
		t.Errorf("%+v", l)
	}
	if l.Delay.RTT != "20ms" || l.Delay.ToServer.Delay != "10ms" || l.Delay.ToServer.Jitter != "1ms" || !l.Delay.Connect {
		t.Errorf("delay: %+v", l.Delay)
	}
	if w := l.ToServer; w.HeldRuns != 1 || w.PlannedMS < 9 || w.AchievedMS < w.PlannedMS || w.DelayError != nil {
		t.Errorf("to server: %+v", w)
	}
	var all Links
	if code := a.call("GET", "/v1/links", "", &all); code != 200 || len(all.Links) != 2 || all.Links[1].Name != "b" || all.Links[1].Connections.Total != 0 {
		t.Errorf("%d, %+v", code, all)
	}
	if said := a.refused("GET", "/v1/links/nowhere", "", 404); !strings.Contains(said, `the links are ["a" "b"]`) {
		t.Error(said)
	}
}

func TestV1_DelaysChangeWholeOrNotAtAll(t *testing.T) {
	a, p, _ := control(t)
	var l Link
	if code := a.call("PATCH", "/v1/links/a", `{"rtt": "80ms"}`, &l); code != 200 || l.Delay.RTT != "80ms" || l.Delay.ToServer.Jitter != "1ms" {
		t.Errorf("%d, %+v", code, l.Delay)
	}
	var all Links
	if code := a.call("PATCH", "/v1/links", `{"links": {"a": {"rtt": "100ms"}, "b": {"delay": {"to_server": "7ms"}}}}`, &all); code != 200 {
		t.Errorf("%d", code)
	}
	if a, b := p.Link("a").Delay(), p.Link("b").Delay(); a.RTT() != 100*time.Millisecond || b.RTT() != 7*time.Millisecond {
		t.Errorf("a has %v, b has %v", a.RTT(), b.RTT())
	}
	for body, want := range map[string][]string{
		`{"links": {"a": {"rtt": "1ms"}, "b": {"rtt": "fast"}}}`:                             {"rtt is"},
		`{"links": {"a": {"rtt": "1s"}, "c": {"rtt": "1s"}, "d": {"rtt": "1s"}}}`:            {`no link "c"`, `no link "d"`},
		`{"links": {"a": {"rtt": "1ms", "jitter": "1ms"}, "b": {"rtt": 0, "jitter": "1s"}}}`: {"link a: jitter", "link b: jitter"},
		`{"links": {"a": {"rtt": "1ms", "color": "red"}}}`:                                   {`"color"`},
		``: {"it is empty"},
	} {
		status := 400
		if strings.Contains(body, `"d"`) {
			status = 404
		}
		said := a.refused("PATCH", "/v1/links", body, status)
		for _, w := range want {
			if !strings.Contains(said, w) {
				t.Errorf("%s: %s, want %q in it", body, said, w)
			}
		}
		if d := p.Link("a").Delay(); d.RTT() != 100*time.Millisecond {
			t.Fatalf("%s: refused, and a has %v", body, d.RTT())
		}
	}
	a.refused("PATCH", "/v1/links/nowhere", `{"rtt": "1s"}`, 404)
	a.refused("PATCH", "/v1/links", strings.Repeat(" ", maxBody+1), 413)
}

func TestV1_Connections(t *testing.T) {
	a, p, _ := control(t)
	first, second := dial(t, p, "a"), dial(t, p, "b")
	var all, some Connections
	soon(t, "both are counted", func() bool {
		all = Connections{}
		return a.call("GET", "/v1/connections", "", &all) == 200 && len(all.Connections) == 2 && all.Connections[1].ToClient.Bytes == 5
	})
	if c := all.Connections[0]; c.Link != "a" || c.Client != first.LocalAddr().String() || c.State != "open" || c.Delay.RTT != "20ms" || c.UpstreamPort == 0 {
		t.Errorf("%+v", c)
	}
	if code := a.call("GET", "/v1/connections?link=b", "", &some); code != 200 || len(some.Connections) != 1 || some.Connections[0].Client != second.LocalAddr().String() {
		t.Errorf("%d, %+v", code, some)
	}
	var one Connection
	path := "/v1/connections/" + jsonNumber(some.Connections[0].ID)
	if code := a.call("DELETE", path, "", &one); code != 200 || one.State != "closing" {
		t.Errorf("%d, %+v", code, one)
	}
	if _, err := second.Read(make([]byte, 1)); err == nil {
		t.Error("the client still reads")
	}
	soon(t, "it is gone", func() bool { code, _ := a.raw("GET", path, ""); return code == 404 })
	a.refused("DELETE", path, "", 404)
	a.refused("DELETE", "/v1/connections/first", "", 400)
	a.refused("GET", "/v1/connections?link=nowhere", "", 404)
}

func jsonNumber(n uint64) string {
	b, _ := json.Marshal(n)
	return string(b)
}

func TestV1_Waits(t *testing.T) {
	a, _, summary := control(t)
	x := &wire.Exchange{Protocol: wire.MongoDB, Operation: "insert", Write: true, Answered: true, OK: true}
	x.Mongo.WriteConcern = wire.WriteConcern{W: "majority", Source: "command"}
	for i, at := range []wire.Stamp{0, 0, 40e6, 44e6, 44e6, 84e6} {
		side := &x.Sides[i/3]
		*[...]*wire.Stamp{&side.FirstIn, &side.LastIn, &side.LastOut}[i%3] = at + 1e9
	}
	for range 10 {
		summary.Consume(&trace.Finished{Exchange: x, Conn: &trace.Conn{Link: "a"}, Waits: trace.Split(x)})
	}
	var w Waits
	if code := a.call("GET", "/v1/waits", "", &w); code != 200 || w.Writes != 10 || len(w.Rows) != 1 {
		t.Fatalf("%d, %+v", code, w)
	}
	r := w.Rows[0]
	if r.Link != "a" || r.WaitsFor != "majority" || r.Operation != "" || !r.Write || r.Count != 10 || r.Total.P99 < 83 || r.Total.P99 > 85 {
		t.Errorf("%+v", r)
	}
	if sum := r.Receive.Mean + r.Request.Mean + r.Server.Mean + r.Replication.Mean + r.Reply.Mean; sum-r.Total.Mean > 0.001 || r.Total.Mean-sum > 0.001 {
		t.Errorf("the parts' means are %v, the total's %v", sum, r.Total.Mean)
	}
	w = Waits{}
	if a.call("GET", "/v1/waits?by=operation,basis&reads=true&link=a", "", &w); len(w.Rows) != 1 || w.Rows[0].Operation != "insert" || w.Rows[0].Basis != "exact" {
		t.Errorf("%+v", w)
	}
	w = Waits{}
	if a.call("GET", "/v1/waits?link=b", "", &w); w.Writes != 10 || len(w.Rows) != 0 {
		t.Errorf("%+v", w)
	}
	for _, certain := range []string{trace.BasisUnanimous, trace.BasisNotWaited} {
		summary.Consume(&trace.Finished{Exchange: x, Conn: &trace.Conn{Link: "a"}, Waits: trace.Split(x), Replication: trace.Replication{Basis: certain}})
	}
	y := *x
	y.Mongo.WriteConcern = wire.WriteConcern{W: "majority", Source: "assumed"}
	summary.Consume(&trace.Finished{Exchange: &y, Conn: &trace.Conn{Link: "b"}, Waits: trace.Split(&y)})
	for query, want := range map[string][3]uint64{ // writes, left out, in the rows
		"":                              {13, 0, 13},
		"?by=concern&exact=concern":     {13, 1, 12},
		"?by=concern&exact=replication": {13, 2, 11},
		"?exact=concern&link=a":         {13, 0, 12},
		"?exact=concern&link=b":         {13, 1, 0},
	} {
		w = Waits{}
		a.call("GET", "/v1/waits"+query, "", &w)
		got := [3]uint64{w.Writes, w.LeftOut}
		for _, r := range w.Rows {
			got[2] += r.Count
		}
		if got != want {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	w = Waits{}
	if a.call("GET", "/v1/waits?by=replication", "", &w); len(w.Rows) != 3 {
		t.Errorf("%+v", w.Rows)
	}
	a.refused("GET", "/v1/waits?exact=perhaps", "", 400)
	a.refused("GET", "/v1/waits?by=colour", "", 400)
	a.refused("GET", "/v1/waits?reads=perhaps", "", 400)
	if code, _ := a.raw("DELETE", "/v1/waits", ""); code != 200 {
		t.Errorf("%d", code)
	}
	if a.call("GET", "/v1/waits", "", &w); w.Writes != 0 {
		t.Errorf("after a reset: %+v", w)
	}
}

func TestV1_Health(t *testing.T) {
	a, p, _ := control(t)
	dial(t, p, "a")
	var h Health
	if code := a.call("GET", "/v1/health", "", &h); code != 200 || h.Status != "ok" || h.Version != "v1.2.3" || h.Links != 2 || h.Connections != 1 {
		t.Errorf("%d, %+v", code, h)
	}
	var set map[string]string
	if a.call("GET", "/v1/config", "", &set); set["seed"] != "42" {
		t.Errorf("%v", set)
	}
	for method, path := range map[string]string{"POST": "/v1/health", "GET": "/v1/nothing", "PUT": "/v1/links"} {
		if code, _ := a.raw(method, path, ""); code != 404 && code != 405 {
			t.Errorf("%s %s: %d", method, path, code)
		}
	}
}

// TestV1_OtherPagesAreRefused: a page in somebody's browser, and a name that was
// made to resolve here.
func TestV1_OtherPagesAreRefused(t *testing.T) {
	a, p, _ := control(t)
	for _, header := range []struct{ host, origin string }{{"rebound.example:8474", ""}, {"", "https://evil.example"}, {"", "null"}} {
		for _, request := range []string{"GET /v1/links", `PATCH /v1/links/a {"rtt": "9s"}`, "PUT /v1/rules []", "DELETE /v1/waits"} {
			method, rest, _ := strings.Cut(request, " ")
			path, body, _ := strings.Cut(rest, " ")
			r, err := http.NewRequest(method, "http://"+a.s.Addr().String()+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if header.host != "" {
				r.Host = header.host
			}
			if header.origin != "" {
				r.Header.Set("Origin", header.origin)
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode != http.StatusForbidden {
				t.Errorf("%s with %+v: %s", request, header, answer.Status)
			}
		}
	}
	if d := p.Link("a").Delay(); d.RTT() != 20*time.Millisecond {
		t.Errorf("the delay is %v", d.RTT())
	}
}

func TestV1_BeforeTheLinksAreOpen(t *testing.T) {
	s := start(t, Config{Listen: "127.0.0.1:0", Control: &Control{Proxy: func() *proxy.Proxy { return nil }}})
	a := &api{t: t, s: s}
	a.refused("GET", "/v1/links", "", 503)
}

// TestV1_Token: beyond loopback nobody starts without one, and with one nobody
// comes in without it.
func TestV1_Token(t *testing.T) {
	p := startProxy(t, proxy.Config{})
	c := &Control{Proxy: func() *proxy.Proxy { return p }}
	for _, listen := range []string{"0.0.0.0:0", "[::]:0", ":0"} {
		if _, err := Start(Config{Listen: listen, Control: c}); !errors.Is(err, errOpen) {
			t.Errorf("%s without a token: %v", listen, err)
		}
	}
	for _, listen := range []string{"127.0.0.1:0", "localhost:0"} {
		start(t, Config{Listen: listen, Control: &Control{Proxy: c.Proxy}})
	}
	const token = "sesame-4711"
	s := start(t, Config{Listen: "0.0.0.0:0", Control: c, Token: token, Metrics: metrics})
	_, port, _ := net.SplitHostPort(s.Addr().String())
	ask := func(path, authorization string) int {
		r, _ := http.NewRequest("GET", "http://127.0.0.1:"+port+path, nil)
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		if strings.Contains(string(b), token) {
			t.Errorf("%s shows the token", path)
		}
		return resp.StatusCode
	}
	for authorization, want := range map[string]int{
		"": 401, "Bearer": 401, "Bearer wrong": 401, "Basic " + token: 401, "Bearer " + token + "x": 401, token: 401,
		"Bearer " + token: 200, "bearer " + token: 200,
	} {
		if got := ask("/v1/health", authorization); got != want {
			t.Errorf("Authorization %q: %d, want %d", authorization, got, want)
		}
	}
	for _, path := range []string{"/metrics", "/healthz"} {
		if got := ask(path, ""); got != 200 {
			t.Errorf("%s without a token: %d", path, got)
		}
	}
}
