package admin

import (
	"net"
	"net/http"
	"net/netip"

	"github.com/wirewait/wirewait/proxy/toxiproxy"
)

// handler is everything that is served, at the host that is listened on:
//
//	                    Toxiproxy's routes      /metrics, /healthz    /v1, the page
//	usual               guard, token            guard                 guard, token
//	OpenToxiproxy       its own guard           anybody               guard, and a token or this machine
//
// Toxiproxy's own guard (no browsers) is all that it has, and its clients name it
// as they like: the name of a container, say.
func (c *Config) handler(host string) http.Handler {
	all := routes(*c)
	rest := guard(host, all)
	if c.Toxiproxy == nil {
		return rest
	}
	api := http.Handler(c.Toxiproxy)
	if !c.OpenToxiproxy {
		api = guard(host, authorize(c.Token, api))
	} else if c.Token == "" {
		rest = fromHere(rest)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case toxiproxy.Serves(r.URL.Path):
			api.ServeHTTP(w, r)
		case c.OpenToxiproxy && (r.URL.Path == "/metrics" || r.URL.Path == "/healthz"):
			all.ServeHTTP(w, r)
		default:
			rest.ServeHTTP(w, r)
		}
	})
}

// fromHere lets through what comes from this machine.
func fromHere(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		if ip, err := netip.ParseAddr(host); err != nil || !ip.Unmap().IsLoopback() {
			writeJSON(w, http.StatusForbidden, Refusal{[]string{
				"this is for requests from the machine that wirewait runs on: give wirewait a token (WIREWAIT_ADMIN_TOKEN), and send it"}})
			return
		}
		next.ServeHTTP(w, r)
	})
}
