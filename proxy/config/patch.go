package config

import (
	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
)

// patchKeys are what can be said of a link while it runs.
var patchKeys = keySet{
	what: "a change of a link",
	known: []string{"rtt", "delay", "jitter", "distribution", "correlation", "loss", "bandwidth", "bandwidth_per_connection",
		"window", "connect"},
}

var patchesKeys = keySet{what: "a change of links", known: []string{"links"}}

// noVariables is for text that others send: the environment isn't theirs.
func noVariables(string) (string, bool) { return "", false }

// ParsePatch reads a change of one link, in JSON or YAML, with the keys and
// units of the file: {"rtt": "80ms", "jitter": "5ms"}. bandwidth and window may
// be "none". name stands before every problem.
func ParsePatch(name string, text []byte) (p proxy.DelayPatch, err error) {
	r := &reader{name: name, lookup: noVariables}
	if root := r.body(text); root != nil {
		p = r.patch(root)
	}
	return p, r.err()
}

// ParsePatches reads changes of many links: {"links": {NAME: CHANGE, ...}}.
func ParsePatches(name string, text []byte) (map[string]proxy.DelayPatch, error) {
	r := &reader{name: name, lookup: noVariables}
	var all map[string]proxy.DelayPatch
	if root := r.body(text); root != nil {
		if o, ok := r.object(root, patchesKeys); ok {
			if n := o.get("links"); n != nil {
				all = r.patches(n)
			} else if o.lacks("links") {
				r.problem(root, `say which: {"links": {"NAME": {"rtt": "80ms"}}}`)
			}
		}
	}
	return all, r.err()
}

// body is the root of what somebody sent.
func (r *reader) body(text []byte) *node {
	if len(text) == 0 {
		r.problems = append(r.problems, Problem{r.name, 0, 0, `it is empty: write an object, such as {"rtt": "80ms"}`})
		return nil
	}
	return r.document(text)
}

func (r *reader) patches(n *node) map[string]proxy.DelayPatch {
	o, ok := r.mapping(n, "links")
	if !ok {
		return nil
	}
	all := make(map[string]proxy.DelayPatch, len(o.keys))
	for _, k := range o.keys {
		all[k.Value] = r.patch(o.get(k.Value))
	}
	return all
}

func (r *reader) patch(n *node) (p proxy.DelayPatch) {
	o, ok := r.object(n, patchKeys)
	if !ok {
		return p
	}
	if len(o.keys) == 0 {
		r.problem(n, "nothing is changed: give at least one of %s", list(patchKeys.known))
		return p
	}
	var own ownDelay
	r.ownDelay(&o, &own)
	p.Base, p.Jitter = own.base, own.jitter
	r.patchModel(&o, &p)
	if v := o.get("connect"); v != nil {
		free := !r.boolean(v, "connect")
		p.FreeConnect = &free
	}
	return p
}

// patchModel reads what model reads, as far as it's there.
func (r *reader) patchModel(o *object, p *proxy.DelayPatch) {
	if v := o.get("distribution"); v != nil {
		d, _ := inject.ParseDistribution(r.choice(v, "distribution", distributionWords))
		p.Distribution = &d
	}
	if v := o.get("correlation"); v != nil {
		c, _ := r.share(v, "correlation", false)
		p.Correlation = &c
	}
	if v := o.get("loss"); v != nil {
		l := r.loss(v)
		p.Loss = &l
	}
	shared, each := o.get("bandwidth"), o.get("bandwidth_per_connection")
	if shared != nil && each != nil {
		r.problem(each, "bandwidth is given already: leave out one of bandwidth, which all connections share, and bandwidth_per_connection")
	}
	if v := shared; v != nil {
		p.Bandwidth, p.PerConnection = r.orNone(v, "bandwidth", bitUnits, "200Mbit/s"), new(bool)
	}
	if v := each; v != nil {
		yes := true
		p.Bandwidth, p.PerConnection = r.orNone(v, "bandwidth_per_connection", bitUnits, "200Mbit/s"), &yes
	}
	if v := o.get("window"); v != nil {
		p.Window = r.orNone(v, "window", byteUnits, "6MiB")
	}
}

// orNone is a quantity, or zero for none.
func (r *reader) orNone(n *node, what string, units []unit, example string) *int64 {
	var q int64
	if follow(n).Value != "none" {
		q = r.quantity(n, what, units, example)
	}
	return &q
}
