package proxy

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// RuleStatus is a rule and what it has done so far.
type RuleStatus struct {
	inject.Rule
	// Since is when it was set.
	Since time.Time
	// Over says that its time (Limit.Until) has passed.
	Over bool
	// Links are those that it can match on, in the order of Proxy.Links.
	Links []LinkRule
}

// LinkRule is what a rule has done on one link.
type LinkRule struct {
	Link string
	// Matches counts what it matched and could apply to, Hits those of them for
	// which it fired, NotApplicable the matches that it could not apply to, by
	// reason.
	Matches, Hits uint64
	NotApplicable map[string]uint64
}

// book holds the rules and what is counted of them.
type book struct {
	mu    sync.Mutex
	rules []inject.Rule
	since map[string]wire.Stamp // by the rule's name

	toxics      []inject.Rule
	toxicsSince map[string]wire.Stamp

	counts map[countKey]*ruleCount
	warned map[Warning]bool // of what is in force
	found  map[string]WALTimeouts
}

type countKey struct{ link, rule string }

// ruleCount is inject.Hits.
type ruleCount struct {
	matches, hits atomic.Uint64
	not           [wire.NumReasons]atomic.Uint64
}

func (n *ruleCount) Match() uint64               { return n.matches.Add(1) }
func (n *ruleCount) Hit()                        { n.hits.Add(1) }
func (n *ruleCount) NotApplicable(r wire.Reason) { n.not[min(r, wire.NumReasons-1)].Add(1) }

// SetRules puts a set of rules in the place of the one there is: all of it, or
// nothing, and then the error says everything that is wrong. It applies from the
// next message on, on connections that exist as well, and waits for no peer. A
// rule that is the same as before keeps what was counted of it, and its time.
func (p *Proxy) SetRules(rules []inject.Rule) error {
	return p.UpdateRules(func([]inject.Rule) ([]inject.Rule, error) { return rules, nil })
}

// UpdateRules is SetRules of what change makes of the present set, which it must
// not modify. Calls take turns. The error of change is returned as it is.
func (p *Proxy) UpdateRules(change func([]inject.Rule) ([]inject.Rule, error)) error {
	p.book.mu.Lock()
	defer p.book.mu.Unlock()
	rules, err := change(p.book.rules)
	if err != nil {
		return err
	}
	if err := inject.CheckRules(rules); err != nil {
		return err
	}
	// A link may go while rules name it, and come back.
	there := func(link string) bool {
		names := func(r inject.Rule) bool { return slices.Contains(r.When.Link, link) }
		return p.Link(link) != nil || slices.ContainsFunc(p.book.rules, names)
	}
	if err := errors.Join(checkPlaces(rules, there)...); err != nil {
		return err
	}
	p.book.turn(slices.Clone(rules), p.clock.now())
	p.applyRules()
	return nil
}

// checkPlaces reports rules for links that there aren't.
func checkPlaces(rules []inject.Rule, there func(link string) bool) (errs []error) {
	for i := range rules {
		for _, name := range rules[i].When.Link {
			if !there(name) {
				errs = append(errs, fmt.Errorf("rule %s: there is no link %q", rules[i].Name, name))
			}
		}
	}
	return errs
}

// turn takes a new set, and forgets what was counted of rules that are no more,
// or others now.
func (b *book) turn(rules []inject.Rule, now wire.Stamp) {
	b.since = b.turnOver(b.rules, rules, b.since, now)
	b.rules = rules
}

// turnOver is turn for one of the sets there are: it returns since when its rules
// are in force.
func (b *book) turnOver(was, rules []inject.Rule, were map[string]wire.Stamp, now wire.Stamp) map[string]wire.Stamp {
	old := map[string]*inject.Rule{}
	for i := range was {
		old[was[i].Name] = &was[i]
	}
	since := map[string]wire.Stamp{}
	for i := range rules {
		r := &rules[i]
		since[r.Name] = now
		if o := old[r.Name]; o != nil && reflect.DeepEqual(*o, *r) {
			since[r.Name] = were[r.Name]
			delete(old, r.Name)
		}
	}
	maps.DeleteFunc(b.counts, func(k countKey, _ *ruleCount) bool { return old[k.rule] != nil })
	return since
}

// applyRules compiles the rules for every link and shows them to every
// connection. Called with the book's lock held.
func (p *Proxy) applyRules() {
	for _, l := range p.Links() {
		l.rules.Store(p.book.compile(l, p.config.Seed))
	}
	for _, c := range p.each() {
		c.showRules()
	}
	p.warn()
}

func (b *book) compile(l *Link, seed uint64) *inject.Rules {
	return inject.Compile(slices.Concat(b.toxics, b.rules), inject.Place{
		Seed: seed, Link: l.name, To: l.Config().To,
		Standing: func(r *inject.Rule) (inject.Hits, wire.Stamp) { return b.count(l.name, r.Name), b.standing(r.Name) },
	})
}

func (b *book) count(link, rule string) *ruleCount {
	k := countKey{link, rule}
	n := b.counts[k]
	if n == nil {
		if b.counts == nil {
			b.counts = map[countKey]*ruleCount{}
		}
		n = new(ruleCount)
		b.counts[k] = n
	}
	return n
}

// showRules has a connection follow the rules that its link has now.
func (c *conn) showRules() {
	c.mu.Lock()
	d := c.driver
	if c.pump != nil {
		c.pump.SetRules(c.link.rules.Load(), c.link.proxy.clock.now())
	}
	c.mu.Unlock()
	if d != nil {
		d.ruled()
	}
}

// Rules are the rules in force, in their order, with what they have done.
func (p *Proxy) Rules() []RuleStatus {
	p.book.mu.Lock()
	defer p.book.mu.Unlock()
	return p.statuses(p.book.rules, p.book.since)
}

func (p *Proxy) statuses(rules []inject.Rule, sinces map[string]wire.Stamp) []RuleStatus {
	now := p.clock.now()
	list := make([]RuleStatus, len(rules))
	for i, r := range rules {
		since := sinces[r.Name]
		list[i] = RuleStatus{
			Rule: r, Since: p.clock.start.Add(time.Duration(since)),
			Over: r.Limit.Until > 0 && now >= since.Add(r.Limit.Until),
		}
		for _, l := range p.Links() {
			if n := p.book.counts[countKey{l.name, r.Name}]; n != nil {
				list[i].Links = append(list[i].Links, n.status(l.name))
			}
		}
	}
	return list
}

// ruleCounters is what metrics say of the rules.
func (p *Proxy) ruleCounters() (all []trace.RuleCounters) {
	for _, r := range append(p.Rules(), p.Toxics()...) {
		for _, l := range r.Links {
			all = append(all, trace.RuleCounters{
				Rule: r.Name, Effect: r.Effect.String(), Link: l.Link,
				Matches: l.Matches, Hits: l.Hits, NotApplicable: l.NotApplicable,
			})
		}
	}
	return all
}

func (n *ruleCount) status(link string) LinkRule {
	s := LinkRule{Link: link, Matches: n.matches.Load(), Hits: n.hits.Load()}
	for why := range n.not {
		if k := n.not[why].Load(); k > 0 {
			if s.NotApplicable == nil {
				s.NotApplicable = map[string]uint64{}
			}
			s.NotApplicable[wire.Reason(why).String()] = k
		}
	}
	return s
}

// cutShort ends the connection as a rule wants it. False: it's no such end.
func (c *conn) cutShort(e inject.End) bool {
	switch e {
	case inject.EndCut:
		c.stop()
	case inject.EndAbort:
		c.aborted.Store(true)
		c.tear()
	default:
		return false
	}
	return true
}
