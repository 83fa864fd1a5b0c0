package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wirewait/wirewait/proxy/admin"
	"github.com/wirewait/wirewait/trace"
)

// limit is one of --max-p99 and its like.
type limit struct {
	flag    string
	of      func(*admin.Quantiles) float64
	concern string // empty: each
	part    string // empty: the whole
	most    time.Duration
}

var limitFlags = []struct {
	flag string
	of   func(*admin.Quantiles) float64
}{
	{"max-p50", func(q *admin.Quantiles) float64 { return q.P50 }},
	{"max-p95", func(q *admin.Quantiles) float64 { return q.P95 }},
	{"max-p99", func(q *admin.Quantiles) float64 { return q.P99 }},
	{"max-mean", func(q *admin.Quantiles) float64 { return q.Mean }},
}

// limitParts are the parts of a write, by name.
var limitParts = map[string]func(*admin.Wait) *admin.Quantiles{
	"":                    func(w *admin.Wait) *admin.Quantiles { return &w.Total },
	trace.PartReceive:     func(w *admin.Wait) *admin.Quantiles { return &w.Receive },
	trace.PartRequest:     func(w *admin.Wait) *admin.Quantiles { return &w.Request },
	trace.PartServer:      func(w *admin.Wait) *admin.Quantiles { return &w.Server },
	trace.PartReplication: func(w *admin.Wait) *admin.Quantiles { return &w.Replication },
	trace.PartReply:       func(w *admin.Wait) *admin.Quantiles { return &w.Reply },
}

// parseLimit reads [WAITS_FOR][/PART]=TIME, or TIME.
func parseLimit(text string) (l limit, err error) {
	value := text
	if i := strings.LastIndexByte(text, '='); i >= 0 {
		value = text[i+1:]
		l.concern, l.part, _ = strings.Cut(text[:i], "/")
		if l.part == "" && strings.HasSuffix(text[:i], "/") || limitParts[l.part] == nil {
			return l, fmt.Errorf("a write has no part %q: use receive, request, server, replication or reply", l.part)
		}
	}
	if _, err := strconv.Atoi(l.concern); err == nil {
		l.concern = "w:" + l.concern // as reports show it
	}
	l.most, err = time.ParseDuration(value)
	if err != nil || l.most <= 0 {
		return l, errors.New("write WAITS_FOR=TIME with a time above 0, such as majority=250ms")
	}
	return l, nil
}

// check says, of each concern that is meant, whether the limit holds.
func (l *limit) check(rows []admin.Wait, minCount uint64, hint string, say func(ok bool, format string, args ...any)) {
	found := false
	for i := range rows {
		w := &rows[i]
		if l.concern != "" && w.WaitsFor != l.concern {
			continue
		}
		found = true
		name := w.WaitsFor
		if name == "" {
			name = "unknown"
		}
		if enough := max(minCount, 1); w.Count-w.Missing < enough {
			say(false, "%s: %d writes with a reply, and at least %d are wanted%s", name, w.Count-w.Missing, enough, hint)
			continue
		}
		got := l.of(limitParts[l.part](w))
		what := strings.TrimPrefix(l.flag, "max-")
		if l.part != "" {
			what += " of " + l.part
		}
		most := float64(l.most) / float64(time.Millisecond)
		say(got <= most, "%s: %s is %s ms, and at most %s ms are allowed (%d writes)%s", name, what, milli(got), milli(most), w.Count-w.Missing, hint)
	}
	if found {
		return
	}
	if l.concern == "" {
		say(false, "0 writes seen%s", hint)
		return
	}
	say(false, "0 writes waited for %s%s%s", l.concern, others(rows), hint)
}

// others names what writes waited for instead.
func others(rows []admin.Wait) string {
	var names []string
	for i := range rows {
		if n := rows[i].WaitsFor; n != "" && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; there were: " + strings.Join(names, ", ")
}
