package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/wirewait/wirewait/proxy/admin"
	"github.com/wirewait/wirewait/trace"
)

// renderReport is a table of waits and one of links, in milliseconds.
func renderReport(r *reported, rate float64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d writes", r.Waits.Writes)
	if rate > 0 {
		fmt.Fprintf(&b, ", %.0f/s", rate)
	}
	if r.Waits.Dropped > 0 {
		fmt.Fprintf(&b, ", and %d exchanges that found no room to be counted", r.Waits.Dropped)
	}
	b.WriteString("\n")
	if len(r.Waits.Rows) > 0 {
		b.WriteString("\n" + waitTable(r.Waits.Rows))
	}
	b.WriteString("\n" + linkTable(r.Links))
	return b.String()
}

func waitTable(rows []admin.Wait) string {
	named := func(of func(*admin.Wait) string) bool {
		for i := range rows {
			if of(&rows[i]) != "" {
				return true
			}
		}
		return false
	}
	columns := []struct {
		head string
		of   func(*admin.Wait) string
	}{
		{"link", func(w *admin.Wait) string { return w.Link }},
		{"operation", func(w *admin.Wait) string { return w.Operation }},
		{"basis", func(w *admin.Wait) string { return w.Basis }},
		{"replication's", func(w *admin.Wait) string { return w.ReplicationBasis }},
	}
	var head []string
	for _, c := range columns {
		if named(c.of) {
			head = append(head, c.head)
		}
	}
	left := len(head) + 1
	cells := [][]string{append(head, "waits for", "count", "errors", "p50 ms", "p95 ms", "p99 ms", "mean ms",
		trace.PartReceive, trace.PartRequest, trace.PartServer, trace.PartReplication, trace.PartReply)}
	for i := range rows {
		w := &rows[i]
		var row []string
		for _, c := range columns {
			if named(c.of) {
				row = append(row, printable(c.of(w)))
			}
		}
		cells = append(cells, append(row, printable(w.WaitsFor), strconv.FormatUint(w.Count, 10), strconv.FormatUint(w.Errors, 10),
			milli(w.Total.P50), milli(w.Total.P95), milli(w.Total.P99), milli(w.Total.Mean),
			milli(w.Receive.Mean), milli(w.Request.Mean), milli(w.Server.Mean), milli(w.Replication.Mean), milli(w.Reply.Mean)))
	}
	return trace.Align(cells, left)
}

// linkTable has, for each direction, the delay that was planned and the one that
// was achieved: means over what was held.
func linkTable(links []admin.Link) string {
	cells := [][]string{{"link", "round trip", "open", "to server ms", "to client ms", "p99 error ms", "queued", "paused", "stalled ms", "bytes", "not decoded"}}
	for i := range links {
		l := &links[i]
		s, c := &l.ToServer, &l.ToClient
		var undecoded uint64
		for _, n := range l.DecodeFailures {
			undecoded += n
		}
		undecoded += l.Connections.Encrypted + l.Connections.Opaque
		cells = append(cells, []string{
			printable(l.Name), l.Delay.RTT, strconv.FormatInt(l.Connections.Open, 10), plannedAchieved(s), plannedAchieved(c), worstError(s, c),
			size(s.QueuedBytes + c.QueuedBytes), strconv.FormatInt(s.PausedConnections+c.PausedConnections, 10), milli(s.StalledMS + c.StalledMS),
			size(int64(s.Bytes + c.Bytes)), strconv.FormatUint(undecoded, 10),
		})
	}
	return trace.Align(cells, 1)
}

// plannedAchieved is "40.00 -> 40.06".
func plannedAchieved(w *admin.Way) string {
	if w.HeldRuns == 0 {
		return "-"
	}
	return milli(w.PlannedMS) + " -> " + milli(w.AchievedMS)
}

// worstError is the larger p99 of how much too long exchanges were held.
func worstError(ways ...*admin.Way) string {
	worst, any := 0.0, false
	for _, w := range ways {
		if w.DelayError != nil {
			worst, any = max(worst, w.DelayError.P99), true
		}
	}
	if !any {
		return "-"
	}
	return milli(worst)
}

// milli prints milliseconds, to the microsecond below 10.
func milli(v float64) string {
	precision := 3
	switch {
	case v == 0:
		precision = 0
	case v >= 100:
		precision = 1
	case v >= 10:
		precision = 2
	}
	return strconv.FormatFloat(v, 'f', precision, 64)
}

// size is in the largest unit that it has one of.
func size(n int64) string { return inUnits(n, 1024, "B", "KiB", "MiB", "GiB", "TiB") }

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
