package trace

import (
	"slices"
	"time"

	"github.com/wirewait/wirewait/wire"
)

// Rule says whose acknowledgements a write needs. A Rule is never changed.
type Rule interface {
	// Choose picks those that count out of the members that are there, by their
	// names, in the order in which they came; two may have one name. It appends
	// their indexes to chosen, and says how many of them it takes: NobodyNeeded,
	// or CannotTell. It may ask for more than there are.
	Choose(there []string, chosen []int) (_ []int, take int)
}

// chooser is a Rule for which it matters which members have it, and not only how
// many.
type chooser interface{ enough(have []string) bool }

// What Choose says if nobody is waited for, and if the rule leaves to chance who
// is.
const (
	NobodyNeeded = 0
	CannotTell   = -1
)

// release is the moment from which a rule was satisfied: by is the member whose
// acknowledgement did it, nil: it never was, as far as is known. counted are
// those that counted then.
type release struct {
	at      wire.Stamp
	by      *member
	counted []*member
}

// step is a moment at which a rule may have become satisfied.
type step struct {
	at wire.Stamp
	m  *member
}

// released finds when the rule was first satisfied for a position at a level.
//
//	s1 reached it      --------x-----------------
//	s2 reached it      -------------------x------
//	ANY 1 (s1, s2)             ^ by s1
//	ANY 2 (s1, s2)                        ^ by s2
//	FIRST 1 (s2, s1)                      ^ by s2, or, had s2 gone, by s1 at its
//	                                        next word
//
// A server looks again whenever it hears from a member that counts
// (SyncRepReleaseWaiters in src/backend/replication/syncrep.c), so no other
// moments need be tried.
func (g *replicas) released(rule Rule, p wire.Position, level wire.Level) release {
	var steps []step
	for _, m := range g.members {
		if at, ok := m.reached[level].reached(p); ok {
			steps = append(steps, step{at, m})
		}
	}
	for _, gone := range g.members {
		if gone.left != 0 && len(steps) > 0 {
			steps = g.afterwards(steps, gone.left)
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return int(a.at - b.at) })
	for _, s := range steps {
		if !s.m.there(s.at) {
			continue
		}
		if counted := g.satisfied(rule, p, level, s); counted != nil {
			return release{s.at, s.m, counted}
		}
	}
	return release{}
}

// afterwards adds each member's next word after a time.
func (g *replicas) afterwards(steps []step, after wire.Stamp) []step {
	for _, m := range g.members {
		if i, _ := slices.BinarySearch(m.heard, after); i < len(m.heard) {
			steps = append(steps, step{m.heard[i], m})
		}
	}
	return steps
}

// satisfied returns the members that count, if the rule is satisfied when one of
// them says something; else nil.
func (g *replicas) satisfied(rule Rule, p wire.Position, level wire.Level, s step) (counted []*member) {
	var there []string
	var members []*member
	for _, m := range g.members {
		if m.there(s.at) {
			there, members = append(there, m.name), append(members, m)
		}
	}
	chosen, take := rule.Choose(there, nil)
	if take <= 0 || len(chosen) < take {
		return nil
	}
	var have []string
	for _, i := range chosen {
		counted = append(counted, members[i])
		if at, ok := members[i].reached[level].reached(p); ok && at <= s.at {
			have = append(have, members[i].name)
		}
	}
	if len(have) < take || !slices.Contains(counted, s.m) {
		return nil
	}
	if c, ok := rule.(chooser); ok && !c.enough(have) {
		return nil
	}
	return counted
}

// rival is another member that may have been the one, had the server taken in
// its acknowledgement and that of r.by in the other order: the later one came
// within d of the other, or of when that was surely written. Under ANY each that counts may; under FIRST only those do that are waited
// for. Nil: there is none.
func (r release) rival(p wire.Position, level wire.Level, d time.Duration) *member {
	own, _ := r.by.reached[level].find(p)
	own.at = r.at // which is later, if it was another's going that made it the one
	for _, m := range r.counted {
		e, ok := m.reached[level].find(p)
		if !ok || m.name == r.by.name {
			continue
		}
		first, second := own, e
		if first.at > second.at {
			first, second = second, first
		}
		if first.at.Add(first.late+d) >= second.at {
			return m
		}
	}
	return nil
}
