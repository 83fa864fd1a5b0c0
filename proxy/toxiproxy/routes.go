package toxiproxy

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
)

// handler returns what to answer: see reply. It's nil beside an error.
type handler func(*API, *call) (any, error)

// found is a route that a path has, and what it names.
type found struct {
	byMethod     map[string]handler
	proxy, toxic string
}

// routes by the number of a path's parts behind /proxies.
var routes = [...]map[string]handler{
	{"GET": (*API).listProxies, "POST": (*API).createProxy},
	{"GET": (*API).showProxy, "POST": (*API).updateProxy, "PATCH": (*API).updateProxy, "DELETE": (*API).deleteProxy},
	{"GET": (*API).listToxics, "POST": (*API).createToxic},
	{"GET": (*API).showToxic, "POST": (*API).updateToxic, "PATCH": (*API).updateToxic, "DELETE": (*API).deleteToxic},
}

// find finds the route of a path, which is a decoded one: a name with a slash in it
// can't be asked for.
func find(p string) (f found, ok bool) {
	switch p {
	case "/version":
		return found{byMethod: map[string]handler{"GET": (*API).showVersion}}, true
	case "/populate":
		return found{byMethod: map[string]handler{"POST": (*API).populate}}, true
	case "/reset":
		return found{byMethod: map[string]handler{"POST": (*API).reset}}, true
	}
	parts := strings.Split(p, "/")
	if len(parts) < 2 || parts[0] != "" || parts[1] != "proxies" || len(parts)-2 >= len(routes) {
		return f, false
	}
	names := parts[2:]
	for i, part := range names {
		if part == "" || i == 1 && part != "toxics" {
			return f, false
		}
	}
	f.byMethod = routes[len(names)]
	if len(names) > 0 {
		f.proxy = names[0]
	}
	if len(names) > 2 {
		f.toxic = names[2]
	}
	return f, true
}

// Serves reports whether a path is one of the API's, so that no other handler is to
// answer it: one of its routes, or anything below /proxies.
func Serves(p string) bool {
	p = cleanPath(p)
	_, ok := find(p)
	return ok || strings.HasPrefix(p, "/proxies/")
}

// cleanPath is the path without double slashes and dots; a slash at the end stays.
func cleanPath(p string) string {
	if p == "" {
		return "/"
	}
	if p[0] != '/' {
		p = "/" + p
	}
	clean := path.Clean(p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		clean += "/"
	}
	return clean
}

// refuseBrowser refuses what pages in browsers send, whose name may lead here (DNS
// rebinding). A script may call its browser something else (the Fetch standard lets
// it set User-Agent), but has no say in Origin, which comes with what changes
// something. True: it's answered.
func refuseBrowser(w http.ResponseWriter, r *http.Request) bool {
	fromPage := r.Header.Get("Origin") != "" && r.Method != http.MethodGet
	if !fromPage && !strings.HasPrefix(r.UserAgent(), "Mozilla/") {
		return false
	}
	http.Error(w, "User agent not allowed", http.StatusForbidden)
	return true
}

// requestID has 20 characters, as Toxiproxy's.
func requestID() string {
	var b [10]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
