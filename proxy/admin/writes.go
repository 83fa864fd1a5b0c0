package admin

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// Writes is the answer of GET /v1/writes, latest first: the slowest write of each
// of the last seconds, by link and by what it waited for.
type Writes struct {
	Writes []Write `json:"writes"`
}

// Write is one of them. No document, literal or parameter is in it. What isn't
// known is left out.
type Write struct {
	ID    uint64    `json:"id"`
	Began time.Time `json:"began"`
	Link  string    `json:"link"`
	From  string    `json:"from,omitempty"`
	To    string    `json:"to,omitempty"`
	// Client is its address, Application what it calls itself.
	Client      string `json:"client,omitempty"`
	Application string `json:"application,omitempty"`
	Protocol    string `json:"protocol"`
	// Summary is the operation and what it was done to: "insert orders".
	Summary  string `json:"summary"`
	Database string `json:"database,omitempty"`
	WaitsFor string `json:"waits_for"`
	// Outcome is ok, error, unreplicated (done here, and the wait for others ended
	// without them), no_reply (the connection ended before it) or unacknowledged
	// (none was due). ErrorCode is the server's.
	Outcome   string `json:"outcome"`
	ErrorCode string `json:"error_code,omitempty"`
	// TotalMS is the whole, and Parts add up to it.
	TotalMS float64 `json:"total_ms"`
	Parts   Parts   `json:"parts"`
	// PlannedMS is the delay that it was to have, both ways, AchievedMS the one it
	// had, and StalledMS how long reading stood still because a line was full.
	PlannedMS  float64 `json:"planned_ms"`
	AchievedMS float64 `json:"achieved_ms"`
	StalledMS  float64 `json:"stalled_ms"`
	Dominant   string  `json:"dominant"`
	// ReleasedBy is the member whose acknowledgement ended the wait, and
	// ReleasedBasis how that is known; see spans.md.
	ReleasedBy    string `json:"released_by,omitempty"`
	ReleasedBasis string `json:"released_basis,omitempty"`
	// ReplicationFromMS is when the part of that name begins.
	ReplicationFromMS float64       `json:"replication_from_ms"`
	Members           []WriteMember `json:"members"`
	// NotWaitedFor are the members that did not have it yet.
	NotWaitedFor []string `json:"not_waited_for"`
	Rules        []string `json:"rules"`
	Scenario     string   `json:"scenario,omitempty"`
	// Meanwhile is what the server did during its part.
	Meanwhile *Meanwhile `json:"meanwhile,omitempty"`
}

// Parts are what a write's time divides into, in milliseconds.
type Parts struct {
	Receive     float64 `json:"receive_ms"`
	Request     float64 `json:"request_ms"`
	Server      float64 `json:"server_ms"`
	Replication float64 `json:"replication_ms"`
	Reply       float64 `json:"reply_ms"`
}

// WriteMember is a member that had the write when its reply left. Times are in
// milliseconds from the write's beginning.
type WriteMember struct {
	Member         string  `json:"member"`
	SentMS         float64 `json:"sent_ms"`
	AcknowledgedMS float64 `json:"acknowledged_ms"`
	SyncSource     string  `json:"sync_source,omitempty"`
}

// fewWrites are answered unless limit= says how many.
const fewWrites = 100

func (c *Control) writes(p *proxy.Proxy, r *http.Request) (any, error) {
	q := r.URL.Query()
	link, concern := q.Get("link"), q.Get("waits_for")
	if link != "" && p.Link(link) == nil {
		return nil, noLink(p, link)
	}
	limit := fewWrites
	if given := q.Get("limit"); given != "" {
		n, err := strconv.Atoi(given)
		if err != nil || n < 1 {
			return nil, refuse(http.StatusBadRequest, fmt.Sprintf("limit=%q: use a number from 1", given))
		}
		limit = n
	}
	list := Writes{Writes: []Write{}}
	if c.Slow == nil {
		return list, nil
	}
	for _, w := range c.Slow.Writes() {
		if link != "" && w.Conn.Link != link || concern != "" && w.Concern != concern {
			continue
		}
		if len(list.Writes) == limit {
			break
		}
		list.Writes = append(list.Writes, describeWrite(&w))
	}
	return list, nil
}

func describeWrite(w *trace.SlowWrite) Write {
	began, waits := trace.Start(w.Exchange), &w.Waits
	at := func(s wire.Stamp) float64 { return ms(max(s.Sub(began), 0)) }
	d := Write{
		ID: w.ID, Began: w.Began(), Link: w.Conn.Link, From: w.Conn.From, To: w.Conn.To, Client: w.Conn.ClientAddr,
		Protocol: string(w.Protocol), Summary: w.Summary(), Database: w.Database, WaitsFor: w.Concern,
		Outcome: outcome(w), ErrorCode: w.StatusCode(), TotalMS: ms(waits.Total), Dominant: waits.Dominant,
		Parts:     Parts{ms(waits.Receive), ms(waits.Request), ms(waits.Server), ms(waits.Replication), ms(waits.Reply)},
		PlannedMS: ms(waits.Planned), AchievedMS: ms(waits.Achieved), StalledMS: ms(waits.Stalled),
		ReleasedBy: w.Replication.ReleasedBy, ReleasedBasis: w.Replication.Basis,
		Members: []WriteMember{}, NotWaitedFor: []string{}, Rules: []string{}, Meanwhile: describeMeanwhile(&w.Meanwhile),
	}
	if waits.Replication > 0 {
		d.ReplicationFromMS = at(max(w.Replication.Began, w.Sides[wire.ToServer].LastOut))
	}
	for _, m := range w.Replication.Acknowledged {
		d.Members = append(d.Members, WriteMember{m.Member, at(m.Sent), at(m.Acknowledged), m.SyncSource})
	}
	d.NotWaitedFor = append(d.NotWaitedFor, w.Replication.Behind...)
	for _, f := range w.Faults {
		d.Rules = append(d.Rules, f.Rule)
	}
	if w.Peer != nil {
		d.Application = w.Peer.Application
	}
	if m := w.Marker; m != nil {
		d.Scenario = m.Scenario + ": " + m.Step
	}
	return d
}

func outcome(w *trace.SlowWrite) string {
	switch {
	case w.NoReply:
		return "unacknowledged"
	case w.Missing():
		return "no_reply"
	case w.Failed():
		return "error"
	case w.Unreplicated():
		return "unreplicated"
	}
	return "ok"
}
