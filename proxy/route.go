package proxy

import (
	"fmt"

	"github.com/wirewait/wirewait/wire"
)

// route is where a link leads at present, and how. A connection keeps the one
// that it began with, whatever a reload brings: only its delay follows.
type route struct {
	config   LinkConfig
	upstream address
	tls      tlsLink
	base     *source // of the connections that nothing tells, or of all
	sources  sources // of which there may be none
}

// newRoute checks what a link is told, and loads its certificates.
func newRoute(c LinkConfig) (*route, error) {
	if c.Name == "" {
		c.Name = c.Listen
	}
	if _, err := NewSession(c.Protocol, wire.Options{}); err != nil {
		return nil, err
	}
	if err := checkDelays(c); err != nil {
		return nil, err
	}
	r := &route{config: c, base: newSource(c.From, c.Delay, c.Pipes), sources: newSources(c.Sources)}
	var err error
	if r.upstream, err = parseAddress(c.Upstream); err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	if r.tls, err = newTLSLink(c.TLS, r.upstream); err != nil {
		return nil, err
	}
	return r, nil
}

// checkDelays of all who dial a link.
func checkDelays(c LinkConfig) error {
	if err := c.Delay.Check(); err != nil {
		return err
	}
	for _, s := range c.Sources {
		if err := s.Delay.Check(); err != nil {
			return fmt.Errorf("from %s: %w", s.Name, err)
		}
	}
	return nil
}

// pairs are the sources that an earlier route has as well: the same one then and
// now.
func (r *route) pairs(old *route, visit func(now, then *source)) {
	visit(r.base, old.base)
	for _, s := range r.sources.all {
		for _, o := range old.sources.all {
			if s.name == o.name {
				visit(s, o)
			}
		}
	}
}

// inherit has connections that began earlier feel the delay that there is now.
func (s *source) inherit(old *source) {
	old.settings.Store(s.settings.Load())
	s.settings = old.settings
}
