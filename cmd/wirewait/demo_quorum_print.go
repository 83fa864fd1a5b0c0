package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/trace/otlp"
)

// quorumRow is a row of the table in JSON. Parts are means in milliseconds.
type quorumRow struct {
	SynchronousCommit string            `json:"synchronous_commit"`
	Count             uint64            `json:"count"`
	P50               float64           `json:"p50_ms"`
	P99               float64           `json:"p99_ms"`
	Receive           float64           `json:"receive_ms"`
	Request           float64           `json:"request_ms"`
	Server            float64           `json:"server_ms"`
	Replication       float64           `json:"replication_ms"`
	Reply             float64           `json:"reply_ms"`
	ReleasedBy        map[string]uint64 `json:"released_by"`
	Basis             map[string]uint64 `json:"basis"`
}

func newQuorumRow(r *trace.Row) quorumRow {
	ms := func(t time.Duration) float64 { return float64(t) / float64(time.Millisecond) }
	row := quorumRow{
		SynchronousCommit: r.Concern, Count: r.Count, P50: ms(r.Total.P50), P99: ms(r.Total.P99),
		Receive: ms(r.Receive.Mean), Request: ms(r.Request.Mean), Server: ms(r.Server.Mean),
		Replication: ms(r.Replication.Mean), Reply: ms(r.Reply.Mean),
		ReleasedBy: r.ReleasedBy, Basis: r.ReleasedBasis,
	}
	if row.ReleasedBy == nil {
		row.ReleasedBy = map[string]uint64{}
	}
	return row
}

// print says what was seen. A demo that saw no write has failed, whatever the
// client says.
func (d *demoQuorum) print(exporter *otlp.Exporter, failed error) error {
	write := d.shown.last()
	switch {
	case failed != nil:
		return failed
	case write == nil:
		return errors.New("no write was seen on the wire: please report this")
	}
	var rows []quorumRow
	for _, r := range d.rows() {
		rows = append(rows, newQuorumRow(&r))
	}
	if d.json {
		report := struct {
			Names  string      `json:"synchronous_standby_names"`
			Rows   []quorumRow `json:"rows"`
			Traces string      `json:"traces"`
		}{d.wan.syncNames, rows, spansLine(exporter)}
		enc := json.NewEncoder(d.out)
		enc.SetIndent("", "  ")
		return enc.Encode(report)
	}
	d.printTable(rows)
	fmt.Fprintln(d.out, "\nOne write:")
	fmt.Fprintln(d.out)
	trace.Waterfall(d.out, write, 100)
	fmt.Fprintln(d.out)
	_, err := fmt.Fprintln(d.out, spansLine(exporter))
	return err
}

func (d *demoQuorum) printTable(rows []quorumRow) {
	fmt.Fprintln(d.out, "What commits waited for (parts are means, in ms):")
	fmt.Fprintln(d.out)
	w := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "synchronous_commit\tcount\tp50\tp99\treceive\trequest\tserver\treplication\treply\treleased by\t")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%s\t\n", r.SynchronousCommit, r.Count, r.P50, r.P99,
			r.Receive, r.Request, r.Server, r.Replication, r.Reply, releasers(r))
	}
	w.Flush()
}

// releasers is "s1 39, unknown 1", or that nobody was waited for.
func releasers(r quorumRow) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(r.ReleasedBy)) {
		words = append(words, fmt.Sprintf("%s %d", name, r.ReleasedBy[name]))
	}
	if n := r.Basis[trace.BasisUnknown]; n > 0 {
		words = append(words, fmt.Sprintf("unknown %d", n))
	}
	if len(words) == 0 {
		return "nobody"
	}
	return strings.Join(words, ", ")
}
