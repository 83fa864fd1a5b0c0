package trace

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/wirewait/wirewait/wire"
)

// Waterfall draws one exchange as a bar per part, about width columns wide (60
// at least), each bar beginning where the one before it ended. Time that we
// made is drawn with #, time of others with =.
//
//	INSERT orders   on   81.46 ms
//	request        40.06 ms  |#########           |  injected 40.00 ms
//	server         1.280 ms  |         ==         |
//	reply          40.12 ms  |           #########|  injected 40.00 ms
func Waterfall(w io.Writer, f *Finished, width int) {
	fmt.Fprintln(w, f.headline())
	bars := max(width, 60) - len("replication 12345.67 ms  ||  injected 1234.5 ms")
	var at time.Duration
	for _, p := range f.Waits.Parts() {
		if p.Time == 0 && !f.shown(p.Name) {
			continue
		}
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%-11s %8s ms  |%s|%s",
			p.Name, ms(p.Time), bar(at, p, f.Waits.Total, bars), f.remark(p)), " "))
		at += p.Time
	}
	if f.Waits.Stalled > 0 {
		fmt.Fprintf(w, "of which %s ms stalled: the line was full\n", ms(f.Waits.Stalled))
	}
}

// shown reports whether a part has a line even if it took no time.
func (f *Finished) shown(part string) bool {
	switch part {
	case PartRequest:
		return true
	case PartServer, PartReply:
		return !f.NoReply
	}
	return false
}

// Summary is the operation and what it was done to, as far as known: "insert
// orders". It holds no literal.
func (f *Finished) Summary() string {
	if f.Postgres.Summary != "" {
		return f.Postgres.Summary
	}
	return strings.TrimSpace(f.Operation + " " + f.Collection)
}

func (f *Finished) headline() string {
	words := []string{f.Summary(), f.Concern(), ms(f.Waits.Total) + " ms"}
	switch {
	case f.NoReply:
		words = append(words, "no reply expected")
	case f.Missing():
		words = append(words, "no reply came")
	case f.ErrorCode != "":
		words = append(words, "error "+f.ErrorCode)
	case f.Postgres.RolledBack:
		words = append(words, "rolled back")
	}
	words = slices.DeleteFunc(words, func(s string) bool { return s == "" })
	return strings.Join(words, "   ")
}

// bar is n columns with those of p filled. A part that took any time has a
// column at least.
func bar(at time.Duration, p Part, total time.Duration, n int) string {
	if total <= 0 {
		return strings.Repeat(" ", n)
	}
	column := func(d time.Duration) int { return int(float64(d)/float64(total)*float64(n) + 0.5) }
	from, to := column(at), column(at+p.Time)
	if p.Time > 0 && from == to {
		from = min(from, n-1)
		to = from + 1
	}
	mark := "="
	if p.Name == PartRequest || p.Name == PartReply {
		mark = "#"
	}
	return strings.Repeat(" ", from) + strings.Repeat(mark, to-from) + strings.Repeat(" ", n-to)
}

// remark says what else is known of a part.
func (f *Finished) remark(p Part) string {
	if p.Name == PartReplication && f.Replication.ReleasedBy != "" {
		return "  released by " + f.Replication.ReleasedBy
	}
	side := f.Sides[wire.ToServer]
	if p.Name == PartReply {
		side = f.Sides[wire.ToClient]
	} else if p.Name != PartRequest {
		return ""
	}
	if side.Planned == 0 {
		return ""
	}
	return "  injected " + ms(side.Planned) + " ms"
}
