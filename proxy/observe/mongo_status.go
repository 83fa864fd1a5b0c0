package observe

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/trace"
)

// What serverStatus has, and where. Names moved between versions: each is looked
// for in all its places, and what is in none isn't said. Sources:
// wiredtiger/dist/stat_data.py, src/mongo/db/admission/queues_server_status_section.cpp,
// src/mongo/util/concurrency/ticketholder.cpp, src/mongo/db/admission/flow_control.cpp.
//
//	                 up to 7.0                              8.0 and later
//	checkpoint       wiredTiger.transaction.                wiredTiger.checkpoint.
//	                   transaction checkpoint ...             most recent time (msecs), ...
//	tickets          wiredTiger.concurrentTransactions      queues.execution
//	journal, flow control, latencies: the same

// lookup goes one step after the other: the driver's takes it for granted that
// inner documents are whole.
func lookup(doc bson.Raw, path ...string) (v bson.RawValue, ok bool) {
	for i, key := range path {
		if i > 0 {
			if doc, ok = v.DocumentOK(); !ok {
				return v, false
			}
		}
		var err error
		if v, err = doc.LookupErr(key); err != nil {
			return v, false
		}
	}
	return v, len(path) > 0
}

// inner is a document in a document; nil: there is none.
func inner(doc bson.Raw, path ...string) bson.Raw {
	v, _ := lookup(doc, path...)
	d, _ := v.DocumentOK()
	return d
}

// number reads a number of any type, or a truth value.
func number(doc bson.Raw, path ...string) (float64, bool) {
	v, ok := lookup(doc, path...)
	if !ok {
		return 0, false
	}
	if b, ok := v.BooleanOK(); ok {
		if b {
			return 1, true
		}
		return 0, true
	}
	return v.AsFloat64OK()
}

// first is the number at the first of several places that has one.
func first(doc bson.Raw, places ...[]string) (float64, bool) {
	for _, p := range places {
		if v, ok := number(doc, p...); ok {
			return v, true
		}
	}
	return 0, false
}

func readStatus(s bson.Raw, l *look) {
	readJournal(s, l)
	readCheckpoint(s, l)
	version, _ := s.Lookup("version").StringValueOK()
	readTickets(s, version, l)
	readFlowControl(s, l)
	if v, ok := number(s, "globalLock", "currentQueue", "total"); ok {
		l.now[trace.WaitingLock] = v
	}
	if ops, ok := number(s, "opLatencies", "writes", "ops"); ok {
		l.counts[trace.Writes] = ops
		if micros, ok := number(s, "opLatencies", "writes", "latency"); ok {
			l.means[trace.WriteTime] = mean{micros / 1000, ops}
		}
	}
	count(l, trace.WriteConflicts, s, "metrics", "operation", "writeConflicts")
}

func count(l *look, m trace.Measure, s bson.Raw, path ...string) {
	if v, ok := number(s, path...); ok {
		l.counts[m] = v
	}
}

func readJournal(s bson.Raw, l *look) {
	count(l, trace.JournalBytes, s, "wiredTiger", "log", "log bytes written")
	syncs, ok := number(s, "wiredTiger", "log", "log sync operations")
	if !ok {
		return
	}
	l.counts[trace.JournalSyncs] = syncs
	if micros, ok := number(s, "wiredTiger", "log", "log sync time duration (usecs)"); ok {
		l.means[trace.JournalTime] = mean{micros / 1000, syncs}
	}
}

func readCheckpoint(s bson.Raw, l *look) {
	// progress state: 0 is inactive (wiredtiger/src/checkpoint/checkpoint_private.h).
	running, ok := first(s, []string{"wiredTiger", "checkpoint", "progress state"},
		[]string{"wiredTiger", "transaction", "transaction checkpoint currently running"})
	if ok {
		l.now[trace.Checkpoint] = max(0, min(running, 1))
	}
	if ms, ok := first(s, []string{"wiredTiger", "checkpoint", "most recent time (msecs)"},
		[]string{"wiredTiger", "transaction", "transaction checkpoint most recent time (msecs)"}); ok {
		l.now[trace.CheckpointTime] = ms
	}
	if n, ok := first(s, []string{"wiredTiger", "checkpoint", "total succeed number of checkpoints"},
		[]string{"wiredTiger", "transaction", "transaction checkpoints"}); ok {
		l.checkpoints = &n
	}
}

// pool are the measures of one kind of tickets.
type pool struct {
	name                               string
	total, available, queued, canceled trace.Measure
	wait                               trace.Measure
}

var pools = [...]pool{
	{"write", trace.Tickets, trace.TicketsAvailable, trace.TicketsQueued, trace.TicketsCanceled, trace.TicketWait},
	{"read", trace.ReadTickets, trace.ReadTicketsAvailable, trace.ReadTicketsQueued, trace.ReadTicketsCanceled, trace.ReadTicketWait},
}

func readTickets(s bson.Raw, version string, l *look) {
	both := inner(s, "queues", "execution")
	if both == nil {
		if both = inner(s, "wiredTiger", "concurrentTransactions"); both == nil {
			return
		}
	}
	rule := ruleOf(version)
	l.ticketRule = rule.words
	l.now[trace.TicketsShort] = 0
	for _, p := range pools {
		doc := inner(both, p.name)
		if doc == nil {
			continue
		}
		p.read(doc, l)
		if rule.short(l.now[p.total], l.now[p.available], l.now[p.queued]) {
			l.now[trace.TicketsShort] = 1
		}
	}
}

