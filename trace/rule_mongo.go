package trace

import (
	"slices"
	"strconv"
	"strings"

	"github.com/wirewait/wirewait/wire"
)

// ReplicaSet is what a MongoDB replica set's configuration says of its members,
// as far as it decides whom a write waits for. It's never changed.
type ReplicaSet struct {
	Members []SetMember
	// Assumed: it's a guess, as good as can be made from what was seen.
	Assumed bool

	// Observed: the set itself was asked, so that what follows is known too.
	// Otherwise a set is taken to be as most are: its default is the implicit one.
	Observed bool
	// Version is the configuration's. Once members speak of a later one this one
	// is no longer good.
	Version int64
	// DefaultW and DefaultJ are what a write waits for that says nothing, as
	// wire.WriteConcern has them; DefaultW empty: the implicit one.
	DefaultW, DefaultJ string
	// MajorityWritten: majority is satisfied by what is written, and needn't be on
	// disk (writeConcernMajorityJournalDefault: false).
	MajorityWritten bool
	// Modes are the write concerns that have names of their own
	// (settings.getLastErrorModes): of how many values of each tag a member must
	// have a write.
	Modes map[string]map[string]int
}

// SetMember is one of them.
type SetMember struct {
	Name string // as links call it ("rs0.a")
	ID   int    // members[]._id
	// Votes and Arbiter as in the configuration. An arbiter votes and has no data.
	Votes   int
	Arbiter bool
	Tags    map[string]string
}

// From is the rule for writes to one of the members, by its name.
func (s *ReplicaSet) From(member string) Rule { return &setRule{s, member} }

// setRule is a set with its member at hand.
type setRule struct {
	set    *ReplicaSet
	server string
}

// Choose is Rule's, for majority, by names.
func (r *setRule) Choose(there []string, chosen []int) ([]int, int) {
	v := setView{server: r.server, members: r.set.Members}
	others := v.majority() - 1
	for i, name := range there {
		if name != r.server && slices.ContainsFunc(r.set.Members, func(m SetMember) bool {
			return m.Name == name && m.Votes > 0 && !m.Arbiter
		}) {
			chosen = append(chosen, i)
		}
	}
	return chosen, others
}

// setView is a set as one of its members has it: that one's own position counts
// too, but isn't on the wire.
type setView struct {
	server  string // its name
	self    string // and its id; empty: not known
	members []SetMember
	assumed bool
	set     ReplicaSet // of the configuration
	stale   bool       // which has changed since
}

// majority is how many members must have a write before majority is reached:
// more than half of the votes, but no more than have data
// (src/mongo/db/repl/repl_set_config.cpp, _calculateMajorities).
func (v *setView) majority() int {
	votes, data := 0, 0
	for _, m := range v.members {
		if m.Votes > 0 {
			votes++
			if !m.Arbiter {
				data++
			}
		}
	}
	return min(votes/2+1, data)
}

// implicitDefault is what a write waits for that says nothing: majority, but one
// member where arbiters leave too few with data
// (src/mongo/db/repl/repl_set_config.cpp, isImplicitDefaultWriteConcernMajority).
func (v *setView) implicitDefault() string {
	votes, arbiters := 0, 0
	for _, m := range v.members {
		if m.Votes > 0 {
			votes++
		}
		if m.Arbiter {
			arbiters++
		}
	}
	if arbiters > 0 && len(v.members)-arbiters <= votes/2+1 {
		return "1"
	}
	return "majority"
}

// name is what a member of that id is called.
func (v *setView) name(id string) string {
	for _, m := range v.members {
		if strconv.Itoa(m.ID) == id {
			return m.Name
		}
	}
	return "member " + id
}

// need is what a write waits for.
type need struct {
	unknown bool
	// others are how many members besides the primary must have reached the
	// write's position at the level; journal: none, but the primary's disk.
	others  int
	voters  bool // only those that vote count
	level   wire.Level
	journal bool
	mode    map[string]int // instead of a number: of how many values of each tag
	assumed bool           // it's the default, as far as is known
}

// needOf reads a write concern (src/mongo/db/repl/replication_coordinator_impl.cpp,
// _doneWaitingForReplication). majority asks for durable positions, a number for
// applied ones, with j for both.
func (v *setView) needOf(wc *wire.WriteConcern) (n need) {
	w, j := wc.W, wc.J
	n.assumed = wc.Source != "command" && wc.Source != "transaction" && !v.set.Observed
	if w == "" {
		n.assumed = !v.set.Observed
		if w = v.set.DefaultW; w == "" {
			w = v.implicitDefault()
		} else if j == "" {
			j = v.set.DefaultJ
		}
	}
	count, err := strconv.Atoi(w)
	mode := v.set.Modes[w]
	if wc.Tags != nil {
		mode = wc.Tags
	}
	switch {
	case wc.Source == wire.UnknownConcern || err != nil && w != "majority" && mode == nil:
		n.unknown = true // a mode is in the set's configuration
	case mode != nil && w != "majority":
		n.mode, n.others, n.level = mode, 1, wire.Applied
		if v.tagged(mode, []string{v.self}) {
			n.others = 0
		}
		n.journal = n.others == 0 && j == "true"
		if j == "true" {
			n.level = appliedAndDurable
		}
	case w == "majority":
		n.others, n.voters, n.level = v.majority()-1, true, wire.Durable
		n.journal = n.others == 0
		if v.set.MajorityWritten {
			n.level, n.journal = wire.Written, n.journal && j == "true"
		}
	case count <= 1:
		n.journal = count == 1 && j == "true"
	default:
		n.others, n.level = count-1, wire.Applied
		if j == "true" {
			n.level = appliedAndDurable
		}
	}
	return n
}

// tagged reports whether members, by their ids, have enough values of each tag
// (src/mongo/db/repl/repl_set_tag.cpp, ReplSetTagMatch).
func (v *setView) tagged(mode map[string]int, ids []string) bool {
	for tag, count := range mode {
		values := map[string]bool{}
		for _, m := range v.members {
			if value, ok := m.Tags[tag]; ok && slices.Contains(ids, strconv.Itoa(m.ID)) {
				values[value] = true
			}
		}
		if len(values) < count {
			return false
		}
	}
	return true
}

// needRule is a need as a Rule, by ids.
type needRule struct {
	v *setView
	n need
}

// Choose implements Rule.
func (r *needRule) Choose(there []string, chosen []int) ([]int, int) {
	for i, id := range there {
		if id == r.v.self {
			continue
		}
		at := slices.IndexFunc(r.v.members, func(m SetMember) bool { return strconv.Itoa(m.ID) == id })
		if at < 0 || r.v.members[at].Arbiter || r.n.voters && r.v.members[at].Votes == 0 {
			continue
		}
		chosen = append(chosen, i)
	}
	return chosen, r.n.others
}

// enough implements chooser: the primary has what it acknowledges.
func (r *needRule) enough(have []string) bool {
	return r.n.mode == nil || r.v.tagged(r.n.mode, append(have, r.v.self))
}

// isMember reports whether a name is a member's ("rs0.a"), and not an address.
func isMember(name string) bool { return strings.Contains(name, ".") && !strings.Contains(name, ":") }
