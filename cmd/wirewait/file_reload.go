package main

import (
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/proxy/config"
)

// reload reads the file again and has the links be what it says, all of them or
// none. What can't be changed in a process that runs is said, and waits for a
// restart.
func (s *service) reload() {
	file := s.options.file
	f, err := config.Load(file.path, os.LookupEnv)
	if err == nil {
		err = s.proxy.Load().Reconfigure(f.ProxyLinks(), f.Rules)
	}
	if err != nil {
		s.log.Error("reload refused, nothing has changed", "file", file.path)
		s.sayProblems(err)
		return
	}
	s.observers.stop()
	s.setStandbys(file.now, f)
	s.observe(f)
	changes := s.sayChanges(file.now, f)
	file.now = f
	s.base.Store(&f.Rules)
	pending := needRestart(file.begun, f)
	for _, what := range pending {
		s.log.Warn("reload: this waits for a restart", "change", what)
	}
	s.log.Info("reloaded", "file", file.path, "links_changed", changes, "waiting_for_restart", len(pending))
}

// sayProblems logs one line each: those of the file, or those of what it asks
// for.
func (s *service) sayProblems(err error) {
	var ps config.Problems
	if errors.As(err, &ps) {
		for _, p := range ps {
			s.log.Error("reload", "problem", p.String())
		}
		return
	}
	for line := range strings.Lines(err.Error()) {
		s.log.Error("reload", "error", strings.TrimSuffix(line, "\n"))
	}
}

// setStandbys says whose acknowledgements writes wait for; where the file no
// longer says it, nobody knows.
func (s *service) setStandbys(then, now *config.File) {
	for server := range then.Standbys {
		if now.Standbys[server] == nil {
			s.tracer.SetRule(server, nil)
		}
	}
	for server, names := range now.Standbys {
		if then.Standbys[server] == nil {
			s.tracer.SetRule(server, names)
		} else { // and what was written before is judged by what was said then
			s.tracer.ChangeRule(server, names, time.Now())
		}
	}
	for server := range then.Sets {
		if now.Sets[server] == nil {
			s.tracer.SetRule(server, nil)
		}
	}
	for server, set := range now.Sets {
		s.tracer.SetRule(server, set.From(server))
	}
}

// sayChanges logs what became of each link, and returns of how many something
// did.
func (s *service) sayChanges(then, now *config.File) (changed int) {
	find := func(f *config.File, name string) *config.Link {
		i := slices.IndexFunc(f.Links, func(l config.Link) bool { return l.Name == name })
		if i < 0 {
			return nil
		}
		return &f.Links[i]
	}
	for _, l := range then.Links {
		if find(now, l.Name) == nil {
			s.log.Info("link removed; its connections go on", "link", l.Name)
			changed++
		}
	}
	for _, l := range now.Links {
		old := find(then, l.Name)
		if old == nil {
			s.log.Info("link added", "link", l.Name, "listen", s.proxy.Load().Link(l.Name).Addr(), "upstream", l.Upstream, "delay", describeRoute(l.LinkConfig))
			changed++
			continue
		}
		keys, delays := otherKeys(old.LinkConfig, l.LinkConfig), s.sayDelays(old.LinkConfig, l.LinkConfig)
		if len(keys) > 0 {
			s.log.Info("link changed, for connections from now on", "link", l.Name, "keys", strings.Join(keys, ", "))
		}
		if len(keys) > 0 || delays {
			changed++
		}
	}
	return changed
}

// sayDelays logs the delays that changed, and reports whether any did.
func (s *service) sayDelays(then, now proxy.LinkConfig) (changed bool) {
	say := func(from string, old, new inject.Settings) {
		if old == new {
			return
		}
		changed = true
		args := []any{"link", now.Name, "from", describeDelay(old), "to", describeDelay(new)}
		if from != "" {
			args = append(args, "source", from)
		}
		s.log.Info("delay changed", args...)
	}
	say("", then.Delay, now.Delay)
	for _, n := range now.Sources {
		for _, o := range then.Sources {
			if o.Name == n.Name {
				say(n.Name, o.Delay, n.Delay)
			}
		}
	}
	return changed
}

// needRestart lists what the file says otherwise than wirewait was started with.
func needRestart(begun, f *config.File) (what []string) {
	if begun.Admin != f.Admin {
		what = append(what, "admin")
	}
	if (begun.Seed == nil) != (f.Seed == nil) || f.Seed != nil && *begun.Seed != *f.Seed {
		what = append(what, "seed")
	}
	return what
}

// otherKeys are the keys of a link, but for its delay, that differ.
func otherKeys(a, b proxy.LinkConfig) (keys []string) {
	for _, k := range []struct {
		key  string
		same bool
	}{
		{"from", a.From == b.From}, {"to", a.To == b.To}, {"listen", a.Listen == b.Listen},
		{"upstream", a.Upstream == b.Upstream}, {"protocol", a.Protocol == b.Protocol}, {"tls", a.TLS == b.TLS},
		{"proxy_protocol", reflect.DeepEqual(a.ProxyProtocol, b.ProxyProtocol)},
		{"sources", reflect.DeepEqual(whoDials(a), whoDials(b))},
	} {
		if !k.same {
			keys = append(keys, k.key)
		}
	}
	return keys
}

// whoDials are a link's sources without what the link does to them.
func whoDials(c proxy.LinkConfig) (sources []proxy.Source) {
	for _, s := range c.Sources {
		sources = append(sources, proxy.Source{Name: s.Name, Addresses: s.Addresses, Names: s.Names})
	}
	return sources
}
