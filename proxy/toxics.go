package proxy

import (
	"errors"
	"slices"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// SetToxics puts a set of rules beside those of SetRules, in the place of the set
// that was there before: all of it, or nothing. Neither set touches the other, and
// a reload touches no toxics; those for links that there aren't wait for one of
// that name. Before each rule of SetRules, those of this set get a message. Rules
// that stack (inject.Rule.Stacks) act beside all others. It applies from the next
// message on, on connections that exist as well, and waits for no peer.
func (p *Proxy) SetToxics(rules []inject.Rule) error {
	if err := inject.CheckRules(rules); err != nil {
		return err
	}
	p.book.mu.Lock()
	defer p.book.mu.Unlock()
	for i := range rules {
		if slices.ContainsFunc(p.book.rules, func(r inject.Rule) bool { return r.Name == rules[i].Name }) {
			return errors.New("rule " + rules[i].Name + ": the name is taken by a rule: give each its own")
		}
	}
	since := p.book.turnOver(p.book.toxics, rules, p.book.toxicsSince, p.clock.now())
	p.book.toxics, p.book.toxicsSince = slices.Clone(rules), since
	p.applyRules()
	return nil
}

// Toxics are the rules of SetToxics, with what they have done.
func (p *Proxy) Toxics() []RuleStatus {
	p.book.mu.Lock()
	defer p.book.mu.Unlock()
	return p.statuses(p.book.toxics, p.book.toxicsSince)
}

// standing is since when a rule of either set is in force.
func (b *book) standing(rule string) wire.Stamp {
	if at, ok := b.toxicsSince[rule]; ok {
		return at
	}
	return b.since[rule]
}
