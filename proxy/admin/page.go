package admin

import (
	"embed"
	"io/fs"
	"net/http"
)

// The page for people: plain files that a browser reads as they are. They hold
// nothing of what runs; their script asks /v1 for that, and has the reader enter
// the token where there is one.
//
//	GET /             page/index.html
//	GET /page/NAME    its style, its modules, its icon
//
//go:embed page
var pageFiles embed.FS

// pagePolicy lets the page load from here and nowhere else, run no inline script
// and be framed by nobody, and it refuses every assignment of a string to what
// would be read as HTML or script: names on the page come from the wire.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// pageRoutes adds the page to mux.
func pageRoutes(mux *http.ServeMux) {
	mux.Handle("GET /{$}", pageHeaders(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeFileFS(w, r, pageFiles, "page/index.html")
	})))
	mux.Handle("GET /page/{name}", pageHeaders(http.HandlerFunc(servePageFile)))
}

func servePageFile(w http.ResponseWriter, r *http.Request) {
	name := "page/" + r.PathValue("name")
	if info, err := fs.Stat(pageFiles, name); err != nil || info.IsDir() {
		http.NotFound(w, r)
		return
	}
	http.ServeFileFS(w, r, pageFiles, name)
}

func pageHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", pagePolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		// Another version may run at this address in a moment.
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}
