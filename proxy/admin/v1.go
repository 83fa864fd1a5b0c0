package admin

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/proxy/config"
	"github.com/wirewait/wirewait/trace"
)

// Control is what /v1 shows and changes. Nothing of it waits for a connection.
type Control struct {
	// Proxy is the running one; nil while there is none.
	Proxy func() *proxy.Proxy
	// Waits are the writes that were seen; nil: they are not counted.
	Waits *trace.Summary
	// Slow are the slowest writes of late; nil: none are kept.
	Slow *trace.Slow
	// Observed are what servers did lately; nil: nobody asks any.
	Observed *trace.Activities
	// Settings are how wirewait was started, with nothing secret in them; they
	// must be fit for encoding/json. Nil: nobody says.
	Settings func() any
	// Version is wirewait's own.
	Version string
	// Healthy is Config.Healthy.
	Healthy func() error

	started time.Time
}

// maxBody bounds what somebody sends: the rules of a thousand links are a tenth
// of it.
const maxBody = 1 << 20

// apiError is a refusal, and what to do instead.
type apiError struct {
	status   int
	problems []string
}

func (e *apiError) Error() string { return strings.Join(e.problems, "\n") }

func refuse(status int, problems ...string) error { return &apiError{status, problems} }

// Refusal is the body of every answer of /v1 that isn't a success. Each problem
// says what to do instead, and can be read alone.
type Refusal struct {
	Problems []string `json:"problems"`
}

// routes adds /v1 to mux, each route behind the token.
func (c *Control) routes(mux *http.ServeMux, token string) {
	c.started = time.Now()
	for pattern, answer := range c.handlers() {
		mux.Handle(pattern, authorize(token, c.answer(answer)))
	}
}

// handler returns what to encode, or an error: an apiError, or 400.
type handler func(*proxy.Proxy, *http.Request) (any, error)

// handlers are all routes; docs/openapi.yaml has the same (a test compares them).
func (c *Control) handlers() map[string]handler {
	return map[string]handler{
		"GET /v1/health": c.health,
		"GET /v1/config": c.settings,

		"GET /v1/links":          c.links,
		"PATCH /v1/links":        c.patchLinks,
		"GET /v1/links/{name}":   c.link,
		"PATCH /v1/links/{name}": c.patchLink,

		"GET /v1/rules":           c.rules,
		"PUT /v1/rules":           c.putRules,
		"POST /v1/rules":          c.postRules,
		"GET /v1/rules/{name}":    c.rule,
		"PATCH /v1/rules/{name}":  c.patchRule,
		"DELETE /v1/rules/{name}": c.deleteRule,

		"GET /v1/connections":         c.connections,
		"GET /v1/connections/{id}":    c.connection,
		"DELETE /v1/connections/{id}": c.cut,

		"GET /v1/waits":    c.waits,
		"DELETE /v1/waits": c.resetWaits,

		"GET /v1/writes": c.writes,

		"GET /v1/observed": c.observed,

		"GET /v1/scenario":    c.scenario,
		"PUT /v1/scenario":    c.startScenario,
		"DELETE /v1/scenario": c.stopScenario,
	}
}

// answer serves a handler.
func (c *Control) answer(f handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := c.Proxy()
		if p == nil {
			writeJSON(w, http.StatusServiceUnavailable, Refusal{[]string{"the links are not open yet: ask again in a moment"}})
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		v, err := f(p, r)
		var refused *apiError
		switch {
		case errors.As(err, &refused):
			writeJSON(w, refused.status, Refusal{refused.problems})
		case err != nil:
			writeJSON(w, http.StatusBadRequest, Refusal{problemsOf(err)})
		default:
			writeJSON(w, http.StatusOK, v)
		}
	})
}

// problemsOf are the sentences of an error, one each.
func problemsOf(err error) []string {
	var ps config.Problems
	if errors.As(err, &ps) {
		list := make([]string, len(ps))
		for i, p := range ps {
			list[i] = p.String()
		}
		return list
	}
	return strings.Split(err.Error(), "\n")
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(v) // whoever asked has gone
}

// body is what was sent, at most maxBody.
func body(r *http.Request) ([]byte, error) {
	b, err := io.ReadAll(r.Body)
	if err == nil {
		return b, nil
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, refuse(http.StatusRequestEntityTooLarge, "the body is larger than 1 MiB: send less at a time")
	}
	return nil, refuse(http.StatusBadRequest, "the body could not be read whole: "+err.Error())
}

// Health is the answer of GET /v1/health.
type Health struct {
	// Status is "ok" or why it isn't: "stopping".
	Status  string    `json:"status"`
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Links   int       `json:"links"`
	// Connections are open now.
	Connections int64 `json:"connections"`
}

func (c *Control) health(p *proxy.Proxy, _ *http.Request) (any, error) {
	h := Health{Status: "ok", Version: c.Version, Started: c.started, Links: len(p.Links()), Connections: p.Counters().ConnectionsOpen}
	if c.Healthy != nil {
		if err := c.Healthy(); err != nil {
			h.Status = err.Error()
		}
	}
	return h, nil
}

func (c *Control) settings(*proxy.Proxy, *http.Request) (any, error) {
	if c.Settings == nil {
		return struct{}{}, nil
	}
	return c.Settings(), nil
}
