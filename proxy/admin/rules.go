package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/proxy/config"
)

// Rules is the answer of all of /v1/rules: the set in force, in its order.
type Rules struct {
	Rules []Rule `json:"rules"`
}

// Rule is one of Rules, and the answer of GET and PATCH /v1/rules/{name}.
type Rule struct {
	Name string `json:"name"`
	// Rule has the keys and units that it has in a file.
	Rule json.RawMessage `json:"rule"`
	// Since is when it was set, and Over says that its time has passed.
	Since time.Time `json:"since"`
	Over  bool      `json:"over"`
	// Matches and Hits are of all links together.
	Matches uint64 `json:"matches"`
	Hits    uint64 `json:"hits"`
	// Links are those that it can match on.
	Links []RuleLink `json:"links"`
	// Connections is how many it may apply to now: GET /v1/connections?rule=NAME
	// has them.
	Connections int `json:"connections"`
}

// RuleLink is what a rule has done on one link.
type RuleLink struct {
	Link string `json:"link"`
	// Matches is what it matched and could apply to, Hits those it fired for,
	// NotApplicable what it could not apply to, by reason.
	Matches       uint64            `json:"matches"`
	Hits          uint64            `json:"hits"`
	NotApplicable map[string]uint64 `json:"not_applicable"`
}

func (c *Control) rules(p *proxy.Proxy, _ *http.Request) (any, error) { return allRules(p) }

func allRules(p *proxy.Proxy) (Rules, error) {
	list := Rules{Rules: []Rule{}}
	conns := p.Connections()
	for _, s := range reachOf(p.Rules()) {
		r, err := describeRule(&s, conns)
		if err != nil {
			return list, err
		}
		list.Rules = append(list.Rules, r)
	}
	return list, nil
}

func describeRule(s *reach, conns []proxy.Connection) (Rule, error) {
	text, err := json.Marshal(s.Rule)
	if err != nil {
		return Rule{}, fmt.Errorf("rule %s can't be written down: %w", s.Name, err)
	}
	r := Rule{Name: s.Name, Rule: text, Since: s.Since, Over: s.Over, Links: []RuleLink{}}
	for _, l := range s.Links {
		not := l.NotApplicable
		if not == nil {
			not = map[string]uint64{}
		}
		r.Matches, r.Hits = r.Matches+l.Matches, r.Hits+l.Hits
		r.Links = append(r.Links, RuleLink{l.Link, l.Matches, l.Hits, not})
	}
	for i := range conns {
		if s.mayApply(&conns[i]) {
			r.Connections++
		}
	}
	return r, nil
}

// reach is a rule with where it may apply.
type reach struct {
	*proxy.RuleStatus
	links map[string]bool
}

func reachOf(rules []proxy.RuleStatus) []reach {
	list := make([]reach, len(rules))
	for i := range rules {
		list[i] = reach{&rules[i], make(map[string]bool, len(rules[i].Links))}
		for _, l := range rules[i].Links {
			list[i].links[l.Link] = true
		}
	}
	return list
}

// mayApply reports whether the rule can match on a connection, by what is known
// of it: its link, whose it is, and what it said of itself. What its messages
// will say is not known.
func (r *reach) mayApply(c *proxy.Connection) bool {
	fits := func(wanted []string, is string) bool { return len(wanted) == 0 || slices.Contains(wanted, is) }
	w := &r.When
	if r.Over || !r.links[c.Link] || c.From != "" && !fits(w.From, c.From) {
		return false
	}
	if r.Effect == inject.EffectLag && !c.Replication.Log && !(c.Replication.Progress && r.With.Acknowledgements) {
		return false // it's no member's stream, or not yet
	}
	return c.Peer == nil || fits(w.User, c.Peer.User) && fits(w.Application, c.Peer.Application)
}

func (c *Control) rule(p *proxy.Proxy, r *http.Request) (any, error) {
	return oneRule(p, r.PathValue("name"))
}

func oneRule(p *proxy.Proxy, name string) (any, error) {
	rules := reachOf(p.Rules())
	for i := range rules {
		if rules[i].Name == name {
			return describeRule(&rules[i], p.Connections())
		}
	}
	return nil, noRule(name)
}

func noRule(name string) error {
	return refuse(http.StatusNotFound, fmt.Sprintf("there is no rule %q: GET /v1/rules shows those there are", name))
}

