package config

import (
	"errors"
	"slices"
	"strconv"

	"github.com/wirewait/wirewait/inject"
)

var ruleKeys = keySet{what: "a rule", known: []string{"name", "when", "effect", "with", "limit"}}

var whenKeys = keySet{
	what: "when",
	known: []string{"link", "from", "to", "command", "collection", "statement", "database", "user", "application",
		"write_concern", "synchronous_commit", "direction", "monitors"},
}

var concernKeys = keySet{what: "write_concern", known: []string{"w", "j"}}

var withKeys = keySet{
	what: "with",
	known: []string{"delay", "jitter", "ramp", "acknowledgements", "after", "bandwidth", "loss", "size", "variation", "bytes", "code",
		"write_concern_error", "fatal", "message", "labels"},
}

var limitKeys = keySet{what: "limit", known: []string{"probability", "nth", "first", "until"}}

var directionWords = []string{"both", "to_server", "to_client"}

// ParseRules reads a list of rules, or one, as they stand in a file, or as JSON;
// name stands before every problem, all of which are returned as Problems.
// Variables are not replaced.
func ParseRules(name string, text []byte) ([]inject.Rule, error) {
	r := &reader{name: name, lookup: func(string) (string, bool) { return "", false }}
	var rules []inject.Rule
	if root := r.document(text); root != nil {
		if isList(root) {
			rules, _ = r.rules(root)
		} else if rule, ok := r.rule(root); ok {
			rules = append(rules, rule)
		}
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return rules, nil
}

// rules are those without problems, and where they stand.
func (r *reader) rules(n *node) (rules []inject.Rule, at []*node) {
	items, _ := r.items(n, "rules")
	named := map[string]bool{}
	for _, item := range items {
		rule, ok := r.rule(item)
		if !ok {
			continue
		}
		if named[rule.Name] {
			r.problem(item, "two rules are called %s: give each its own name", rule.Name)
		}
		named[rule.Name] = true
		rules, at = append(rules, rule), append(at, item)
	}
	return rules, at
}

// rule is not ok after a problem.
func (r *reader) rule(n *node) (rule inject.Rule, ok bool) {
	before := len(r.problems)
	o, ok := r.object(n, ruleKeys)
	if !ok {
		return rule, false
	}
	if v := o.get("name"); v != nil {
		rule.Name, _ = r.text(v, "name")
		if !linkNameShape.MatchString(rule.Name) {
			r.problem(v, "a rule is called %s: use letters, digits and - _ . :", quote(follow(v)))
		}
	} else if o.lacks("name") {
		r.problem(n, "a rule needs a name, which spans and counters will carry")
	}
	if v := o.get("effect"); v != nil {
		rule.Effect, _ = inject.ParseEffect(r.choice(v, "effect", inject.EffectNames()))
	} else if o.lacks("effect") {
		r.problem(n, "a rule needs an effect: %s", list(inject.EffectNames()))
	}
	if v := o.get("when"); v != nil {
		r.when(v, &rule.When)
	}
	if v := o.get("with"); v != nil {
		r.with(v, &rule.With)
	}
	if v := o.get("limit"); v != nil {
		r.limit(v, &rule.Limit)
	}
	if len(r.problems) > before {
		return rule, false
	}
	if rule.Effect == inject.EffectBandwidth && !given(&o, "with", "bandwidth") {
		r.problem(n, "bandwidth needs one: write with: {bandwidth: 1Mbit/s}, or 0 for a connection on which nothing passes")
		return rule, false
	}
	if err := rule.Check(); err != nil {
		r.complain(n, err)
		return rule, false
	}
	return rule, true
}

// given reports whether an object of the object has a key.
func given(o *object, object, key string) bool {
	n := o.get(object)
	if n == nil {
		return false
	}
	for i, k := range follow(n).Content {
		if i%2 == 0 && k.Value == key {
			return true
		}
	}
	return false
}

// complain reports each of the errors that were joined.
func (r *reader) complain(n *node, err error) {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		r.problem(n, "%v", err)
		return
	}
	for _, e := range joined.Unwrap() {
		r.problem(n, "%v", e)
	}
}

func (r *reader) when(n *node, w *inject.When) {
	o, ok := r.object(n, whenKeys)
	if !ok {
		return
	}
	for key, to := range map[string]*[]string{
		"link": &w.Link, "from": &w.From, "to": &w.To, "command": &w.Command, "collection": &w.Collection,
		"statement": &w.Statement, "database": &w.Database, "user": &w.User, "application": &w.Application,
		"synchronous_commit": &w.SynchronousCommit,
	} {
		if v := o.get(key); v != nil {
			*to = r.values(v, key)
		}
	}
	if v := o.get("write_concern"); v != nil {
		for _, item := range oneOrMore(v) {
			w.WriteConcern = append(w.WriteConcern, r.concern(item))
		}
	}
	if v := o.get("direction"); v != nil {
		w.Direction = inject.Ways(max(slices.Index(directionWords, r.choice(v, "direction", directionWords)), 0))
	}
	if v := o.get("monitors"); v != nil {
		w.Monitors = r.boolean(v, "monitors")
	}
}

