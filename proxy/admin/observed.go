package admin

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/trace"
)

// Observed is the answer of GET /v1/observed: what servers did lately, for those
// that the file has asked (observe). What happened in a second in which writes
// were slow need not be why.
type Observed struct {
	Servers []ObservedServer `json:"servers"`
}

// ObservedServer is one of them.
type ObservedServer struct {
	Server string `json:"server"`
	// TicketRule is how MongoDB's tickets are read in the server's version;
	// empty: it has none.
	TicketRule string `json:"ticket_rule,omitempty"`
	// Samples are by second, or as often as was asked, the newest last.
	Samples []Sample `json:"samples"`
}

// Sample is what a server did in the Seconds before At.
type Sample struct {
	At      time.Time `json:"at"`
	Seconds float64   `json:"seconds"`
	// Values are by the measure's name, which ends in its unit; marks are 1 or 0.
	// What the server doesn't say is left out.
	Values map[string]float64 `json:"values"`
	Lags   []MemberLag        `json:"lags,omitempty"`
}

// MemberLag is how far a member is behind, in milliseconds. What isn't said is left
// out.
type MemberLag struct {
	Member  string   `json:"member"`
	Written *float64 `json:"written_ms,omitempty"`
	Durable *float64 `json:"durable_ms,omitempty"`
	Applied *float64 `json:"applied_ms,omitempty"`
}

// Meanwhile is what the server did during a write's server part.
type Meanwhile struct {
	// Samples overlap that part. AgeMS is how old the newest was when the reply
	// came; negative: it was taken after, and all of the part is covered.
	Samples int                `json:"samples"`
	AgeMS   float64            `json:"sample_age_ms"`
	Values  map[string]float64 `json:"values"`
}

// DescribeServer is a server with these samples.
func DescribeServer(name string, list []*trace.Activity) ObservedServer {
	s := ObservedServer{Server: name, Samples: []Sample{}}
	for _, a := range list {
		s.TicketRule = a.TicketRule
		d := Sample{At: a.To, Seconds: a.To.Sub(a.From).Seconds(), Values: valuesOf(a)}
		for _, l := range a.Lags {
			d.Lags = append(d.Lags, MemberLag{l.Member, lagMS(l.Written), lagMS(l.Durable), lagMS(l.Applied)})
		}
		s.Samples = append(s.Samples, d)
	}
	return s
}

func valuesOf(a *trace.Activity) map[string]float64 {
	values := map[string]float64{}
	for _, m := range trace.Measures() {
		if v, ok := a.Get(m); ok {
			values[m.String()] = v
		}
	}
	return values
}

func lagMS(d time.Duration) *float64 {
	if d == trace.NoLag {
		return nil
	}
	v := ms(d)
	return &v
}

func describeMeanwhile(m *trace.Meanwhile) *Meanwhile {
	if m.Samples == 0 {
		return nil
	}
	return &Meanwhile{Samples: m.Samples, AgeMS: ms(m.Age), Values: valuesOf(&m.Activity)}
}

// fewSamples are answered of each server unless limit= says how many.
const fewSamples = 60

func (c *Control) observed(_ *proxy.Proxy, r *http.Request) (any, error) {
	q := r.URL.Query()
	limit := fewSamples
	if given := q.Get("limit"); given != "" {
		n, err := strconv.Atoi(given)
		if err != nil || n < 1 {
			return nil, refuse(http.StatusBadRequest, fmt.Sprintf("limit=%q: use a number from 1", given))
		}
		limit = n
	}
	all := Observed{Servers: []ObservedServer{}}
	if c.Observed == nil {
		return all, nil
	}
	names, server := c.Observed.Servers(), q.Get("server")
	if server != "" && !slices.Contains(names, server) {
		return nil, refuse(http.StatusNotFound, fmt.Sprintf("nobody asks a server %q what it does: %s", server, observedWords(names)))
	}
	for _, name := range names {
		if server == "" || name == server {
			all.Servers = append(all.Servers, DescribeServer(name, c.Observed.Latest(name, limit)))
		}
	}
	return all, nil
}

func observedWords(names []string) string {
	if len(names) == 0 {
		return "no cluster of the file has observe"
	}
	return fmt.Sprintf("use one of %q", names)
}
