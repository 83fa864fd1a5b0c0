package config

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
)

var scenarioKeys = keySet{what: "a scenario", known: []string{"name", "steps", "end"}}

var stepKeys = keySet{
	what:  "a step",
	known: []string{"name", "at", "links", "rules"},
}

// toBase is what stands for a link's own delay in a step.
const toBase = "base"

// ParseScenario reads a scenario, in YAML or JSON, with the keys and units of the
// configuration file. Whether its links are there is for Proxy.StartScenario to
// say. name stands before every problem.
func ParseScenario(name string, text []byte) (s proxy.Scenario, err error) {
	r := &reader{name: name, lookup: noVariables}
	if root := r.body(text); root != nil {
		s = r.scenario(root)
	}
	return s, r.err()
}

// LoadScenario reads a scenario's file and checks it. It returns the text: what
// it means is for the wirewait to say that plays it.
func LoadScenario(path string) (text []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	defer f.Close()
	if text, err = io.ReadAll(io.LimitReader(f, maxFile+1)); err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("scenario %s is larger than 1 MiB: is it the right file?", path)
	}
	_, err = ParseScenario(path, text)
	return text, err
}

func (r *reader) scenario(root *node) (s proxy.Scenario) {
	o, ok := r.object(root, scenarioKeys)
	if !ok {
		return s
	}
	if n := o.get("name"); n != nil {
		s.Name = r.mark(n, "the scenario")
	} else if o.lacks("name") {
		r.problem(root, "a scenario needs a name, which spans and metrics carry")
	}
	if n := o.get("end"); n != nil {
		s.End, _ = r.duration(n, "end")
	} else if o.lacks("end") {
		r.problem(root, "a scenario needs an end: how long after its start everything is as before, such as end: 5m")
	}
	n := o.get("steps")
	if n == nil {
		if o.lacks("steps") {
			r.problem(root, "a scenario needs steps: [{name: slow, at: 10s, links: {NAME: {rtt: 300ms}}}]")
		}
		return s
	}
	items, ok := r.items(n, "steps")
	if ok && len(items) == 0 {
		r.problem(n, "steps is an empty list, so nothing would happen: add one")
	}
	var last time.Duration
	for _, item := range items {
		step := r.step(item)
		if step.At < last {
			r.problem(item, "this step is at %v, before the one above it (%v): write them in their order", step.At, last)
		}
		last = max(last, step.At)
		s.Steps = append(s.Steps, step)
	}
	if v := o.get("end"); v != nil && s.End < last {
		r.problem(v, "end is %v, before the last step (%v): write a later one", s.End, last)
	}
	return s
}

// mark is a name that spans and metrics carry.
func (r *reader) mark(n *node, what string) string {
	v, ok := r.text(n, "name")
	if ok && !linkNameShape.MatchString(v) {
		r.problem(n, "%s is called %s: use letters, digits and - _ . :", what, quote(follow(n)))
		return ""
	}
	return v
}

func (r *reader) step(n *node) (s proxy.Step) {
	o, ok := r.object(n, stepKeys)
	if !ok {
		return s
	}
	if v := o.get("name"); v != nil {
		s.Name = r.mark(v, "a step")
	} else if o.lacks("name") {
		r.problem(n, "a step needs a name, which spans and metrics carry")
	}
	if v := o.get("at"); v != nil {
		s.At, _ = r.duration(v, "at")
	} else if o.lacks("at") {
		r.problem(n, "a step needs at: how long after the start it comes; at: 0 for at once")
	}
	if v := o.get("links"); v != nil {
		r.stepLinks(v, &s)
	}
	if v := o.get("rules"); v != nil {
		rules, _ := r.rules(v)
		s.Rules = append([]inject.Rule{}, rules...) // not nil: an empty list means none
	}
	if o.lacks("links", "rules") {
		r.problem(n, "this step changes nothing: add links or rules")
	}
	return s
}

// stepLinks are changes of delays, or base.
func (r *reader) stepLinks(n *node, s *proxy.Step) {
	o, ok := r.mapping(n, "links")
	if !ok {
		return
	}
	for _, k := range o.keys {
		v := o.get(k.Value)
		if follow(v).Value == toBase {
			s.Base = append(s.Base, k.Value)
			continue
		}
		if s.Links == nil {
			s.Links = map[string]proxy.DelayPatch{}
		}
		s.Links[k.Value] = r.patch(v)
	}
}