// oneOrMore are the items of a list, or the one that stands there without one.
func oneOrMore(n *node) []*node {
	if isList(n) {
		return follow(n).Content
	}
	return []*node{n}
}

// values is one value or a list of them.
func (r *reader) values(n *node, what string) (values []string) {
	items := oneOrMore(n)
	if len(items) == 0 {
		r.problem(n, "%s is an empty list, which nothing matches: leave it out to match everything", what)
	}
	for _, item := range items {
		v, ok := r.text(item, what)
		if ok && v == "" {
			r.problem(item, "%s is empty: leave it out to match everything", what)
		}
		values = append(values, v)
	}
	return values
}

// concern is majority, a number, a tag's name, or {w: ..., j: ...}.
func (r *reader) concern(n *node) (c inject.Concern) {
	if follow(n).Kind != mappingKind {
		c.W, _ = r.text(n, "write_concern")
		return c
	}
	o, ok := r.object(n, concernKeys)
	if !ok {
		return c
	}
	if v := o.get("w"); v != nil {
		c.W, _ = r.text(v, "w")
	}
	if v := o.get("j"); v != nil {
		c.J = strconv.FormatBool(r.boolean(v, "j"))
	}
	return c
}

func (r *reader) with(n *node, w *inject.With) {
	o, ok := r.object(n, withKeys)
	if !ok {
		return
	}
	if v := o.get("delay"); v != nil {
		w.Delay, _ = r.duration(v, "delay")
	}
	if v := o.get("jitter"); v != nil {
		w.Jitter, _ = r.duration(v, "jitter")
	}
	r.lagParameters(&o, w)
	if v := o.get("after"); v != nil {
		w.After, _ = r.duration(v, "after")
	}
	if v := o.get("bandwidth"); v != nil && !isZero(v) {
		w.Bandwidth = r.quantity(v, "bandwidth", bitUnits, "200Mbit/s")
	}
	if v := o.get("loss"); v != nil {
		w.Loss = r.loss(v)
	}
	for key, to := range map[string]*int{"size": &w.Size, "variation": &w.Variation} {
		if v := o.get(key); v != nil && !isZero(v) {
			*to = int(r.quantity(v, key, byteUnits, "64B"))
		}
	}
	if v := o.get("bytes"); v != nil && !isZero(v) {
		w.Bytes = r.quantity(v, "bytes", byteUnits, "64KiB")
	}
	if v := o.get("code"); v != nil {
		w.Code, _ = r.text(v, "code")
	}
	if v := o.get("write_concern_error"); v != nil {
		w.WriteConcernError = r.boolean(v, "write_concern_error")
	}
	if v := o.get("fatal"); v != nil {
		w.Fatal = r.boolean(v, "fatal")
	}
	if v := o.get("message"); v != nil {
		w.Message, _ = r.text(v, "message")
	}
	if v := o.get("labels"); v != nil {
		w.Labels = []string{}
		for _, item := range oneOrMore(v) {
			label, _ := r.text(item, "labels")
			w.Labels = append(w.Labels, label)
		}
	}
}

// isZero: 0 needs no unit.
func isZero(n *node) bool { return follow(n).Value == "0" }

func (r *reader) limit(n *node, l *inject.Limit) {
	o, ok := r.object(n, limitKeys)
	if !ok {
		return
	}
	if v := o.get("probability"); v != nil {
		if l.Probability, ok = r.share(v, "probability", true); ok && l.Probability == 0 {
			r.problem(v, "the probability is 0%%, so that it never fires: leave the rule out")
		}
	}
	for key, to := range map[string]*uint64{"nth": &l.Nth, "first": &l.First} {
		if v := o.get(key); v != nil {
			*to = r.count(v, key)
		}
	}
	if v := o.get("until"); v != nil {
		if l.Until, ok = r.duration(v, "until"); ok && l.Until == 0 {
			r.problem(v, "until is 0, so that it's over at once: write how long the rule is to be in force")
		}
	}
}

func (r *reader) count(n *node, what string) uint64 {
	v, ok := r.text(n, what)
	u, err := strconv.ParseUint(v, 10, 63)
	if ok && (err != nil || u == 0) {
		r.problem(n, "%s is %s: write a whole number from 1", what, quote(follow(n)))
	}
	return u
}

// checkRules holds rules against the links that there are. A rule whose link or
// end is none of theirs would never do anything.
func (r *reader) checkRules(rules []inject.Rule, at []*node, drafts []*draft) {
	var links, froms, tos []string
	for _, d := range drafts {
		links, tos = append(links, d.Name), append(tos, d.To)
		froms = append(froms, d.From)
		for _, s := range d.Sources {
			froms = append(froms, s.Name)
		}
	}
	for i := range rules {
		w := &rules[i].When
		for _, f := range []struct {
			what         string
			given, known []string
		}{{"link", w.Link, links}, {"from", w.From, froms}, {"to", w.To, tos}} {
			for _, v := range f.given {
				if !slices.Contains(f.known, v) {
					r.problem(at[i], "rule %s: no link %s %q%s", rules[i].Name, hasOrIs(f.what), v, guess(v, f.known))
				}
			}
		}
	}
}

func hasOrIs(what string) string {
	if what == "link" {
		return "is called"
	}
	return "leads " + what
}
