package toxiproxy

import (
	"net"
	"regexp"
	"strings"
	"testing"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
)

// Bytes, codes and headers that clients depend on. Recordings of the real server
// are compared in internal/interop/toxiproxy.
func TestAPI_Proxies(t *testing.T) {
	r := newRig(t, proxy.Config{})
	r.does("GET /proxies", 200, "{}")
	r.does("POST /proxies {", 400, "{\"error\":\"bad request body: unexpected EOF\",\"status\":400}\n")
	r.does("POST /proxies {}", 400, "{\"error\":\"missing required field: name\",\"status\":400}\n")
	r.does(`POST /proxies {"name":"a"}`, 400, "{\"error\":\"missing required field: upstream\",\"status\":400}\n")
	r.does(`POST /proxies {"name":3}`, 400, "{\"error\":\"bad request body: json: cannot unmarshal number into Go struct field Proxy.name of type string\",\"status\":400}\n")
	at := r.add("a")
	whole := `{"name":"a","listen":"` + at + `","upstream":"` + r.up + `","enabled":true,"toxics":[]}`
	r.does("GET /proxies/a", 200, whole)
	r.does("GET /proxies", 200, `{"a":`+whole+`}`)
	r.does(`POST /proxies {"name":"a","upstream":"127.0.0.1:1"}`, 409, "{\"error\":\"proxy already exists\",\"status\":409}\n")
	taken := r.does(`POST /proxies {"name":"b","listen":"`+at+`","upstream":"127.0.0.1:1"}`, 500, "")
	if want := "{\"error\":\"listen tcp " + at + ": bind: address already in use\",\"status\":500}\n"; taken.body != want {
		t.Errorf("%q, want %q", taken.body, want)
	}
	r.does("GET /proxies/b", 404, "{\"error\":\"proxy not found\",\"status\":404}\n")

	r.dial(at).echoes("through\n")
	_, port, _ := net.SplitHostPort(at)
	c := r.dial(at)
	c.echoes("x")
	r.does(`PATCH /proxies/a {"listen":"localhost:`+port+`","name":"other"}`, 200, whole)
	c.echoes("it's the same address: nobody was cut")
	r.does(`POST /proxies/a {"enabled":false}`, 200, strings.Replace(whole, "true", "false", 1))
	_ = c.ends() // both an end and a reset are one
	if _, err := net.Dial("tcp", at); err == nil {
		t.Error("a disabled proxy listens")
	}
	r.does(`POST /proxies/a {"enabled":true}`, 200, whole)
	r.dial(at).echoes("again")
	r.does(`POST /proxies/a {"listen":"nonsense"}`, 500, "{\"error\":\"address nonsense: missing port in address\",\"status\":500}\n")
	r.does("GET /proxies/a", 200, whole)

	// An address that can't be had leaves the proxy disabled, with it.
	other := r.add("b")
	r.does(`POST /proxies/a {"listen":"`+other+`"}`, 500, "{\"error\":\"listen tcp "+other+": bind: address already in use\",\"status\":500}\n")
	r.does("GET /proxies/a", 200, `{"name":"a","listen":"`+other+`","upstream":"`+r.up+`","enabled":false,"toxics":[]}`)

	r.does("DELETE /proxies/a", 204, "")
	r.does("DELETE /proxies/a", 404, "{\"error\":\"proxy not found\",\"status\":404}\n")
	r.does("PATCH /proxies/a {}", 404, "{\"error\":\"proxy not found\",\"status\":404}\n")
}

