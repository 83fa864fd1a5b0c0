// Package admin is the small HTTP server beside the links: what a person, a
// scraper or a test may ask of a running wirewait, and change. It knows nothing
// of OpenTelemetry and is handed the handler of its metrics.
//
//	GET /          a page for people, which shows what /v1 says
//	GET /metrics   the handler that it was given
//	GET /healthz   200 "ok", or 503 with the reason
//	/proxies, ...  Toxiproxy's API: package toxiproxy
//	/v1/...        links, rules, connections, waits, scenario, config, health:
//	               JSON, see docs/openapi.yaml
//
// Nothing waits for the data path: every request is answered while every peer is
// stuck, every upstream hangs and every line is full.
//
// A page in somebody's browser can reach a loopback port too, so requests are
// answered only if they were meant for it (see guard). Beyond loopback /v1 wants
// a token, and Start refuses to go without one.
package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/wirewait/wirewait/proxy/toxiproxy"
)

// Config is what a Server is started with.
type Config struct {
	// Listen is "host:port"; port 0 lets the system choose.
	Listen string
	// Metrics answers /metrics; nil: there are none (404).
	Metrics http.Handler
	// Healthy is nil when all is well, else an error whose text may be shown
	// to anybody; a nil function: always well. It must not block.
	Healthy func() error
	// Control is what /v1 shows and changes; nil: there is no /v1.
	Control *Control
	// Token is what /v1 wants to be shown; empty: nothing, which is allowed on
	// loopback only.
	Token string
	// Toxiproxy answers Toxiproxy's routes; nil: there are none.
	Toxiproxy *toxiproxy.API
	// OpenToxiproxy: those want no token and are served under any name, wherever
	// Listen is. Without a Token the rest is then for this machine only.
	OpenToxiproxy bool
	// Log gets what goes wrong while serving; nil: nobody does.
	Log *slog.Logger
}

// Server is a running admin server. Its methods are safe for concurrent use.
type Server struct {
	listener net.Listener
	http     *http.Server
	log      *slog.Logger
}

// Start listens and serves until Shutdown. The error of a port that is taken
// wraps the system's.
func Start(c Config) (*Server, error) {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return nil, fmt.Errorf("admin address %q: write host:port, such as 127.0.0.1:8474", c.Listen)
	}
	if c.Control != nil && !c.OpenToxiproxy {
		if err := checkToken(host, c.Token); err != nil {
			return nil, fmt.Errorf("admin address %q: %w", c.Listen, err)
		}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	ln, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}
	s := &Server{listener: ln, log: c.Log}
	s.http = &http.Server{
		Handler:           c.handler(host),
		ErrorLog:          slog.NewLogLogger(c.Log.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	go s.serve()
	return s, nil
}

func (s *Server) serve() {
	if err := s.http.Serve(s.listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		s.log.Error("the admin server ended", "error", err)
	}
}

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Shutdown stops listening and lets requests end until ctx does, then cuts
// them off.
func (s *Server) Shutdown(ctx context.Context) error {
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("admin requests were cut: %w", err), s.http.Close())
	}
	return nil
}

func routes(c Config) http.Handler {
	mux := http.NewServeMux()
	if c.Metrics != nil {
		mux.Handle("GET /metrics", c.Metrics)
	}
	if c.Control != nil {
		c.Control.routes(mux, c.Token)
		pageRoutes(mux)
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		if c.Healthy != nil {
			if err := c.Healthy(); err != nil {
				w.WriteHeader(http.StatusServiceUnavailable)
				io.WriteString(w, err.Error()+"\n")
				return
			}
		}
		io.WriteString(w, "ok\n")
	})
	return mux
}
