package admin

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/proxy/config"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// Links is the answer of GET /v1/links and of PATCH /v1/links.
type Links struct {
	Links []Link `json:"links"`
}

// Link is one of Links, and the answer of GET and PATCH /v1/links/{name}.
type Link struct {
	Name string `json:"name"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Listen is where it listens, with the port that the system chose.
	Listen   string `json:"listen"`
	Upstream string `json:"upstream"`
	// Protocol is empty if it's detected for each connection.
	Protocol string `json:"protocol,omitempty"`
	// Delay is for connections that nothing tells, where several dial the link,
	// and Sources has those that are told.
	Delay   Delay        `json:"delay"`
	Sources []LinkSource `json:"sources,omitempty"`

	Connections LinkConnections `json:"connections"`
	Exchanges   uint64          `json:"exchanges"`
	// DecodeFailures counts messages that were not understood, by reason.
	DecodeFailures map[string]uint64 `json:"decode_failures"`
	ToServer       Way               `json:"to_server"`
	ToClient       Way               `json:"to_client"`
}

// LinkSource is one of several who dial a link.
type LinkSource struct {
	Name  string `json:"name"`
	Delay Delay  `json:"delay"`
}

// LinkConnections are counts of a link's connections since the start, but for
// Open, which there are now.
type LinkConnections struct {
	Open  int64  `json:"open"`
	Total uint64 `json:"total"`
	// Encrypted and Opaque could not be read, for TLS and for anything else.
	Encrypted      uint64 `json:"encrypted"`
	Opaque         uint64 `json:"opaque"`
	DialFailures   uint64 `json:"dial_failures"`
	AcceptFailures uint64 `json:"accept_failures"`
}

// Way is one direction of a link.
type Way struct {
	Bytes uint64 `json:"bytes"`
	// QueuedBytes wait in the lines now.
	QueuedBytes int64 `json:"queued_bytes"`
	// Stalls is how often reading stood still because a line was full, StalledMS
	// for how long, and PausedConnections how many stand still now.
	Stalls            uint64  `json:"stalls"`
	StalledMS         float64 `json:"stalled_ms"`
	PausedConnections int64   `json:"paused_connections"`
	// HeldRuns counts runs of bytes that were delayed. PlannedMS and AchievedMS
	// are the means of how long they were to be held and were, MaxErrorMS the
	// most that one left too late by.
	HeldRuns   uint64  `json:"held_runs"`
	PlannedMS  float64 `json:"planned_ms"`
	AchievedMS float64 `json:"achieved_ms"`
	MaxErrorMS float64 `json:"max_error_ms"`
	// DelayError is how much longer requests or replies were held than they
	// were to be; absent if none was delayed, and on links that read no messages.
	DelayError *Quantiles `json:"delay_error,omitempty"`
}

func (c *Control) links(p *proxy.Proxy, _ *http.Request) (any, error) {
	return c.allLinks(p), nil
}

func (c *Control) allLinks(p *proxy.Proxy) Links {
	counted := map[string]*trace.LinkCounters{}
	for _, l := range p.Counters().Links {
		counted[l.Link] = &l
	}
	errors := map[string]trace.DelayErrors{}
	if c.Waits != nil {
		errors = c.Waits.DelayErrors()
	}
	list := Links{Links: []Link{}}
	for _, l := range p.Links() {
		list.Links = append(list.Links, describeLink(l, counted[l.Name()], errors[l.Name()]))
	}
	return list
}

func describeLink(l *proxy.Link, n *trace.LinkCounters, e trace.DelayErrors) Link {
	if n == nil { // it was opened meanwhile
		n = &trace.LinkCounters{}
	}
	set := l.Config()
	listen := l.Addr().String()
	if l.Addr().Network() == "unix" {
		listen = "unix:" + listen
	}
	failures := n.DecodeFailures
	if failures == nil {
		failures = map[string]uint64{}
	}
	var sources []LinkSource
	for _, s := range l.SourceDelays() {
		sources = append(sources, LinkSource{s.Name, DescribeDelay(s.Delay)})
	}
	return Link{
		Name: l.Name(), Sources: sources, From: set.From, To: set.To, Listen: listen, Upstream: set.Upstream, Protocol: string(set.Protocol),
		Delay: DescribeDelay(l.Delay()),
		Connections: LinkConnections{
			Open: n.ConnectionsOpen, Total: n.ConnectionsTotal, Encrypted: n.Encrypted, Opaque: n.Opaque,
			DialFailures: n.DialFailures, AcceptFailures: n.AcceptFailures,
		},
		Exchanges: n.Exchanges, DecodeFailures: failures,
		ToServer: describeWay(&n.Ways[wire.ToServer], e, wire.ToServer),
		ToClient: describeWay(&n.Ways[wire.ToClient], e, wire.ToClient),
	}
}

func describeWay(w *trace.WayCounters, e trace.DelayErrors, dir wire.Direction) Way {
	way := Way{
		Bytes: w.Bytes, QueuedBytes: w.Live, Stalls: w.Stalls, StalledMS: ms(w.Stalled), PausedConnections: w.Paused,
		HeldRuns: w.Held, PlannedMS: ms(w.PlannedMean()), AchievedMS: ms(w.AchievedMean()), MaxErrorMS: ms(w.MaxError),
	}
	if e.Count[dir] > 0 {
		q := quantiles(e.Error[dir])
		way.DelayError = &q
	}
	return way
}

func (c *Control) link(p *proxy.Proxy, r *http.Request) (any, error) {
	return c.oneLink(p, r.PathValue("name"))
}

func (c *Control) oneLink(p *proxy.Proxy, name string) (any, error) {
	for _, l := range c.allLinks(p).Links {
		if l.Name == name {
			return l, nil
		}
	}
	return nil, noLink(p, name)
}

func noLink(p *proxy.Proxy, name string) error {
	return refuse(http.StatusNotFound, complainOfLink(p, name))
}

func complainOfLink(p *proxy.Proxy, name string) string {
	const most = 20
	var names []string
	for _, l := range p.Links() {
		names = append(names, l.Name())
	}
	if len(names) > most {
		names = append(names[:most], "...")
	}
	return fmt.Sprintf("there is no link %q: the links are %q", name, names)
}

func (c *Control) patchLink(p *proxy.Proxy, r *http.Request) (any, error) {
	text, err := body(r)
	if err != nil {
		return nil, err
	}
	change, err := config.ParsePatch("body", text)
	if err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	if p.Link(name) == nil {
		return nil, noLink(p, name)
	}
	if err := p.SetDelays(map[string]proxy.DelayPatch{name: change}); err != nil {
		return nil, err
	}
	return c.oneLink(p, name)
}

func (c *Control) patchLinks(p *proxy.Proxy, r *http.Request) (any, error) {
	text, err := body(r)
	if err != nil {
		return nil, err
	}
	changes, err := config.ParsePatches("body", text)
	if err != nil {
		return nil, err
	}
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		if p.Link(name) == nil {
			problems = append(problems, complainOfLink(p, name))
		}
	}
	if len(problems) > 0 {
		return nil, refuse(http.StatusNotFound, problems...)
	}
	if err := p.SetDelays(changes); err != nil {
		return nil, err
	}
	return c.allLinks(p), nil
}