func TestAPI_Toxics(t *testing.T) {
	r := newRig(t, proxy.Config{})
	r.add("a")
	r.does("GET /proxies/a/toxics", 200, "[]")
	slow := `{"attributes":{"latency":100,"jitter":0},"name":"latency_downstream","type":"latency","stream":"downstream","toxicity":1}`
	r.does(`POST /proxies/a/toxics {"type":"latency","attributes":{"latency":100,"nonsense":[1]}}`, 200, slow)
	r.does(`POST /proxies/a/toxics {"type":"latency"}`, 409, "{\"error\":\"toxic already exists\",\"status\":409}\n")
	up := `{"attributes":{"rate":7},"name":"up","type":"bandwidth","stream":"Upstream","toxicity":0.25}`
	r.does(`POST /proxies/a/toxics {"name":"up","type":"bandwidth","stream":"Upstream","toxicity":0.25,"attributes":{"RATE":7}}`, 200, up)
	r.does("GET /proxies/a/toxics", 200, "["+up+","+slow+"]")
	r.does("GET /proxies/a/toxics/up", 200, up)
	r.does(`PATCH /proxies/a/toxics/up {"name":"x","type":"noop","stream":"downstream","toxicity":1}`, 200, strings.Replace(up, "0.25", "1", 1))
	r.does(`POST /proxies/a/toxics/up {"attributes":{"rate":8}}`, 200, strings.NewReplacer("0.25", "1", "7", "8").Replace(up))
	for body, want := range map[string]string{
		`{"type":"none"}`:                 "invalid toxic type",
		`{"type":"noop","stream":""}`:     "stream was invalid, can be either upstream or downstream",
		`{"type":"noop","stream":"both"}`: "stream was invalid, can be either upstream or downstream",
		``:                                "bad request body: EOF",
		`{"type":"timeout","attributes":{"timeout":1.5}}`:          "bad request body: json: cannot unmarshal number 1.5 into Go struct field TimeoutToxic.attributes.timeout of type int64",
		`{"type":"latency","name":"n","attributes":{"jitter":""}}`: "bad request body: json: cannot unmarshal string into Go struct field LatencyToxic.attributes.jitter of type int64",
	} {
		r.does("POST /proxies/a/toxics "+body, 400, "{\"error\":\""+want+"\",\"status\":400}\n")
	}
	r.does("PATCH /proxies/a/toxics/up ", 400, "{\"error\":\"bad request body: EOF\",\"status\":400}\n")
	for _, request := range []string{"GET /proxies/a/toxics/x", "PATCH /proxies/a/toxics/x {}", "DELETE /proxies/a/toxics/x"} {
		r.does(request, 404, "{\"error\":\"toxic not found\",\"status\":404}\n")
	}
	r.does("POST /proxies/b/toxics {}", 404, "{\"error\":\"proxy not found\",\"status\":404}\n")
	r.does("DELETE /proxies/a/toxics/up", 204, "")
	r.does("GET /proxies/a/toxics", 200, "["+slow+"]")
}

