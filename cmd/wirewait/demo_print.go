package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/trace/otlp"
)

// keeper is a trace.Consumer that keeps a copy of the last write that is wanted.
type keeper struct {
	want func(*trace.Finished) bool

	mu   sync.Mutex
	kept *trace.Finished
}

// Consume copies what it keeps, for the tracer uses its record again.
func (k *keeper) Consume(f *trace.Finished) {
	if !f.Write || !f.Answered || !k.want(f) {
		return
	}
	x := *f.Exchange
	x.Mongo.WriteConcern.Raw = slices.Clone(x.Mongo.WriteConcern.Raw)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept = &trace.Finished{Exchange: &x, Conn: f.Conn, Waits: f.Waits, Replication: f.Replication}
	k.kept.Replication.Acknowledged = slices.Clone(f.Replication.Acknowledged)
	k.kept.Replication.Behind = slices.Clone(f.Replication.Behind)
}

func (k *keeper) last() *trace.Finished {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.kept
}

// print says what was seen. A demo that saw no write has failed, whatever the
// client says.
func (d *demo) print(server *demoServer, summary *trace.Summary, shown *keeper, exporter *otlp.Exporter) error {
	write := shown.last()
	if write == nil {
		return errors.New("no write was seen on the wire: please report this")
	}
	if d.json {
		return d.printJSON(server, summary, exporter)
	}
	fmt.Fprintln(d.out, "What each operation waited for (means, in ms):")
	fmt.Fprintln(d.out)
	summary.Table(d.out)
	fmt.Fprintln(d.out, "\nOne write:")
	fmt.Fprintln(d.out)
	trace.Waterfall(d.out, write, 100)
	fmt.Fprintln(d.out)
	_, err := fmt.Fprintln(d.out, spansLine(exporter))
	return err
}

func spansLine(e *otlp.Exporter) string {
	line := e.Describe()
	if n := e.Exported(); n > 0 {
		line += fmt.Sprintf(", %d spans sent", n)
	}
	if n := e.Dropped(); n > 0 {
		line += fmt.Sprintf(", %d spans lost", n)
	}
	return line
}

// demoRow is a row of the table in JSON. Times are means in milliseconds.
type demoRow struct {
	Operation   string  `json:"operation"`
	WaitsFor    string  `json:"waits_for,omitempty"`
	Write       bool    `json:"write"`
	Count       uint64  `json:"count"`
	Errors      uint64  `json:"errors"`
	Total       float64 `json:"total_ms"`
	Receive     float64 `json:"receive_ms"`
	Request     float64 `json:"request_ms"`
	Server      float64 `json:"server_ms"`
	Replication float64 `json:"replication_ms"`
	Reply       float64 `json:"reply_ms"`
}

func (d *demo) printJSON(server *demoServer, summary *trace.Summary, exporter *otlp.Exporter) error {
	ms := func(t time.Duration) float64 { return float64(t) / float64(time.Millisecond) }
	report := struct {
		Protocol string    `json:"protocol"`
		Server   string    `json:"server"`
		RTT      float64   `json:"rtt_ms"`
		Jitter   float64   `json:"jitter_ms"`
		Waits    []demoRow `json:"waits"`
		Traces   string    `json:"traces"`
	}{Protocol: string(server.protocol), Server: server.about, RTT: ms(d.rtt), Jitter: ms(d.jitter), Traces: spansLine(exporter)}
	for _, r := range summary.Rows() {
		report.Waits = append(report.Waits, demoRow{
			Operation: r.Operation, WaitsFor: r.Concern, Write: r.Write, Count: r.Count, Errors: r.Errors,
			Total: ms(r.Total.Mean), Receive: ms(r.Receive.Mean), Request: ms(r.Request.Mean),
			Server: ms(r.Server.Mean), Replication: ms(r.Replication.Mean), Reply: ms(r.Reply.Mean),
		})
	}
	enc := json.NewEncoder(d.out)
	enc.SetIndent("", "  ")
	return enc.Encode(report)
}