// sentRules are those of a body, which may be one.
func sentRules(r *http.Request) ([]inject.Rule, error) {
	text, err := body(r)
	if err != nil {
		return nil, err
	}
	if len(text) == 0 {
		return nil, errors.New("body: it is empty: write a list of rules, or [] for none")
	}
	return config.ParseRules("body", text)
}

func (c *Control) putRules(p *proxy.Proxy, r *http.Request) (any, error) {
	rules, err := sentRules(r)
	if err != nil {
		return nil, err
	}
	if err := p.SetRules(rules); err != nil {
		return nil, err
	}
	return allRules(p)
}

func (c *Control) postRules(p *proxy.Proxy, r *http.Request) (any, error) {
	rules, err := sentRules(r)
	if err != nil {
		return nil, err
	}
	if len(rules) == 0 {
		return nil, errors.New("body: it has no rule: write one, or a list")
	}
	var first bool
	switch where := r.URL.Query().Get("at"); where {
	case "", "end":
	case "start":
		first = true
	default:
		return nil, refuse(http.StatusBadRequest, fmt.Sprintf("at=%q: use end (the default), or start so that it wins over those there are", where))
	}
	err = p.UpdateRules(func(now []inject.Rule) ([]inject.Rule, error) {
		for _, add := range rules {
			if indexOf(now, add.Name) >= 0 {
				return nil, refuse(http.StatusConflict, fmt.Sprintf("there is a rule %s already: change it with PATCH /v1/rules/%s, or give this one another name", add.Name, add.Name))
			}
		}
		if first {
			return slices.Concat(rules, now), nil
		}
		return slices.Concat(now, rules), nil
	})
	if err != nil {
		return nil, err
	}
	return allRules(p)
}

// patchRule merges what was sent into the rule, as RFC 7386 has it: null takes a
// key away.
func (c *Control) patchRule(p *proxy.Proxy, r *http.Request) (any, error) {
	text, err := body(r)
	if err != nil {
		return nil, err
	}
	var change map[string]any
	if err := json.Unmarshal(text, &change); err != nil {
		return nil, fmt.Errorf("body: write what changes as a JSON object, such as {\"limit\": {\"probability\": \"1%%\"}}: %w", err)
	}
	name := r.PathValue("name")
	changed := name
	err = p.UpdateRules(func(now []inject.Rule) ([]inject.Rule, error) {
		i := indexOf(now, name)
		if i < 0 {
			return nil, noRule(name)
		}
		rule, err := mergeRule(now[i], change)
		if err != nil {
			return nil, err
		}
		changed = rule.Name
		next := slices.Clone(now)
		next[i] = rule
		return next, nil
	})
	if err != nil {
		return nil, err
	}
	return oneRule(p, changed)
}

func mergeRule(r inject.Rule, change map[string]any) (inject.Rule, error) {
	var keys map[string]any
	text, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(text, &keys)
	}
	if err == nil {
		text, err = json.Marshal(merge(keys, change))
	}
	if err != nil {
		return r, fmt.Errorf("rule %s can't be written down: %w", r.Name, err)
	}
	rules, err := config.ParseRules("the changed rule", text)
	if err != nil {
		return r, err
	}
	return rules[0], nil
}

// merge is RFC 7386's MergePatch, of objects.
func merge(into, change map[string]any) map[string]any {
	if into == nil {
		into = map[string]any{}
	}
	for k, v := range change {
		switch v := v.(type) {
		case nil:
			delete(into, k)
		case map[string]any:
			old, _ := into[k].(map[string]any)
			into[k] = merge(old, v)
		default:
			into[k] = v
		}
	}
	return into
}

func (c *Control) deleteRule(p *proxy.Proxy, r *http.Request) (any, error) {
	name := r.PathValue("name")
	err := p.UpdateRules(func(now []inject.Rule) ([]inject.Rule, error) {
		i := indexOf(now, name)
		if i < 0 {
			return nil, noRule(name)
		}
		return slices.Delete(slices.Clone(now), i, i+1), nil
	})
	if err != nil {
		return nil, err
	}
	return allRules(p)
}

func indexOf(rules []inject.Rule, name string) int {
	return slices.IndexFunc(rules, func(r inject.Rule) bool { return r.Name == name })
}
