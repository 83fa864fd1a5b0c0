package config

import (
	"slices"
	"strings"

	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// standbyNames reads synchronous_standby_names as PostgreSQL does. A name that no
// member has is a problem: whoever waits for it would wait for ever, or it is
// misspelt here and nothing would be attributed.
func (r *reader) standbyNames(n *node, c *cluster) {
	v, ok := r.text(n, "synchronous_standby_names")
	if !ok {
		return
	}
	if c.Protocol == wire.MongoDB {
		r.problem(n, "cluster %s is MongoDB's, which has no synchronous_standby_names: leave it out", c.Name)
		return
	}
	names, err := trace.ParseStandbyNames(v)
	if err != nil {
		r.problem(n, "synchronous_standby_names is %s, which PostgreSQL doesn't take: write it as there, such as ANY 1 (s1, s2)", quote(follow(n)))
		return
	}
	var known []string
	for _, m := range c.members {
		known = append(known, m.ApplicationName)
	}
	for _, name := range names.Names {
		if name != "*" && !slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) }) {
			r.problem(n, "synchronous_standby_names is %s, and a name in it is no member's: give the member its application_name (the members have %s)",
				quote(follow(n)), list(known))
			return
		}
	}
	c.Standbys = names
}

// standbyRules are what each member's writes wait for, were it the primary.
func (t *topology) standbyRules() map[string]*trace.StandbyNames {
	rules := map[string]*trace.StandbyNames{}
	for _, c := range t.clusters {
		for _, m := range c.members {
			if c.Standbys != nil {
				rules[m.Name] = c.Standbys
			}
		}
	}
	return rules
}
