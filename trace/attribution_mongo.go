package trace

import (
	"slices"
	"strconv"
	"strings"

	"github.com/wirewait/wirewait/wire"
)

// BasisUpperBound: the wait was at most so long; nothing shows how much of the
// time it was.
const BasisUpperBound = "upper_bound"

// mongoSets is what heartbeats said of who is who, beside the configuration.
type mongoSets struct {
	ids     map[string]string // of members, by name ("rs0.b") or address
	names   map[string]string // of members, by their address in the set's configuration
	sources map[string]string // whom a member follows, by its name: an address
	version map[string]int64  // of a set's configuration, by its name
	changed func(member, was, is string)
}

const maxMembersKnown = 4096

// reportSet takes in what a message between members of a replica set said. Where
// positions came over which connection doesn't matter, only whom they were told:
//
//	b --- replSetUpdatePosition: b, c ---> a     a learns of b and c
//	a --- replSetHeartbeat --------------> b
//	a <----------------- reply: b's own --- b     a learns of b
func (a *attribution) reportSet(r *wire.Report, c *Conn) {
	s, server := r.Set, serverOf(c)
	from := ""
	if isMember(c.From) {
		from = c.From
	}
	if s.Client != "" {
		a.mongo.know(from, s.Client, s.ClientHost)
		a.mongo.saw(server, s.Version)
		if !isMember(server) && s.ClientHost != "" {
			a.group(server).host(s.Client, s.ClientHost)
		}
	}
	if s.ToClient && s.IsPrimary && s.Primary != "" {
		a.mongo.know(server, s.Primary, "")
	}
	if s.ToClient && s.SyncSource != "" {
		a.mongo.follows(server, s.SyncSource)
	}
	r.Connection, r.Member = 0, a.idOf(from)
	told := server
	if s.ToClient {
		told = from
		if len(r.Reached) == 1 {
			r.Reached[0].Member = a.idOf(server)
		}
	}
	if told == "" || len(r.Reached) == 1 && r.Reached[0].Member == "" || r.Kind == wire.ReportReached && len(r.Reached) == 0 {
		return
	}
	g := a.group(told)
	if r.Kind == wire.ReportSent {
		if r.Blind {
			g.lost(r.In, max(r.In, r.Out))
			return
		}
		g.log.add(r.In, r.Sent, 0)
		g.term = max(g.term, r.Sent.Hi)
		if r.Member == "" {
			return
		}
	}
	g.report(r)
}

// know notes a member's id and its address.
func (m *mongoSets) know(name, id, host string) {
	if name == "" {
		return
	}
	note(&m.ids, name, id)
	if host != "" {
		note(&m.names, host, name)
	}
}

// saw notes which version of a set's configuration a member has.
func (m *mongoSets) saw(member string, version int64) {
	set, _, ok := strings.Cut(member, ".")
	if !ok || !isMember(member) || version <= m.version[set] {
		return
	}
	if m.version == nil || len(m.version) >= maxServers {
		m.version = map[string]int64{}
	}
	m.version[set] = version
}

// stale reports whether a set has another configuration by now.
func (m *mongoSets) stale(member string, s *ReplicaSet) bool {
	set, _, _ := strings.Cut(member, ".")
	return s.Version != 0 && m.version[set] > s.Version
}

// nameOf is the member of an address, or the address if it's nobody's.
func (m *mongoSets) nameOf(host string) string {
	if name := m.names[host]; name != "" {
		return name
	}
	return host
}

// follows notes whom a member follows, and tells if that's another than before.
func (m *mongoSets) follows(member, source string) {
	was := note(&m.sources, member, source)
	if was != "" && was != source && m.changed != nil {
		m.changed(member, m.nameOf(was), m.nameOf(source))
	}
}

// note keeps a value, and returns what was there. It forgets all when full.
func note(in *map[string]string, key, value string) (was string) {
	was = (*in)[key]
	switch {
	case was == value:
	case *in == nil || len(*in) >= maxMembersKnown:
		*in = map[string]string{key: value}
	default:
		(*in)[key] = value
	}
	return was
}

// host notes a member's address in the set's configuration.
func (g *replicas) host(id, host string) {
	note(&g.hosts, id, host)
}

// idOf is a member's id: as heartbeats have it, else as the configuration does.
func (a *attribution) idOf(name string) string {
	if id := a.mongo.ids[name]; id != "" {
		return id
	}
	if r, ok := a.rule(name).(*setRule); ok {
		for _, m := range r.set.Members {
			if m.Name == name {
				return strconv.Itoa(m.ID)
			}
		}
	}
	return ""
}

// view is the set as a server has it. Without a configuration its members are
// those that it was told of, and all vote.
func (a *attribution) view(server string, g *replicas) setView {
	v := setView{server: server, self: a.idOf(server)}
	if r, ok := a.rule(server).(*setRule); ok {
		v.members, v.assumed = slices.Clone(r.set.Members), r.set.Assumed
		v.set, v.stale = *r.set, a.mongo.stale(server, r.set)
		for i := range v.members {
			if id, err := strconv.Atoi(a.idOf(v.members[i].Name)); err == nil {
				v.members[i].ID = id
			}
		}
	} else {
		v.assumed = true
	}
	known := func(id string) bool {
		return slices.ContainsFunc(v.members, func(m SetMember) bool { return strconv.Itoa(m.ID) == id })
	}
	add := func(id, name string) {
		if n, err := strconv.Atoi(id); err == nil && !known(id) {
			v.members, v.assumed = append(v.members, SetMember{Name: name, ID: n, Votes: 1}), true
		}
	}
	if v.self != "" {
		add(v.self, server)
	}
	for _, m := range g.members {
		name := g.hosts[m.name]
		if name == "" {
			name = "member " + m.name
		}
		add(m.name, name)
	}
	return v
}

