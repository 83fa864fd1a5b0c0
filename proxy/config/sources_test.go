package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/wire"
)

const three = `
network:
  - {between: [app, sgp], rtt: 2ms}
  - {between: [app, fra], rtt: 162ms}
  - {between: [app, syd], rtt: 94ms}
  - {between: [sgp, fra], delay: [100ms, 60ms], jitter: 6ms}
  - {between: [sgp, syd], rtt: 92ms}
  - {between: [fra, syd], rtt: 240ms, bandwidth: 1Mbit/s}
sources: {10.0.2.0/24: app, 10.0.1.12: rs0.b, mongo-c.internal: rs0.c, "fd00::7": pg.s, 10.0.1.14: pg.t}
clusters:
  rs0:
    protocol: mongodb
    members:
      a: {site: sgp, upstream: "10.9.0.1:27017", host: "mongo-a:27017"}
      b: {site: fra, upstream: "mongo-b:27017"}
      c: {site: syd, upstream: "unix:/run/c"}
  pg:
    protocol: postgres
    members:
      p: {site: sgp, upstream: "p:5432"}
      s: {site: fra}
      t: {site: syd}
links:
`

// described are a link's sources, one a line, with the delay of what none is.
func described(l Link) string {
	s := fmt.Sprintf("%s %v\n", l.Name, l.Delay.RTT())
	for _, one := range l.Sources {
		s += fmt.Sprintf("%s %v %v %v\n", one.Name, one.Delay.RTT(), one.Addresses, one.Names)
	}
	return s
}

func TestParse_Several(t *testing.T) {
	tests := []struct{ link, want string }{
		{`{from: members, to: rs0.a, listen: "0.0.0.0:1", advertise: "proxy:27201"}`, `members-rs0.a 160ms
rs0.b 160ms [10.0.1.12/32] [mongo-b:27017]
rs0.c 92ms [] [mongo-c.internal]
app 2ms [10.0.2.0/24] []
pg.s 160ms [fd00::7/128] []
pg.t 92ms [10.0.1.14/32] []
`},
		{`{from: members, to: rs0.b, listen: "127.0.0.1:1", jitter: 0}`, `members-rs0.b 240ms
rs0.a 160ms [] [mongo-a:27017 10.9.0.1:27017]
rs0.c 240ms [] [mongo-c.internal]
app 162ms [10.0.2.0/24] []
rs0.b 0s [10.0.1.12/32] [mongo-b:27017 127.0.0.1:1]
pg.s 0s [fd00::7/128] []
pg.t 240ms [10.0.1.14/32] []
`},
		{`{from: [app, pg.s], to: pg.p, listen: "127.0.0.1:1"}`, `app+pg.s-pg.p 160ms
app 2ms [10.0.2.0/24] []
pg.s 160ms [fd00::7/128] []
rs0.b 160ms [10.0.1.12/32] [mongo-b:27017]
rs0.c 92ms [] [mongo-c.internal]
pg.t 92ms [10.0.1.14/32] []
`},
		{`{from: [app, members], to: pg.p, listen: "127.0.0.1:1", rtt: 30ms, name: own}`, `own 30ms
app 30ms [10.0.2.0/24] []
pg.s 30ms [fd00::7/128] []
pg.t 30ms [10.0.1.14/32] []
rs0.b 30ms [10.0.1.12/32] [mongo-b:27017]
rs0.c 30ms [] [mongo-c.internal]
`},
	}
	for _, tt := range tests {
		l := good(t, three+"- "+tt.link).Links[0]
		if got := described(l); got != tt.want {
			t.Errorf("%s:\n%swant\n%s", tt.link, got, tt.want)
		}
	}
}

// TestParse_SeveralHaveTheirWays: which way is long, and jitter, are each one's.
func TestParse_SeveralHaveTheirWays(t *testing.T) {
	l := good(t, three+`- {from: members, to: rs0.a, listen: "127.0.0.1:1"}`).Links[0]
	b := l.Sources[0].Delay
	if b.Delay[wire.ToServer].Base != 60*ms || b.Delay[wire.ToClient].Base != 100*ms || b.Delay[0].Jitter != 6*ms || l.Delay != b {
		t.Errorf("%+v", b)
	}
	if c := l.Sources[1].Delay; c != ways(46*ms, 46*ms) {
		t.Errorf("%+v", c)
	}
}

// TestParse_NobodyTells: members of PostgreSQL that are equally far away need
// no sources.
func TestParse_NobodyTells(t *testing.T) {
	l := good(t, `
network: [{between: [a, b], rtt: 80ms}]
clusters: {pg: {protocol: postgres, members: {p: {site: a, upstream: "p:1"}, s: {site: b}, t: {site: b}}}}
links: [{from: members, to: pg.p, listen: "127.0.0.1:1"}]`).Links[0]
	if l.Sources != nil || l.Delay.RTT() != 80*ms {
		t.Errorf("%+v", l)
	}
}