func (p *pool) read(doc bson.Raw, l *look) {
	if v, ok := number(doc, "totalTickets"); ok {
		l.now[p.total] = v
	}
	if v, ok := number(doc, "available"); ok {
		l.now[p.available] = v
	}
	// Each priority has a queue of its own; before there were priorities, if
	// there is a queue at all, it stands in the document itself.
	for _, path := range [][]string{nil, {"normalPriority"}, {"lowPriority"}} {
		at := func(name string) (float64, bool) { return number(doc, append(path[:len(path):len(path)], name)...) }
		if v, ok := at("queueLength"); ok {
			l.now[p.queued] += v
		}
		if v, ok := at("canceled"); ok {
			l.counts[p.canceled] += v
		}
		if micros, ok := at("totalTimeQueuedMicros"); ok {
			n, _ := at("addedToQueue")
			sum := l.means[p.wait]
			l.means[p.wait] = mean{sum.ms + micros/1000, sum.n + n}
		}
	}
}

// ticketRule is how a version's tickets are read.
type ticketRule struct {
	words string
	short func(total, available, queued float64) bool
}

// From 7.0 the number of tickets follows the load, so that a pool that is just
// large enough is empty at its best, and only a queue tells; before, it's fixed,
// and the queue isn't shown
// (https://www.mongodb.com/docs/manual/reference/command/serverStatus/,
// wiredTiger.concurrentTransactions).
var (
	queueRule = ticketRule{
		"7.0 and later: tickets are short when more operations queue than there are tickets; none available is no sign",
		func(total, _, queued float64) bool { return total > 0 && queued > total },
	}
	emptyRule = ticketRule{
		"before 7.0: tickets are short when none is available",
		func(total, available, _ float64) bool { return total > 0 && available <= 0 },
	}
)

// ruleOf takes a version that it can't read for a late one.
func ruleOf(version string) ticketRule {
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); err == nil && n < 7 {
		return emptyRule
	}
	return queueRule
}

func readFlowControl(s bson.Raw, l *look) {
	if v, ok := number(s, "flowControl", "isLagged"); ok {
		l.now[trace.FlowControl] = v
	}
	if v, ok := number(s, "flowControl", "targetRateLimit"); ok {
		l.now[trace.FlowControlRate] = v
	}
	if micros, ok := number(s, "flowControl", "timeAcquiringMicros"); ok {
		l.counts[trace.FlowControlWait] = micros / 1000
	}
}

// readSet finds how far others are behind, if this is the primary: the others
// know less of each other.
func readSet(s bson.Raw, l *look, name func(host string, id int) string) {
	const primary = 1
	if state, _ := number(s, "myState"); state != primary {
		return
	}
	applied, ok1 := date(s, "optimes", "lastAppliedWallTime")
	committed, ok2 := date(s, "optimes", "lastCommittedWallTime")
	if ok1 && ok2 {
		l.now[trace.MajorityLag] = milliseconds(max(applied.Sub(committed), 0))
	}
	array, _ := s.Lookup("members").ArrayOK()
	values, _ := array.Values()
	var members []bson.Raw
	for _, v := range values {
		m, _ := v.DocumentOK()
		if self, _ := number(m, "self"); self != 0 {
			applied, ok1 = wall(m, "lastAppliedWallTime", "optimeDate")
			continue
		}
		members = append(members, m)
	}
	if !ok1 {
		return
	}
	worst := time.Duration(0)
	for _, m := range members {
		behind := trace.MemberLag{Member: memberName(m, name), Written: trace.NoLag, Durable: trace.NoLag, Applied: trace.NoLag}
		for field, to := range map[string]*time.Duration{"Written": &behind.Written, "Durable": &behind.Durable, "Applied": &behind.Applied} {
			optime := map[string]string{"Written": "", "Durable": "optimeDurableDate", "Applied": "optimeDate"}[field]
			if at, ok := wall(m, "last"+field+"WallTime", optime); ok {
				*to = max(applied.Sub(at), 0)
			}
		}
		if behind.Applied == trace.NoLag { // an arbiter, or it was never heard of
			continue
		}
		worst = max(worst, behind.Applied)
		l.lags = append(l.lags, behind)
	}
	if len(l.lags) > 0 {
		l.now[trace.Lag] = milliseconds(worst)
	}
}

// wall is a moment that is there and isn't the epoch, which stands for none.
// Wall times come with positions; the dates of optimes with heartbeats alone, so
// that they may be two seconds old (src/mongo/db/repl/topology_coordinator.cpp).
func wall(m bson.Raw, fields ...string) (time.Time, bool) {
	for _, f := range fields {
		if at, ok := date(m, f); ok && at.Unix() > 0 {
			return at, true
		}
	}
	return time.Time{}, false
}

func date(doc bson.Raw, path ...string) (time.Time, bool) {
	v, _ := lookup(doc, path...)
	ms, ok := v.DateTimeOK()
	return time.UnixMilli(ms), ok
}

func memberName(m bson.Raw, name func(string, int) string) string {
	host, _ := m.Lookup("name").StringValueOK()
	id, _ := number(m, "_id")
	if named := name(host, int(id)); named != "" {
		return named
	}
	return fmt.Sprint(int(id))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