// observed notes whether the default of a write's concern is known, if it has that.
func (a *attribution) observed(f *Finished) {
	f.defaultKnown = false
	if !f.Write || f.Protocol != wire.MongoDB || f.Mongo.WriteConcern.W != "" || a.rules.none() {
		return
	}
	server := serverOf(f.Conn)
	r, ok := a.rule(server).(*setRule)
	if f.defaultKnown = ok && r.set.Observed && !a.mongo.stale(server, r.set); !f.defaultKnown {
		return
	}
	if wc := &f.Mongo.WriteConcern; wc.Source == wire.AssumedConcern {
		wc.Source = wire.DefaultConcern
	}
}

// judgeMongo finds the member that released a write.
//
//	request out       in a batch            acknowledged        reply in
//	----|-----------------|----------------------|------------------|---
//	    |<- execution --->|<--- replication ---->|<-- answer ------>|
//
// The write's own position is in its reply, so that nothing need be guessed but
// what the primary's own disk had to do with it, which isn't on the wire.
func (a *attribution) judgeMongo(g *replicas, f *Finished) {
	r := &f.Replication
	from, to := f.Sides[wire.ToServer].LastOut, f.Sides[wire.ToClient].LastIn
	if f.NoReply {
		r.Basis = BasisNotWaited
		return
	}
	if !f.Answered || !f.OK || from == 0 || to == 0 {
		return // nothing was written, or nobody knows
	}
	v := a.view(serverOf(f.Conn), g)
	n := v.needOf(&f.Mongo.WriteConcern)
	p := g.positionOf(f)
	began, seen := g.log.reached(p)
	switch {
	case f.Mongo.ConcernError != 0:
		r.Basis = BasisInterrupted
		if seen && n.others > 0 {
			r.Began, r.Released = began, to
		}
	case n.unknown, v.stale:
		r.Basis = BasisUnknown
	case n.others == 0 && !n.journal:
		r.Basis = BasisNotWaited
	case n.journal: // begins once the entry can be read, if it was read so soon
		r.Basis, r.Journal = BasisUpperBound, to.Sub(from)
		if seen && began >= from && began <= to {
			r.Journal = to.Sub(began)
		}
	case p.IsZero() || v.self == "" || !g.whole(from, to):
		r.Basis = BasisUnknown
	default:
		a.chooseMongo(g, f, &v, n, p)
	}
}

// positionOf is where in the log a write's reply says that it is.
func (g *replicas) positionOf(f *Finished) wire.Position {
	switch o, t := f.Mongo.OpTime, f.Mongo.OperationTime; {
	case o.TS != 0 && o.T >= 0:
		return wire.Position{Hi: uint64(o.T), Lo: o.TS}
	case t.TS != 0 && g.term != 0:
		return wire.Position{Hi: g.term, Lo: t.TS}
	}
	return wire.Position{}
}

func (a *attribution) chooseMongo(g *replicas, f *Finished, v *setView, n need, p wire.Position) {
	r := &f.Replication
	from, to := f.Sides[wire.ToServer].LastOut, f.Sides[wire.ToClient].LastIn
	r.Commit = p
	rel := g.released(&needRule{v, n}, p, n.level)
	began, seen := g.log.reached(p)
	switch {
	case rel.by == nil || rel.at > to:
		r.Basis = BasisUnknown
		return
	case rel.at < from: // it changed nothing, and has the position of what did
		r.Basis = BasisNoCommit
		return
	case !seen || began > rel.at:
		r.Basis = BasisUnknown
		return
	}
	r.Basis, r.ReleasedBy = BasisExact, v.name(rel.by.name)
	r.Began, r.Released, r.Candidates = began, rel.at, 1
	late := to.Sub(rel.at)
	switch {
	case rel.rival(p, n.level, max(late, leastTie)) != nil:
		// Of what came while a server stood still it may take in the last first.
		r.Basis, r.ReleasedBy = BasisTie, ""
	case late > promptly:
		r.Basis = BasisThenPrimary
	case v.assumed || n.assumed:
		r.Basis = BasisAssumed
	}
	g.standings(f, p, n.level)
	r.rename(v)
	for i := range r.Acknowledged {
		m := &r.Acknowledged[i]
		m.SyncSource = a.mongo.nameOf(a.mongo.sources[m.Member])
	}
}

// rename gives members their names, and leaves out the server itself, of whose
// position others tell it too.
func (r *Replication) rename(v *setView) {
	r.Acknowledged = slices.DeleteFunc(r.Acknowledged, func(m MemberWait) bool { return m.Member == v.self })
	for i := range r.Acknowledged {
		r.Acknowledged[i].Member = v.name(r.Acknowledged[i].Member)
	}
	r.Behind = slices.DeleteFunc(r.Behind, func(id string) bool { return id == v.self })
	for i := range r.Behind {
		r.Behind[i] = v.name(r.Behind[i])
	}
}
