package admin

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/trace"
)

// Waits is the answer of GET /v1/waits: what writes waited for, since the start
// or since DELETE /v1/waits.
type Waits struct {
	// Writes is how many were seen, whatever rows are shown.
	Writes uint64 `json:"writes"`
	// LeftOut is how many of them exact= leaves out of the rows.
	LeftOut uint64 `json:"left_out"`
	// Dropped is how many exchanges found no room in the tracer's queue: they
	// are in no row.
	Dropped uint64 `json:"dropped"`
	Rows    []Wait `json:"rows"`
}

// Wait is one row. What wasn't told apart is left out.
type Wait struct {
	Link      string `json:"link,omitempty"`
	Protocol  string `json:"protocol"`
	Operation string `json:"operation,omitempty"`
	// WaitsFor is the write concern, or PostgreSQL's synchronous_commit; "in
	// transaction" for what waits with its commit; empty: unknown, or a read.
	WaitsFor string `json:"waits_for"`
	Basis    string `json:"basis,omitempty"`
	// ReplicationBasis is how it is known for whom they waited, if links between
	// members were seen.
	ReplicationBasis string `json:"replication_basis,omitempty"`
	Write            bool   `json:"write"`
	Count            uint64 `json:"count"`
	// Errors counts those that failed or were not replicated as asked, Missing
	// those that lost their reply: their times are in no figure.
	Errors  uint64 `json:"errors"`
	Missing uint64 `json:"missing"`
	// Total is the whole; the others are its parts. Means add up.
	Total       Quantiles `json:"total"`
	Receive     Quantiles `json:"receive"`
	Request     Quantiles `json:"request"`
	Server      Quantiles `json:"server"`
	Replication Quantiles `json:"replication"`
	Reply       Quantiles `json:"reply"`
	// ReleasedBy counts the members whose acknowledgements released the writes.
	ReleasedBy map[string]uint64 `json:"released_by,omitempty"`
	// Buckets are what Total is worked out from, if they were asked for.
	Buckets *Buckets `json:"buckets,omitempty"`
}

// Buckets say how often each duration was seen, to 1 %. They only ever grow until
// DELETE /v1/waits: subtract earlier ones and you have those of the time between.
type Buckets struct {
	MS     []float64 `json:"ms"`
	Counts []uint64  `json:"counts"`
}

func describeBuckets(list []trace.Bucket) *Buckets {
	b := &Buckets{make([]float64, len(list)), make([]uint64, len(list))}
	for i := range list {
		b.MS[i], b.Counts[i] = ms(list[i].Time), list[i].Count
	}
	return b
}

// Quantiles describe many durations, in milliseconds.
type Quantiles struct {
	P50  float64 `json:"p50_ms"`
	P95  float64 `json:"p95_ms"`
	P99  float64 `json:"p99_ms"`
	Mean float64 `json:"mean_ms"`
}

func quantiles(q trace.Quantiles) Quantiles {
	return Quantiles{ms(q.P50), ms(q.P95), ms(q.P99), ms(q.Mean)}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (c *Control) waits(p *proxy.Proxy, r *http.Request) (any, error) {
	q := r.URL.Query()
	by, err := parseBy(q.Get("by"), q.Get("reads"), q.Get("exact"))
	if err != nil {
		return nil, err
	}
	if by.Buckets, err = yesOrNo("buckets", q.Get("buckets")); err != nil {
		return nil, err
	}
	link := q.Get("link")
	if link != "" && p.Link(link) == nil {
		return nil, noLink(p, link)
	}
	if link != "" {
		by.Link = true
	}
	w := Waits{Rows: []Wait{}, Dropped: p.Counters().Dropped}
	if c.Waits == nil {
		return w, nil
	}
	var shown uint64
	for _, row := range c.Waits.Group(by) {
		if link == "" || row.Link == link {
			shown += writesOf(&row)
			w.Rows = append(w.Rows, describeRow(&row))
		}
	}
	for _, row := range c.Waits.Group(trace.By{Link: true}) {
		w.Writes += row.Count
		if link == "" || row.Link == link {
			w.LeftOut += row.Count
		}
	}
	w.LeftOut -= min(shown, w.LeftOut) // of writes that were counted since
	return w, nil
}

func writesOf(r *trace.Row) uint64 {
	if r.Write {
		return r.Count
	}
	return 0
}

func parseBy(words, reads, exact string) (by trace.By, err error) {
	if words == "" {
		words = "link"
	}
	for w := range strings.SplitSeq(words, ",") {
		switch w {
		case "link":
			by.Link = true
		case "operation":
			by.Operation = true
		case "basis":
			by.Basis = true
		case "replication":
			by.Replication = true
		case "concern": // always is
		default:
			return by, refuse(http.StatusBadRequest, fmt.Sprintf("by=%q: use link, operation, basis, replication and concern, with commas between", words))
		}
	}
	switch exact {
	case "":
	case "concern":
		by.Exact = true
	case "replication":
		by.Exact, by.ExactReplication = true, true
	default:
		return by, refuse(http.StatusBadRequest, fmt.Sprintf("exact=%q: use concern (it is known exactly what a write waited for) or replication (and for whom)", exact))
	}
	by.Reads, err = yesOrNo("reads", reads)
	return by, err
}

func yesOrNo(name, given string) (bool, error) {
	switch given {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, refuse(http.StatusBadRequest, fmt.Sprintf("%s=%q: use true or false", name, given))
}

func describeRow(r *trace.Row) Wait {
	w := Wait{
		Link: r.Link, Protocol: r.Protocol, Operation: r.Operation, WaitsFor: r.Concern, Basis: r.Basis, ReplicationBasis: r.ReplicationBasis, Write: r.Write,
		Count: r.Count, Errors: r.Errors, Missing: r.Missing,
		Total: quantiles(r.Total), Receive: quantiles(r.Receive), Request: quantiles(r.Request),
		Server: quantiles(r.Server), Replication: quantiles(r.Replication), Reply: quantiles(r.Reply),
		ReleasedBy: r.ReleasedBy,
	}
	if r.Buckets != nil {
		w.Buckets = describeBuckets(r.Buckets)
	}
	return w
}

func (c *Control) resetWaits(*proxy.Proxy, *http.Request) (any, error) {
	if c.Waits != nil {
		c.Waits.Reset()
	}
	if c.Slow != nil {
		c.Slow.Reset()
	}
	return struct{}{}, nil
}
