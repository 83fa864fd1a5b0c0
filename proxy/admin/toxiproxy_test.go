//go:build unix

package admin

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/proxy/toxiproxy"
)

// beside starts an admin server with Toxiproxy's routes.
func beside(t *testing.T, c Config) *Server {
	t.Helper()
	p := startProxy(t, proxy.Config{Links: []proxy.LinkConfig{{Name: "a", Listen: "127.0.0.1:0", Upstream: "127.0.0.1:1"}}})
	of := func() *proxy.Proxy { return p }
	c.Control = &Control{Proxy: of}
	c.Toxiproxy = toxiproxy.New(toxiproxy.Config{Proxy: of})
	c.Metrics = metrics
	return start(t, c)
}

// On the usual server Toxiproxy's routes are guarded as /v1 is.
func TestToxiproxy_BesideTheRest(t *testing.T) {
	s := beside(t, Config{Listen: "127.0.0.1:0"})
	for path, want := range map[string]int{
		"/proxies": 200, "/proxies/a": 200, "/proxies/a/toxics": 200, "/version": 200, "/proxies/": 404, "//proxies": 200, // follows to it
		"/v1/links": 200, "/": 200, "/healthz": 200, "/metrics": 200, "/proxiesandmore": 404,
	} {
		if code, body := get(t, s, "GET", path, "", ""); code != want {
			t.Errorf("%s: %d %s, want %d", path, code, body, want)
		}
	}
	if code, _ := get(t, s, "GET", "/proxies", "rebound.example", ""); code != 403 {
		t.Errorf("another Host: %d", code)
	}
	if code, _ := get(t, s, "GET", "/proxies", "", "http://pages.example"); code != 403 {
		t.Errorf("another Origin: %d", code)
	}
	s = beside(t, Config{Listen: "0.0.0.0:0", Token: "secret"})
	if code, _ := get(t, s, "GET", "/proxies", "", ""); code != 401 {
		t.Errorf("without the token: %d", code)
	}
}

// In Toxiproxy's place its routes, and what scrapers and orchestrators ask, are for
// everybody, and the rest is for this machine.
func TestToxiproxy_InItsPlace(t *testing.T) {
	s := beside(t, Config{Listen: "0.0.0.0:0", OpenToxiproxy: true})
	for _, path := range []string{"/proxies", "/version", "/healthz", "/metrics"} {
		if code, body := get(t, s, "GET", path, "toxiproxy:8474", ""); code != 200 {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if code, _ := get(t, s, "GET", "/v1/links", "", ""); code != 200 {
		t.Errorf("/v1 from here: %d", code)
	}
	if code, _ := get(t, s, "GET", "/v1/links", "toxiproxy:8474", ""); code != 403 {
		t.Errorf("/v1 under another name: %d", code)
	}
	elsewhere := ownAddress(t)
	for _, path := range []string{"/v1/links", "/"} {
		resp, err := http.Get("http://" + net.JoinHostPort(elsewhere, portOf(s)) + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 403 {
			t.Errorf("%s from %s: %d", path, elsewhere, resp.StatusCode)
		}
	}
	s = beside(t, Config{Listen: "0.0.0.0:0", OpenToxiproxy: true, Token: "secret"})
	if code, _ := get(t, s, "GET", "/v1/links", "", ""); code != 401 {
		t.Errorf("/v1 without the token: %d", code)
	}
	if code, _ := get(t, s, "GET", "/proxies", "", ""); code != 200 {
		t.Errorf("/proxies without a token: %d", code)
	}
}

func portOf(s *Server) string {
	_, port, _ := net.SplitHostPort(s.Addr().String())
	return port
}

// ownAddress is one of this machine's that isn't loopback.
func ownAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && !ip.IP.IsLinkLocalUnicast() && !strings.Contains(ip.IP.String(), ":") {
			return ip.IP.String()
		}
	}
	t.Skip("this machine has no address but loopback: run it where there is one")
	return ""
}