func TestAPI_Transport(t *testing.T) {
	r := newRig(t, proxy.Config{})
	r.add("a b")
	r.does("GET /version", 200, "{\"version\": \"2.12.0+wirewait.v0.9.1\"}\n")
	r.does("GET /proxies/a%20b", 200, "")
	for request, want := range map[string]int{
		"GET /": 404, "GET /x": 404, "GET /proxies/": 404, "GET /proxies/a/": 404, "GET /proxies/a/toxic": 404, "GET /proxies/a%2Fb": 404,
		"GET /proxies/a/toxics/b/c": 404, "GET /version/": 404, "GET //proxies": 301, "PUT /proxies": 405, "GET /reset": 405, "HEAD /version": 405,
		"OPTIONS /proxies": 405, "DELETE /proxies/a/toxics": 405, "GET /populate": 405,
	} {
		got := r.does(request, want, "")
		if id := got.header.Get("X-Toxiproxy-Request-Id"); id != "" {
			t.Errorf("%s: a request id, %q", request, id)
		}
		if want == 405 && got.body != "" || want == 404 && got.body != "404 page not found\n" {
			t.Errorf("%s: %q", request, got.body)
		}
	}
	if to := r.raw("GET", "//proxies", "").header.Get("Location"); to != "/proxies" {
		t.Errorf("redirected to %q", to)
	}
	got := r.raw("GET", "/proxies", "", "User-Agent", "Mozilla/5.0 (X11)")
	if got.status != 403 || got.body != "User agent not allowed\n" {
		t.Errorf("a browser: %d %q", got.status, got.body)
	}
	got = r.raw("POST", "/reset", "", "Origin", "http://rebound.example")
	if got.status != 403 || got.body != "User agent not allowed\n" {
		t.Errorf("a page whose script says that it's no browser: %+v", got)
	}
	got = r.raw("POST", "/proxies", `{"name":"c","upstream":"127.0.0.1:1","listen":"127.0.0.1:0"} and more`, "Content-Type", "application/x-www-form-urlencoded")
	if id := got.header.Get("X-Toxiproxy-Request-Id"); got.status != 201 || got.header.Get("Content-Type") != "application/json" || len(id) != 20 {
		t.Errorf("%d %v %s", got.status, got.header, got.body)
	}
	got = r.raw("GET", "/proxies/none", "")
	if got.header.Get("Content-Type") != "text/plain; charset=utf-8" || got.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("an error's headers: %v", got.header)
	}
	r.does("POST /reset", 204, "")
	if got := r.raw("POST", "/proxies", strings.Repeat(" ", int(maxBody)+1)); got.status != 400 || !strings.Contains(got.body, "larger than 4 MiB") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestAPI_Populate(t *testing.T) {
	r := newRig(t, proxy.Config{})
	r.does("POST /populate []", 201, `{"proxies":null}`)
	if got := r.does("POST /populate {}", 400, ""); !strings.HasSuffix(got.body, `","status":400,"proxies":null}`) || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("%v %s", got.header, got.body)
	}
	r.does(`POST /populate [{"name":"a","upstream":"x:1"},{"upstream":"x:1"}]`, 400, `{"error":"missing required field: name at proxy 2","status":400,"proxies":null}`)
	r.does(`POST /populate [{"name":"a"}]`, 400, `{"error":"missing required field: upstream at proxy 1","status":400,"proxies":null}`)
	r.does("GET /proxies", 200, "{}")

	at, other := freeAddr(t), freeAddr(t)
	a := `{"name":"a","listen":"` + at + `","upstream":"` + r.up + `"`
	first := r.does("POST /populate ["+a+`,"enabled":false},{"name":"b","listen":"`+other+`","upstream":"`+r.up+`"}]`, 201, "")
	if want := `{"proxies":[` + a + `,"enabled":false,"toxics":[]},{"name":"b","listen":"` + other + `","upstream":"` + r.up + `","enabled":true,"toxics":[]}]}`; first.body != want {
		t.Errorf("%s, want %s", first.body, want)
	}
	// The same again changes nothing, whatever it says of enabled.
	r.toxic("a", `{"type":"noop"}`)
	noop := `{"attributes":{},"name":"noop_downstream","type":"noop","stream":"downstream","toxicity":1}`
	r.does("POST /populate ["+a+"}]", 201, `{"proxies":[`+a+`,"enabled":false,"toxics":[`+noop+`]}]}`)
	// Another upstream makes another proxy.
	r.does(`POST /populate [{"name":"a","listen":"`+at+`","upstream":"localhost:1"}]`, 201,
		`{"proxies":[{"name":"a","listen":"`+at+`","upstream":"localhost:1","enabled":true,"toxics":[]}]}`)
	// The first that can't be had is the last.
	got := r.does(`POST /populate [{"name":"c","listen":"`+at+`","upstream":"x:1"},{"name":"d","listen":"127.0.0.1:0","upstream":"x:1"}]`, 500, "")
	if want := `{"error":"listen tcp ` + at + `: bind: address already in use","status":500,"proxies":null}`; got.body != want {
		t.Errorf("%s, want %s", got.body, want)
	}
	r.does("GET /proxies/d", 404, "")
	// One that can't listen where it's to be is left disabled.
	r.does(`POST /populate [{"name":"b","listen":"`+at+`","upstream":"x:1"}]`, 500, "")
	if got := r.does("GET /proxies/b", 200, ""); !strings.Contains(got.body, `"enabled":false`) {
		t.Errorf("%s", got.body)
	}
	// Toxics come with their proxy.
	got = r.does(`POST /populate [{"name":"e","listen":"127.0.0.1:0","upstream":"`+r.up+`","toxics":[{"type":"latency","stream":"upstream","attributes":{"latency":5}}]}]`, 201, "")
	if !strings.Contains(got.body, `"toxics":[{"attributes":{"latency":5,"jitter":0},"name":"latency_upstream"`) {
		t.Errorf("%s", got.body)
	}
	r.does(`POST /populate [{"name":"f","upstream":"x:1","toxics":[{"type":"noop"},{"type":"noop"}]}]`, 409,
		`{"error":"proxy f, toxic 2: toxic already exists","status":409,"proxies":null}`)
	r.does(`POST /proxies {"name":"f","upstream":"x:1","toxics":[{"type":"none"}]}`, 400, "{\"error\":\"proxy f, toxic 1: invalid toxic type\",\"status\":400}\n")
	r.does("GET /proxies/f", 404, "")
}

