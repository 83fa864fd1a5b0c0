package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
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

// rows are the application's writes by what they waited for, from the weakest.
func (d *demo) rows() []trace.Row {
	levels := d.cluster.levels()
	at := func(r trace.Row) int { return slices.Index(levels, strings.TrimPrefix(r.Concern, "w:")) }
	rows := slices.DeleteFunc(d.summary.Group(trace.By{}), func(r trace.Row) bool { return !r.Write || at(r) < 0 })
	slices.SortStableFunc(rows, func(a, b trace.Row) int { return at(a) - at(b) })
	return rows
}

// print says what was seen. A demo that saw no write has failed, whatever the
// client says.
func (d *demo) print(exporter *otlp.Exporter) error {
	write := d.kept.last()
	if write == nil {
		return errors.New("no write was seen on the wire: please report this")
	}
	if d.json {
		return d.printJSON(exporter)
	}
	d.printTable()
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

// printJSON prints a row for each level. Parts are means, in milliseconds, and
// members go without the name of the one cluster there is.
func (d *demo) printJSON(exporter *otlp.Exporter) error {
	ms := func(t time.Duration) float64 { return float64(t) / float64(time.Millisecond) }
	var rows []map[string]any
	for _, r := range d.rows() {
		by := map[string]uint64{}
		for name, n := range r.ReleasedBy {
			by[name[strings.LastIndexByte(name, '.')+1:]] = n
		}
		rows = append(rows, map[string]any{
			d.cluster.key(): strings.TrimPrefix(r.Concern, "w:"), "count": r.Count, "p50_ms": ms(r.Total.P50), "p99_ms": ms(r.Total.P99),
			"receive_ms": ms(r.Receive.Mean), "request_ms": ms(r.Request.Mean), "server_ms": ms(r.Server.Mean),
			"replication_ms": ms(r.Replication.Mean), "reply_ms": ms(r.Reply.Mean),
			"released_by": by, "basis": r.ReleasedBasis,
		})
	}
	enc := json.NewEncoder(d.out)
	enc.SetIndent("", "  ")
	return enc.Encode(map[string]any{"cluster": d.cluster.String(), "rows": rows, "traces": spansLine(exporter)})
}

func (d *demo) printTable() {
	fmt.Fprintln(d.out, "What writes waited for (parts are means, in ms):")
	fmt.Fprintln(d.out)
	w := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s\tcount\tp50\tp99\treceive\trequest\tserver\treplication\treply\treleased by\t\n", strings.ReplaceAll(d.cluster.key(), "write_", "write "))
	ms := func(t time.Duration) string { return fmt.Sprintf("%.2f", float64(t)/float64(time.Millisecond)) }
	for _, r := range d.rows() {
		fmt.Fprintln(w, strings.Join([]string{
			r.Concern, fmt.Sprint(r.Count), ms(r.Total.P50), ms(r.Total.P99), ms(r.Receive.Mean), ms(r.Request.Mean), ms(r.Server.Mean),
			ms(r.Replication.Mean), ms(r.Reply.Mean), releasers(&r), "",
		}, "\t"))
	}
	w.Flush()
}

// releasers is "s1 39, unknown 1", or that nobody was waited for.
func releasers(r *trace.Row) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(r.ReleasedBy)) {
		words = append(words, fmt.Sprintf("%s %d", name, r.ReleasedBy[name]))
	}
	if n := r.ReleasedBasis[trace.BasisUnknown]; n > 0 {
		words = append(words, fmt.Sprintf("unknown %d", n))
	}
	if len(words) == 0 {
		return "nobody"
	}
	return strings.Join(words, ", ")
}
