package toxiproxy

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/wirewait/wirewait/proxy"
)

// sentToxics are those that stand with a proxy that is to be made.
type sentToxics struct {
	Toxics []json.RawMessage `json:"toxics"`
}

// read makes toxics of them.
func (s *sentToxics) read(proxy string, now time.Time) (list []*toxic, err error) {
	var c chain
	for i, text := range s.Toxics {
		t, err := readToxic(proxy, text, now)
		if err == nil {
			if old, _, _ := c.find(t.name); old != nil {
				err = errToxicExists
			}
		}
		if err != nil {
			e := *asAPIError(err)
			e.Message = fmt.Sprintf("proxy %s, toxic %d: %s", proxy, i+1, e.Message)
			return nil, &e
		}
		stream, _ := streamOf(t.stream)
		c[stream] = append(c[stream], t)
		list = append(list, t)
	}
	return list, nil
}

func toxicsOf(proxy string, text []byte, now time.Time) ([]*toxic, error) {
	var s sentToxics
	if err := decode(text, &s); err != nil {
		return nil, err
	}
	return s.read(proxy, now)
}

// readProxies reads a list of proxies, whole or not at all.
func readProxies(text []byte, now time.Time) ([]wanted, error) {
	input := []struct {
		Proxy
		Enabled *bool `json:"enabled"` // may be left out
	}{}
	if err := decode(text, &input); err != nil {
		return nil, err
	}
	for i := range input {
		switch at := fmt.Sprintf(" at proxy %d", i+1); {
		case input[i].Name == "":
			return nil, missing("name" + at)
		case input[i].Upstream == "":
			return nil, missing("upstream" + at)
		}
	}
	var more []sentToxics
	if err := decode(text, &more); err != nil {
		return nil, err
	}
	list := make([]wanted, len(input))
	for i, in := range input {
		list[i].Proxy = in.Proxy
		list[i].Enabled = in.Enabled == nil || *in.Enabled
		var err error
		if list[i].toxics, err = more[i].read(in.Name, now); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Populate makes the proxies of a list, as POST /populate does: one that is there
// already stays as it is, with its toxics, if it listens and leads where it should,
// or if the configuration made it. Toxics that stand with a proxy are made with it.
// It stops at the first that can't be had, and returns those that could.
func (a *API) Populate(p *proxy.Proxy, text []byte) ([]*proxy.Link, error) {
	list, err := readProxies(text, a.now())
	if err != nil {
		return nil, err
	}
	var done []*proxy.Link
	for i := range list {
		l, err := a.makeOrKeep(p, &list[i])
		if err != nil {
			return done, err
		}
		done = append(done, l)
	}
	return done, nil
}

func (a *API) makeOrKeep(p *proxy.Proxy, w *wanted) (*proxy.Link, error) {
	l := p.Link(w.Name)
	if l == nil {
		return a.make(p, w)
	}
	if !l.Added() {
		return l, nil
	}
	if other, err := differs(l, w.Listen, w.Upstream); err != nil || !other {
		return l, err
	}
	// The one that was there is stopped before the new one listens, and is back if
	// that can't.
	was := describe(l)
	a.remove(p, w.Name)
	made, err := a.make(p, w)
	if err != nil {
		old := wanted{Proxy: was}
		old.Enabled = false
		if _, again := a.make(p, &old); again != nil {
			a.log.Warn("a proxy is gone", "proxy", was.Name, "error", again)
		}
	}
	return made, err
}

func (a *API) populate(c *call) (any, error) {
	text, err := c.body()
	var links []*proxy.Link
	if err == nil {
		links, err = a.Populate(c.proxy, text)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	answer := struct {
		*apiError
		Proxies []shown `json:"proxies"` // null if there are none
	}{}
	for _, l := range links {
		answer.Proxies = append(answer.Proxies, a.show(l))
	}
	if err != nil {
		answer.apiError = asAPIError(err)
		return failed{answer.Status, answer}, nil
	}
	return created{answer}, nil
}