// freeAddr is an address that nobody listens on.
func freeAddr(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// Links of the configuration are proxies, and what the API made of them goes with
// a reset; they themselves and others' rules stay.
func TestAPI_LinksOfTheConfiguration(t *testing.T) {
	r := newRig(t, proxy.Config{
		Links: []proxy.LinkConfig{{Name: "orders", Listen: "127.0.0.1:0", Upstream: "127.0.0.1:1"}},
		Rules: []inject.Rule{{Name: "theirs", Effect: inject.EffectHold, When: inject.When{Command: []string{"insert"}}}},
	})
	at := r.proxy.Link("orders").Addr().String()
	r.does(`PATCH /proxies/orders {"upstream":"`+r.up+`"}`, 200, `{"name":"orders","listen":"`+at+`","upstream":"`+r.up+`","enabled":true,"toxics":[]}`)
	r.dial(at).echoes("x")
	r.toxic("orders", `{"type":"reset_peer"}`)
	r.does(`POST /proxies/orders {"enabled":false}`, 200, "")
	r.does(`POST /populate [{"name":"orders","listen":"127.0.0.1:0","upstream":"x:1"}]`, 201, "")
	if up := r.proxy.Link("orders").Upstream(); up != r.up {
		t.Errorf("populate changed a link of the configuration: it leads to %s", up)
	}
	mine := inject.Rule{Name: "mine", Effect: inject.EffectHold, When: inject.When{Command: []string{"update"}}}
	if err := r.proxy.SetRules([]inject.Rule{mine}); err != nil {
		t.Fatal(err)
	}
	r.does("POST /reset", 204, "")
	r.does("GET /proxies/orders/toxics", 200, "[]")
	r.dial(at).echoes("x")
	var names []string
	for _, rule := range r.proxy.Rules() {
		names = append(names, rule.Name)
	}
	if got := strings.Join(names, " "); got != "theirs mine" {
		t.Errorf("the rules are %q: want the configuration's back, and others left", got)
	}
}

func TestAPI_ResetStartsWhatWasMadeDisabled(t *testing.T) {
	r := newRig(t, proxy.Config{})
	got := r.does(`POST /proxies {"name":"a","listen":"localhost:0","upstream":"`+r.up+`","enabled":false}`, 201, "")
	if !strings.Contains(got.body, `"listen":"localhost:0","upstream":"`+r.up+`","enabled":false`) {
		t.Errorf("%s", got.body)
	}
	r.does("POST /reset", 204, "")
	got = r.does("GET /proxies/a", 200, "")
	m := regexp.MustCompile(`"listen":"(127\.0\.0\.1:[1-9]\d*)".*"enabled":true`).FindStringSubmatch(got.body)
	if m == nil {
		t.Fatalf("%s", got.body)
	}
	r.dial(m[1]).echoes("x")
}
