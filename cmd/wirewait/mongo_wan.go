package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/internal/lab/mongod"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// A mongoWAN is a replica set in several places. A link leads to each member
// from the application, and another from the other members, whose address is
// what the set's configuration has: one address for all, as on real servers.
//
//	app --- app-rs0.a ---> a <--- members-rs0.a --- b, c
//	app --- app-rs0.b ---> b <--- members-rs0.b --- a, c
//	app --- app-rs0.c ---> c <--- members-rs0.c --- a, b
type mongoWAN struct {
	set     string
	members []string
	rtts    map[[2]string]time.Duration // of pairs of sites; a pair is in one order only
	site    map[string]string           // of "app" and of members; itself if it's in none
}

// defaultMongoWAN has the application beside the primary, and a member near and
// one far.
func defaultMongoWAN() mongoWAN {
	return mongoWAN{
		set: "rs0", members: []string{"a", "b", "c"},
		site: map[string]string{"app": "sgp", "a": "sgp", "b": "fra", "c": "syd"},
		rtts: map[[2]string]time.Duration{
			{"sgp", "fra"}: 160 * time.Millisecond, {"sgp", "syd"}: 92 * time.Millisecond, {"fra", "syd"}: 240 * time.Millisecond,
		},
	}
}

func (w *mongoWAN) rtt(from, to string) time.Duration {
	a, b := w.place(from), w.place(to)
	return w.rtts[[2]string{a, b}] + w.rtts[[2]string{b, a}]
}

func (w *mongoWAN) place(name string) string {
	if site := w.site[name]; site != "" {
		return site
	}
	return name
}

func (w *mongoWAN) full(member string) string { return w.set + "." + member }
func (w *mongoWAN) appLink(member string) string {
	return "app-" + w.full(member)
}
func (w *mongoWAN) membersLink(member string) string {
	return "members-" + w.full(member)
}

// links are those to members that listen at these addresses. dialled are the
// addresses of the members' links, once they are known.
func (w *mongoWAN) links(upstreams []string, dialled map[string]string) (links []proxy.LinkConfig) {
	names := func(member string) []string {
		if a := dialled[member]; a != "" {
			return []string{a}
		}
		return nil
	}
	for i, m := range w.members {
		l := proxy.LinkConfig{Listen: "127.0.0.1:0", Upstream: upstreams[i], Protocol: wire.MongoDB, To: w.full(m)}
		app := l
		app.Name, app.From, app.Set, app.Hosts = w.appLink(m), "app", w.set, names(m)
		app.Delay = inject.Symmetric(w.rtt("app", m), 0)
		members := l
		members.Name, members.From = w.membersLink(m), "members"
		for _, other := range w.members {
			if other != m {
				members.Sources = append(members.Sources, proxy.Source{
					Name: w.full(other), Names: names(other), Delay: inject.Symmetric(w.rtt(other, m), 0),
				})
			}
		}
		links = append(links, app, members)
	}
	return links
}

// start opens the links and starts a set with these options behind them. open is
// asked to open them, after which there's a tracer. Options.Members are nil, or
// those of w.
func (w *mongoWAN) start(ctx context.Context, o mongod.SetOptions, tracer func() *trace.Tracer, open func([]proxy.LinkConfig) (*proxy.Proxy, error)) (*mongod.Set, error) {
	ports, err := mongod.ReservePorts(len(w.members))
	if err != nil {
		return nil, err
	}
	var upstreams []string
	for i := range w.members {
		upstreams = append(upstreams, ports.Addr(i))
	}
	rules := &trace.ReplicaSet{}
	for i, m := range w.members {
		rules.Members = append(rules.Members, trace.SetMember{Name: w.full(m), ID: i, Votes: 1})
	}
	p, err := open(w.links(upstreams, nil))
	if err != nil {
		ports.Close()
		return nil, err
	}
	for _, m := range w.members {
		tracer().SetRule(w.full(m), rules.From(w.full(m)))
	}
	o.Name, o.Ports = w.set, ports
	if o.Members == nil {
		o.Members = make([]mongod.MemberOptions, len(w.members))
	}
	dialled := map[string]string{}
	for i, m := range w.members {
		dialled[m] = p.Link(w.membersLink(m)).Addr().String()
		o.Members[i].Name, o.Members[i].Host = m, dialled[m]
	}
	// Now that the links have their ports: who is who.
	if err := p.Reload(w.links(upstreams, dialled)); err != nil {
		ports.Close()
		return nil, err
	}
	return mongod.StartSet(ctx, o)
}

// uri is what the application connects to.
func (w *mongoWAN) uri(p *proxy.Proxy) string {
	var addrs []string
	for _, m := range w.members {
		addrs = append(addrs, p.Link(w.appLink(m)).Addr().String())
	}
	return "mongodb://" + strings.Join(addrs, ",") + "/?replicaSet=" + w.set
}

// String is "app, a in sgp at 0s, b in fra at 160ms, c in syd at 92ms".
func (w *mongoWAN) String() string {
	words := "app"
	for _, m := range w.members {
		words += ", " + m
		if w.place(m) != m {
			words += " in " + w.place(m)
		}
		words += fmt.Sprintf(" at %v", w.rtt("app", m))
	}
	return words
}

// stopSet puts what the members have on disk before it closes them.
func stopSet(set *mongod.Set) error {
	var errs []error
	for _, m := range set.Members() {
		errs = append(errs, m.Stop())
	}
	return errors.Join(append(errs, set.Close())...)
}
