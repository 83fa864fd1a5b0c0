package toxiproxy

import (
	"maps"
	"slices"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
)

// settle forgets toxics whose time is over, or whose proxy is gone. Called with mu
// held, at the beginning of everything.
func (a *API) settle(p *proxy.Proxy) {
	now, some := a.now(), false
	for name, c := range a.toxics {
		if p.Link(name) == nil {
			delete(a.toxics, name)
			some = true
			continue
		}
		for stream := range c {
			c[stream] = slices.DeleteFunc(c[stream], func(t *toxic) bool {
				over := !t.gone.IsZero() && !now.Before(t.gone)
				some = some || over
				return over
			})
		}
	}
	if some {
		_ = a.apply(p) // they were in force as they are
	}
}

// apply puts all toxics in force.
func (a *API) apply(p *proxy.Proxy) error {
	var rules []inject.Rule
	for _, name := range slices.Sorted(maps.Keys(a.toxics)) {
		for _, t := range a.toxics[name].all() {
			if t.rule != nil {
				rules = append(rules, *t.rule)
			}
		}
	}
	return p.SetToxics(rules)
}

// chainOf is a proxy's, which there is.
func (a *API) chainOf(name string) *chain {
	if a.toxics[name] == nil {
		a.toxics[name] = &chain{}
	}
	return a.toxics[name]
}

// change puts list in the place of a stream's toxics, or says why it can't.
func (a *API) change(p *proxy.Proxy, c *chain, stream int, list []*toxic) error {
	was := c[stream]
	c[stream] = list
	if err := a.apply(p); err != nil {
		c[stream] = was
		return bad("%v", err)
	}
	return nil
}

// onProxy has f answer about a proxy that there is. Nothing is written meanwhile:
// whoever asked may be slow to read.
func (a *API) onProxy(c *call, f func(l *proxy.Link) (any, error)) (any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settle(c.proxy)
	l := c.proxy.Link(c.name)
	if l == nil {
		return nil, errProxyNotFound
	}
	return f(l)
}

// onToxic is onProxy for a toxic that there is.
func (a *API) onToxic(c *call, f func(chain *chain, t *toxic, stream, i int) (any, error)) (any, error) {
	return a.onProxy(c, func(*proxy.Link) (any, error) {
		if chain := a.toxics[c.name]; chain != nil {
			if t, stream, i := chain.find(c.toxic); t != nil {
				return f(chain, t, stream, i)
			}
		}
		return nil, errToxicNotFound
	})
}

func (a *API) listToxics(c *call) (any, error) {
	return a.onProxy(c, func(*proxy.Link) (any, error) { return a.toxics[c.name].all(), nil })
}

func (a *API) showToxic(c *call) (any, error) {
	return a.onToxic(c, func(_ *chain, t *toxic, _, _ int) (any, error) { return t, nil })
}

func (a *API) createToxic(c *call) (any, error) {
	text, err := c.body()
	return a.onProxy(c, func(*proxy.Link) (any, error) {
		if err != nil {
			return nil, err
		}
		t, err := readHead(text)
		if err != nil {
			return nil, err
		}
		chain := a.chainOf(c.name)
		if old, _, _ := chain.find(t.name); old != nil {
			return nil, errToxicExists
		}
		if err := t.finish(c.name, text, a.now()); err != nil {
			return nil, err
		}
		stream, _ := streamOf(t.stream)
		if err := a.change(c.proxy, chain, stream, append(slices.Clone(chain[stream]), t)); err != nil {
			return nil, err
		}
		a.log.Info("toxic added", "proxy", c.name, "toxic", t.name, "type", t.kind, "stream", t.stream)
		return t, nil
	})
}

func (a *API) updateToxic(c *call) (any, error) {
	text, err := c.body()
	return a.onToxic(c, func(chain *chain, t *toxic, stream, i int) (any, error) {
		if err != nil {
			return nil, err
		}
		next, err := t.changed(c.name, text, a.now())
		if err != nil {
			return nil, err
		}
		list := slices.Clone(chain[stream])
		list[i] = next
		if err := a.change(c.proxy, chain, stream, list); err != nil {
			return nil, err
		}
		a.log.Info("toxic changed", "proxy", c.name, "toxic", t.name)
		return next, nil
	})
}

func (a *API) deleteToxic(c *call) (any, error) {
	return a.onToxic(c, func(chain *chain, t *toxic, stream, i int) (any, error) {
		if err := a.change(c.proxy, chain, stream, slices.Delete(slices.Clone(chain[stream]), i, i+1)); err != nil {
			return nil, err
		}
		a.log.Info("toxic removed", "proxy", c.name, "toxic", t.name)
		return nothing{}, nil
	})
}
