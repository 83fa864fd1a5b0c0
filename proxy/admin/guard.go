package admin

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// guard lets a request through only if it names this server as its target and
// doesn't come from a page of another origin:
//
//	Host     localhost, a loopback address, or the host that we were told to
//	         listen on; any IP address if that was all addresses (0.0.0.0)
//	Origin   absent, or the Host: a page of another port is another's
//
// A page that makes its own name resolve to 127.0.0.1 (DNS rebinding) sends
// that name as Host and is refused; an address can't be rebound.
func guard(listenHost string, next http.Handler) http.Handler {
	g := allowed{listen: strings.ToLower(listenHost)}
	ip, err := netip.ParseAddr(listenHost)
	g.anywhere = listenHost == "" || err == nil && ip.IsUnspecified()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.host(r.Host) {
			http.Error(w, "this Host is not served here: use the address from wirewait's start line", http.StatusForbidden)
			return
		}
		if o := r.Header.Get("Origin"); o != "" && !sameOrigin(o, r.Host) {
			http.Error(w, "requests from pages of another origin are refused", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

type allowed struct {
	listen   string
	anywhere bool
}

// host reports whether a Host header (with or without a port) names us.
func (a allowed) host(h string) bool {
	if name, _, err := net.SplitHostPort(h); err == nil {
		h = name
	}
	h = strings.ToLower(strings.Trim(h, "[]"))
	if h == "localhost" || h != "" && h == a.listen {
		return true
	}
	ip, err := netip.ParseAddr(h)
	return err == nil && (a.anywhere || ip.IsLoopback())
}

func sameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}