// TestParse_SeveralSharePipes: each pair of sites has its own, whoever dials,
// and the way back of one is the way there of the other.
func TestParse_SeveralSharePipes(t *testing.T) {
	f := good(t, three+`
- {from: members, to: rs0.b, listen: "127.0.0.1:1"}
- {from: members, to: rs0.c, listen: "127.0.0.1:2"}
- {from: syd, to: rs0.b, listen: "127.0.0.1:3"}`)
	of := func(link int, source string) *proxy.Pipes {
		i := slices.IndexFunc(f.Links[link].Sources, func(s proxy.Source) bool { return s.Name == source })
		return f.Links[link].Sources[i].Pipes
	}
	there, back := of(0, "rs0.c"), of(1, "rs0.b")
	if there == of(0, "rs0.a") || there != back.Reversed() || f.Links[2].Pipes != there || f.Links[0].Pipes != there {
		t.Errorf("%p %p %p", there, back, f.Links[2].Pipes)
	}
}

func TestParse_ProxyProtocol(t *testing.T) {
	f := good(t, `
links:
- {listen: "127.0.0.1:1", upstream: db:1, rtt: 0, proxy_protocol: send}
- {listen: "[::1]:1", upstream: db:1, rtt: 0, proxy_protocol: accept}
- {listen: "0.0.0.0:2", upstream: db:1, rtt: 0, proxy_protocol: {accept: 10.0.9.9, send: true}}
- {listen: "unix:/tmp/a", upstream: db:1, rtt: 0, proxy_protocol: {accept: [10.0.9.0/24, "::/0"]}}`)
	prefixes := func(list ...string) (p []netip.Prefix) {
		for _, s := range list {
			p = append(p, netip.MustParsePrefix(s))
		}
		return p
	}
	for i, want := range []proxy.ProxyProtocol{
		{Send: true}, {Accept: prefixes("127.0.0.0/8", "::1/128")}, {Accept: prefixes("10.0.9.9/32"), Send: true},
		{Accept: prefixes("10.0.9.0/24", "::/0")},
	} {
		if got := f.Links[i].ProxyProtocol; !slices.Equal(got.Accept, want.Accept) || got.Send != want.Send {
			t.Errorf("%d: %+v, want %+v", i, got, want)
		}
	}
}

// TestParse_MeshOfUnequalDistances: its members' links tell who dials, and each
// says what it's dialled by.
func TestParse_MeshOfUnequalDistances(t *testing.T) {
	text := strings.Replace(three, `"unix:/run/c"`, `"mongo-c:27017"`, 1)
	f := good(t, text+`- {mesh: rs0, listen: "0.0.0.0:27200", advertise: "proxy:37200"}`)
	var got []string
	for _, l := range f.Links {
		got = append(got, fmt.Sprintf("%s %s %s %d", l.Name, l.Listen, l.Dialled(), len(l.Sources)))
	}
	want := []string{
		"app-rs0.a 0.0.0.0:27200 proxy:37200 0", "app-rs0.b 0.0.0.0:27201 proxy:37201 0", "app-rs0.c 0.0.0.0:27202 proxy:37202 0",
		"members-rs0.a 0.0.0.0:27203 proxy:37203 5", "members-rs0.b 0.0.0.0:27204 proxy:37204 6", "members-rs0.c 0.0.0.0:27205 proxy:37205 6",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want\n%q", got, want)
	}
	if names := f.Links[3].Sources[0].Names; !slices.Equal(names, []string{"mongo-b:27017", "proxy:37204"}) {
		t.Errorf("b is called %q", names)
	}
}

// TestMember_IsRead: also what nothing uses yet, so that it's one word to have it
// used.
func TestMember_IsRead(t *testing.T) {
	r := &reader{name: "f", lookup: variables}
	root := r.document([]byte(`
rs0: {protocol: mongodb, observe: "mongodb://a:1/", observe_every: 250ms, members: {
  a: {site: s, host: "a:1", votes: 0, priority: 0, id: 7, arbiter: true, tags: {dc: east}}}}
pg: {protocol: postgres, observe: "postgres://p:1/", synchronous_standby_names: "ANY 1 (s1)", members: {
  s: {site: s, application_name: s1}}}`))
	topology := &topology{}
	r.clusters(root, topology)
	for _, p := range r.problems {
		t.Error(p)
	}
	rs, pg := topology.clusters[0].export(), topology.clusters[1].export()
	a, s := rs.Members[0], pg.Members[0]
	if a.Host != "a:1" || *a.Votes != 0 || *a.Priority != 0 || *a.ID != 7 || !a.Arbiter || a.Tags["dc"] != "east" || rs.Observe != "mongodb://a:1/" || rs.ObserveEvery != 250*time.Millisecond {
		t.Errorf("%+v", rs)
	}
	if s.ApplicationName != "s1" || s.Name != "pg.s" || pg.Standbys == nil || pg.Observe != "postgres://p:1/" {
		t.Errorf("%+v", pg)
	}
}
