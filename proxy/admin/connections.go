package admin

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/wire"
)

// Connections is the answer of GET /v1/connections, oldest first.
type Connections struct {
	Connections []Connection `json:"connections"`
}

// Connection is one of Connections, and the answer of GET and DELETE
// /v1/connections/{id}.
type Connection struct {
	ID   uint64 `json:"id"`
	Link string `json:"link"`
	// From is whose it is, and FromBasis how that is known.
	From      string `json:"from,omitempty"`
	FromBasis string `json:"from_basis,omitempty"`
	Client    string `json:"client"`
	// Upstream is the server's resolved address, and UpstreamPort our own port
	// towards it: the client's port in the server's log.
	Upstream     string    `json:"upstream,omitempty"`
	UpstreamPort int       `json:"upstream_port,omitempty"`
	Since        time.Time `json:"since"`
	// State is connecting, open, half_closed or closing.
	State    string `json:"state"`
	Protocol string `json:"protocol,omitempty"`
	// What the connection said of itself.
	Application        string `json:"application,omitempty"`
	User               string `json:"user,omitempty"`
	Database           string `json:"database,omitempty"`
	Driver             string `json:"driver,omitempty"`
	Replication        string `json:"replication,omitempty"`
	BackendPID         int32  `json:"backend_pid,omitempty"`
	ServerConnectionID int64  `json:"server_connection_id,omitempty"`
	// NotDecoded is why its messages aren't read any more.
	NotDecoded string `json:"not_decoded,omitempty"`
	Exchanges  uint64 `json:"exchanges"`
	// WaitingRequests have no reply yet.
	WaitingRequests int `json:"waiting_requests"`
	// Delay is what applies to it now. Rules are the names of those that may, the
	// first twenty in a list of connections, and RulesTotal is how many they are.
	Delay      Delay         `json:"delay"`
	Rules      []string      `json:"rules"`
	RulesTotal int           `json:"rules_total"`
	ToServer   ConnectionWay `json:"to_server"`
	ToClient   ConnectionWay `json:"to_client"`
}

// ConnectionWay is one direction of a connection.
type ConnectionWay struct {
	Bytes       uint64  `json:"bytes"`
	QueuedBytes int64   `json:"queued_bytes"`
	Stalls      uint64  `json:"stalls"`
	StalledMS   float64 `json:"stalled_ms"`
	// Paused: reading stands still, because the line is full.
	Paused bool `json:"paused"`
	// LagMS is what a rule has the stream of a member lag by at present.
	LagMS float64 `json:"lag_ms"`
}

// fewRules are named with each connection of a list: of a thousand rules and ten
// thousand connections all would be too many.
const fewRules = 20

func (c *Control) connections(p *proxy.Proxy, r *http.Request) (any, error) {
	link, name := r.URL.Query().Get("link"), r.URL.Query().Get("rule")
	if link != "" && p.Link(link) == nil {
		return nil, noLink(p, link)
	}
	rules := reachOf(p.Rules())
	wanted := slices.IndexFunc(rules, func(r reach) bool { return r.Name == name })
	if name != "" && wanted < 0 {
		return nil, noRule(name)
	}
	list := Connections{Connections: []Connection{}}
	for _, conn := range p.Connections() {
		if (link == "" || conn.Link == link) && (name == "" || rules[wanted].mayApply(&conn)) {
			list.Connections = append(list.Connections, describeConnection(&conn, rules, fewRules))
		}
	}
	return list, nil
}

func (c *Control) connection(p *proxy.Proxy, r *http.Request) (any, error) {
	id, err := connectionID(r)
	if err != nil {
		return nil, err
	}
	conn, ok := p.Connection(id)
	if !ok {
		return nil, noConnection(id)
	}
	return describeConnection(&conn, reachOf(p.Rules()), math.MaxInt), nil
}

func (c *Control) cut(p *proxy.Proxy, r *http.Request) (any, error) {
	id, err := connectionID(r)
	if err != nil {
		return nil, err
	}
	conn, ok := p.Connection(id)
	if !ok || !p.Cut(id) {
		return nil, noConnection(id)
	}
	conn.State = proxy.Closing
	return describeConnection(&conn, reachOf(p.Rules()), math.MaxInt), nil
}

func connectionID(r *http.Request) (uint64, error) {
	id, err := strconv.ParseUint(r.PathValue("id"), 10, 64)
	if err != nil {
		return 0, refuse(http.StatusBadRequest, fmt.Sprintf("%q is no connection: give its id, a number that GET /v1/connections shows", r.PathValue("id")))
	}
	return id, nil
}

func noConnection(id uint64) error {
	return refuse(http.StatusNotFound, fmt.Sprintf("there is no connection %d, or no longer: GET /v1/connections shows those there are", id))
}

func describeConnection(c *proxy.Connection, rules []reach, most int) Connection {
	d := Connection{
		ID: c.ID, Link: c.Link, From: c.From, FromBasis: c.Basis, Client: c.Client,
		Upstream: c.Upstream, UpstreamPort: c.UpstreamPort, Since: c.Since, State: string(c.State), Protocol: string(c.Protocol),
		Exchanges: c.Counts.Exchanges, WaitingRequests: c.Waiting, Delay: DescribeDelay(c.Delay),
		ToServer: describeConnectionWay(c, wire.ToServer), ToClient: describeConnectionWay(c, wire.ToClient),
	}
	d.Rules = []string{}
	for i := range rules {
		if !rules[i].mayApply(c) {
			continue
		}
		if d.RulesTotal++; len(d.Rules) < most {
			d.Rules = append(d.Rules, rules[i].Name)
		}
	}
	if p := c.Peer; p != nil {
		d.Application, d.User, d.Database, d.Driver = p.Application, p.User, p.Database, p.Driver
		d.Replication, d.BackendPID, d.ServerConnectionID = p.Replication, p.BackendPID, p.ServerConnectionID
	}
	if c.Opaque != nil {
		d.NotDecoded = c.Opaque.Error()
	}
	return d
}

func describeConnectionWay(c *proxy.Connection, dir wire.Direction) ConnectionWay {
	w := &c.Counts.Ways[dir]
	return ConnectionWay{
		Bytes: w.Bytes, QueuedBytes: w.Live, Stalls: w.Stalls, StalledMS: ms(w.Stalled), Paused: w.Paused > 0, LagMS: ms(c.Lag[dir]),
	}
}
