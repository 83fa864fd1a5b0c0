// Package toxiproxy answers Toxiproxy's HTTP API, so that its clients work with
// wirewait as they are:
//
//	GET  /version                        POST /populate          POST /reset
//	GET, POST           /proxies         GET, POST, PATCH, DELETE /proxies/{proxy}
//	GET, POST           /proxies/{proxy}/toxics
//	GET, POST, PATCH, DELETE /proxies/{proxy}/toxics/{toxic}
//
// A proxy is a link, whoever made it, and a toxic is a rule that stacks:
//
//	toxic {name, type, stream, toxicity, attributes}
//	   |    stream      direction of the rule: upstream is to the server
//	   |    toxicity    probability, drawn for each connection
//	   v    attributes  parameters, and of ours: match, ttl, first, nth
//	inject.Rule --> proxy.SetToxics --> connections
//
// Codes, bodies, headers and error texts are Toxiproxy 2.12's (its api.go,
// proxy_collection.go and toxic_collection.go). Nothing here waits for a
// connection. What is other than there: docs/toxiproxy.md.
package toxiproxy

import (
	"log/slog"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
)

// Compatible is the release of Toxiproxy whose API this is.
const Compatible = "2.12.0"

// Config is what an API is made of.
type Config struct {
	// Proxy is the running one; nil while there is none.
	Proxy func() *proxy.Proxy
	// Version is wirewait's own; GET /version answers Compatible with it behind.
	Version string
	// Rules are those of the configuration, which are as there after /reset; nil:
	// there are none.
	Rules func() []inject.Rule
	// Log gets a line for each change; nil: nobody does.
	Log *slog.Logger
}

// API is a handler of the routes. It's safe for concurrent use.
type API struct {
	config  Config
	version string
	log     *slog.Logger

	// mu is held while proxies or toxics change, and never across what may wait: a
	// name to be resolved, a connection.
	mu     sync.Mutex
	toxics map[string]*chain // by the proxy's name
}

// New makes an API of a proxy whose toxics nobody else sets.
func New(c Config) *API {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &API{config: c, version: Version(c.Version), log: c.Log, toxics: map[string]*chain{}}
}

var notMetadata = regexp.MustCompile(`[^0-9A-Za-z.]+`)

// Version is what clients are told: Toxiproxy's release, whose API it is, with
// wirewait's version as build metadata (semver.org, 10).
func Version(own string) string {
	return Compatible + "+wirewait." + notMetadata.ReplaceAllString(own, "")
}

// ServeHTTP answers the routes above, and 404 to all else.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if clean := cleanPath(r.URL.Path); clean != r.URL.Path {
		to := *r.URL
		to.Path, to.RawPath = clean, ""
		w.Header().Set("Location", to.String())
		w.WriteHeader(http.StatusMovedPermanently)
		return
	}
	methods, ok := find(r.URL.Path)
	if !ok {
		http.NotFound(w, r)
		return
	}
	answer := methods.byMethod[r.Method]
	if answer == nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("X-Toxiproxy-Request-Id", requestID())
	if refuseBrowser(w, r) {
		return
	}
	p := a.config.Proxy()
	if p == nil && r.URL.Path != "/version" {
		writeError(w, &apiError{"the links are not open yet: ask again in a moment", http.StatusServiceUnavailable})
		return
	}
	v, err := answer(a, &call{w: w, r: r, proxy: p, name: methods.proxy, toxic: methods.toxic})
	reply(w, v, err)
}

// call is a request, and what its path names.
type call struct {
	w           http.ResponseWriter
	r           *http.Request
	proxy       *proxy.Proxy
	name, toxic string
}

// now is for what ends after a time.
func (a *API) now() time.Time { return time.Now() }
