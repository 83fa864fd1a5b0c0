package toxiproxy

import (
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
)

// Proxy is what is sent, and shown, of a proxy. The name is Toxiproxy's, which
// stands in the decoder's complaints.
type Proxy struct {
	Name     string `json:"name"`
	Listen   string `json:"listen"`
	Upstream string `json:"upstream"`
	Enabled  bool   `json:"enabled"`
}

// shown is a proxy with its toxics.
type shown struct {
	Proxy
	Toxics []*toxic `json:"toxics"`
}

func describe(l *proxy.Link) Proxy {
	listen := l.Addr().String()
	if l.Addr().Network() == "unix" {
		listen = "unix:" + listen
	}
	return Proxy{Name: l.Name(), Listen: listen, Upstream: l.Upstream(), Enabled: !l.Stopped()}
}

func (a *API) show(l *proxy.Link) shown { return shown{describe(l), a.toxics[l.Name()].all()} }

// differs reports whether a proxy is to listen or to lead elsewhere. Addresses are
// compared as they resolve.
func differs(l *proxy.Link, listen, upstream string) (bool, error) {
	is := describe(l)
	at, err := resolve(listen)
	if err != nil {
		return false, err
	}
	return is.Listen != at || is.Upstream != upstream, nil
}

// resolve is an address as it's shown of a proxy that listens there. It may take as
// long as a name's lookup does.
func resolve(listen string) (string, error) {
	if strings.HasPrefix(listen, "unix:") {
		return listen, nil
	}
	at, err := net.ResolveTCPAddr("tcp", listen)
	if err != nil {
		return "", err
	}
	return at.String(), nil
}

func (a *API) listProxies(c *call) (any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settle(c.proxy)
	all := map[string]shown{}
	for _, l := range c.proxy.Links() {
		all[l.Name()] = a.show(l)
	}
	return all, nil
}

func (a *API) showProxy(c *call) (any, error) {
	return a.onProxy(c, func(l *proxy.Link) (any, error) { return a.show(l), nil })
}

// showNow is show, with mu not held.
func (a *API) showNow(l *proxy.Link) shown {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.show(l)
}

// wanted is a proxy that is asked for.
type wanted struct {
	Proxy
	toxics []*toxic
}

// link is what a proxy's link is to be. A toxic delays all the same whoever dials:
// connecting costs nothing.
func (w *wanted) link(listen string) proxy.LinkConfig {
	return proxy.LinkConfig{Name: w.Name, Listen: listen, Upstream: w.Upstream, Delay: inject.Settings{FreeConnect: true}}
}

// make makes a proxy of a name that is free, with its toxics in force before it
// accepts anybody. mu is not held meanwhile: a name's lookup may take its time.
func (a *API) make(p *proxy.Proxy, w *wanted) (*proxy.Link, error) {
	l, err := p.AddLink(w.link(w.Listen), true)
	switch {
	case errors.Is(err, proxy.ErrLinkExists):
		return nil, errProxyExists
	case err != nil:
		return nil, bad("%v", err)
	}
	a.mu.Lock()
	delete(a.toxics, w.Name)
	for _, t := range w.toxics {
		stream, _ := streamOf(t.stream)
		chain := a.chainOf(w.Name)
		chain[stream] = append(chain[stream], t)
	}
	err = a.apply(p)
	a.mu.Unlock()
	if err == nil && w.Enabled {
		err = l.Start()
	}
	if err != nil {
		a.remove(p, w.Name)
		return nil, err
	}
	a.log.Info("proxy added", "proxy", w.Name, "listen", l.Addr().String(), "upstream", w.Upstream, "enabled", w.Enabled)
	return l, nil
}

// remove takes a proxy away, with its toxics.
func (a *API) remove(p *proxy.Proxy, name string) bool {
	was := p.RemoveLink(name)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settle(p)
	return was
}

func (a *API) createProxy(c *call) (any, error) {
	w := wanted{Proxy: Proxy{Enabled: true}}
	text, err := c.body()
	if err == nil {
		err = decode(text, &w.Proxy)
	}
	switch {
	case err != nil:
	case w.Name == "":
		err = missing("name")
	case w.Upstream == "":
		err = missing("upstream")
	default:
		w.toxics, err = toxicsOf(w.Name, text, a.now())
	}
	if err != nil {
		return nil, err
	}
	l, err := a.make(c.proxy, &w)
	if err != nil {
		return nil, err
	}
	return created{a.showNow(l)}, nil
}

func (a *API) updateProxy(c *call) (any, error) {
	l := c.proxy.Link(c.name)
	if l == nil {
		return nil, errProxyNotFound
	}
	text, err := c.body()
	in := describe(l)
	if err == nil {
		err = decode(text, &in)
	}
	if err == nil {
		err = a.update(l, in)
	}
	if err != nil {
		return nil, err
	}
	return a.showNow(l), nil
}

// update has a link be as a proxy is to be. If it can't listen it's left stopped,
// with the new address.
func (a *API) update(l *proxy.Link, in Proxy) error {
	other, err := differs(l, in.Listen, in.Upstream)
	if err != nil {
		return err
	}
	if other {
		if err := l.Redirect(in.Listen, in.Upstream); err != nil {
			return bad("%v", err)
		}
	}
	switch {
	case in.Enabled:
		err = l.Start()
	default:
		l.Stop()
	}
	a.log.Info("proxy changed", "proxy", l.Name(), "listen", l.Addr().String(), "upstream", in.Upstream, "enabled", !l.Stopped())
	return err
}

func (a *API) deleteProxy(c *call) (any, error) {
	if !a.remove(c.proxy, c.name) {
		return nil, errProxyNotFound
	}
	a.log.Info("proxy removed", "proxy", c.name)
	return nothing{}, nil
}

// reset takes all toxics away, starts all proxies, and has the configuration's
// rules be as there. Proxies themselves stay, whoever made them.
func (a *API) reset(c *call) (any, error) {
	a.mu.Lock()
	clear(a.toxics)
	err := a.apply(c.proxy)
	a.mu.Unlock()
	if err == nil && a.config.Rules != nil {
		err = c.proxy.UpdateRules(a.restored)
	}
	for _, l := range c.proxy.Links() {
		if err == nil {
			if err = l.Start(); errors.Is(err, proxy.ErrNoLink) {
				err = nil // gone meanwhile
			}
		}
	}
	if err != nil {
		return nil, err
	}
	a.log.Info("reset")
	return nothing{}, nil
}

// restored are the rules there are, with those of the configuration as there.
func (a *API) restored(now []inject.Rule) ([]inject.Rule, error) {
	base := a.config.Rules()
	next := slices.Clone(base)
	for _, r := range now {
		if !slices.ContainsFunc(base, func(b inject.Rule) bool { return b.Name == r.Name }) {
			next = append(next, r)
		}
	}
	return next, nil
}
