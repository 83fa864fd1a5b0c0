package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/proxy/config"
)

// reload reads the file again and gives the links their delays, on connections
// that exist as well. What else has changed is said, and waits for a restart. A
// file with a problem changes nothing.
func (s *service) reload() {
	path := s.options.file.path
	f, err := config.Load(path, os.LookupEnv)
	if err != nil {
		s.log.Error("reload refused, nothing has changed", "file", path)
		var ps config.Problems
		if !errors.As(err, &ps) {
			s.log.Error("reload", "error", err)
		}
		for _, p := range ps {
			s.log.Error("reload", "problem", p.String())
		}
		return
	}
	changed := s.setDelays(f)
	s.setStandbys(f)
	s.setRules(f)
	pending := s.needRestart(f)
	for _, what := range pending {
		s.log.Warn("reload: this waits for a restart", "change", what)
	}
	s.log.Info("reloaded", "file", path, "delays_changed", changed, "waiting_for_restart", len(pending))
}

// setStandbys says whose acknowledgements commits wait for.
func (s *service) setStandbys(f *config.File) {
	for server, names := range f.Standbys {
		s.tracer.SetRule(server, names)
	}
}

// setRules puts the file's rules in force. Those that haven't changed keep what
// was counted of them.
func (s *service) setRules(f *config.File) {
	if err := s.proxy.Load().SetRules(f.Rules); err != nil {
		s.log.Error("reload: the rules stay as they are", "error", err)
	}
}

// setDelays returns how many links have another delay now.
func (s *service) setDelays(f *config.File) (changed int) {
	for _, l := range f.Links {
		running := s.proxy.Load().Link(l.Name)
		if running == nil || running.Delay() == l.Delay {
			continue
		}
		s.log.Info("delay changed", "link", l.Name, "from", describeDelay(running.Delay()), "to", describeDelay(l.Delay))
		running.SetDelay(l.Delay)
		changed++
	}
	return changed
}

// needRestart lists what f says otherwise than wirewait runs.
func (s *service) needRestart(f *config.File) (what []string) {
	begun := s.options.file.begun
	for _, l := range f.Links {
		i := slices.IndexFunc(begun.Links, func(b config.Link) bool { return b.Name == l.Name })
		if i < 0 {
			what = append(what, fmt.Sprintf("link %s is new", l.Name))
		} else if keys := otherKeys(begun.Links[i].LinkConfig, l.LinkConfig); len(keys) > 0 {
			what = append(what, fmt.Sprintf("link %s has another %s", l.Name, strings.Join(keys, ", ")))
		}
	}
	for _, b := range begun.Links {
		if !slices.ContainsFunc(f.Links, func(l config.Link) bool { return b.Name == l.Name }) {
			what = append(what, fmt.Sprintf("link %s is gone, and still runs", b.Name))
		}
	}
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
	} {
		if !k.same {
			keys = append(keys, k.key)
		}
	}
	return keys
}
