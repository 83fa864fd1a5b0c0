package proxy

import (
	"fmt"
	"slices"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// WALTimeouts are settings of a PostgreSQL cluster by which one end of a standby's
// stream gives up on the other, in which it hears nothing for so long: the server's
// wal_sender_timeout and the standby's wal_receiver_timeout. 0: not known, and
// taken for DefaultWALTimeout; Never: it waits for ever.
type WALTimeouts struct{ Sender, Receiver time.Duration }

// DefaultWALTimeout is what PostgreSQL has for both
// (https://www.postgresql.org/docs/current/runtime-config-replication.html).
const DefaultWALTimeout = time.Minute

// Never is a WALTimeouts that is switched off.
const Never time.Duration = -1

// Times within which members of a replica set expect something of each other.
const (
	// flowControl is half of flowControlTargetLagSeconds (10), at which the primary
	// begins to hold writes back (src/mongo/db/admission/flow_control.cpp). It's also
	// what a reply to a getMore may be late by that isn't streamed
	// (oplogNetworkTimeoutBufferSeconds, src/mongo/db/repl/oplog_fetcher.cpp).
	flowControl = 5 * time.Second
	// reportTimeout is a replSetUpdatePosition's maxTimeMSOpOnly, as 8.0.28 sends it.
	reportTimeout = 15 * time.Second
	// sourceLag is maxSyncSourceLagSecs (src/mongo/db/repl/topology_coordinator.cpp).
	sourceLag = 30 * time.Second
)

// Warning is something that a rule will do beyond what it's asked for.
type Warning struct{ Rule, Text string }

// RuleWarnings are what servers will do about rules that can be in force, on links
// that they can match on.
func RuleWarnings(rules []inject.Rule, links []LinkConfig) (all []Warning) {
	for i := range rules {
		r := &rules[i]
		if r.Effect != inject.EffectLag {
			continue
		}
		add := func(text string, args ...any) {
			if w := (Warning{r.Name, fmt.Sprintf(text, args...)}); !slices.Contains(all, w) {
				all = append(all, w)
			}
		}
		for k := range links {
			l := &links[k]
			if !mayMatch(&r.When, l) {
				continue
			}
			if l.Protocol == wire.MongoDB || l.Protocol == "" {
				warnOfSet(&r.With, add)
			}
			if l.Protocol == wire.Postgres || l.Protocol == "" {
				warnOfStandby(&r.With, l.WALTimeouts, add)
			}
		}
	}
	return all
}

// mayMatch reports whether a rule can match on some of a link's connections.
func mayMatch(w *inject.When, l *LinkConfig) bool {
	fits := func(wanted []string, is string) bool { return len(wanted) == 0 || slices.Contains(wanted, is) }
	from := fits(w.From, l.From)
	for i := range l.Sources {
		from = from || fits(w.From, l.Sources[i].Name)
	}
	return from && fits(w.Link, nameOf(*l)) && fits(w.To, l.To)
}

func warnOfSet(w *inject.With, add func(string, ...any)) {
	if w.Delay > flowControl {
		add("MongoDB: %v is more than %v: where a majority needs the member, the primary will hold all writes back (flow control, half of flowControlTargetLagSeconds); "+
			"members that don't stream (oplogFetcherUsesExhaust off, before 4.4) will break off: lag one member of several, or by less", w.Delay, flowControl)
	}
	if w.Delay > reportTimeout && w.Acknowledgements {
		add("MongoDB: %v is more than %v: the member's reports of its position will time out (replSetUpdatePosition), and others learn of it by heartbeats, every 2 s: "+
			"leave acknowledgements out, or lag by less", w.Delay, reportTimeout)
	}
	if w.Delay > sourceLag {
		add("MongoDB: %v is more than %v: members that follow this one will turn to another (maxSyncSourceLagSecs): lag by less if they are to stay", w.Delay, sourceLag)
	}
}

// warnOfStandby knows that an end which heard nothing for half of its time-out asks
// the other, whose answer is late by the lag. Seen on 15.
func warnOfStandby(w *inject.With, t WALTimeouts, add func(string, ...any)) {
	answer := w.Delay
	if w.Acknowledgements {
		answer *= 2
	}
	if limit := orDefault(t.Receiver); limit > 0 && answer > limit/2 {
		add("PostgreSQL: a standby that hears nothing for half of wal_receiver_timeout (%v) asks its server, and breaks off if the answer, %v late, isn't there after the other half: "+
			"keep the server busy, raise wal_receiver_timeout, or lag by less", limit, answer)
	}
	if limit := orDefault(t.Sender); limit > 0 && answer > limit/2 {
		add("PostgreSQL: a server that hears nothing for half of wal_sender_timeout (%v) asks the standby, and ends its connection if the answer, %v late, isn't there after the other half: "+
			"have it report more often than that (wal_receiver_status_interval, 10s by default), raise wal_sender_timeout, or lag by less", limit, answer)
	}
}

func orDefault(d time.Duration) time.Duration {
	if d == 0 {
		return DefaultWALTimeout
	}
	return d
}

// but are the time-outs with those in their place that were found.
func (t WALTimeouts) but(found WALTimeouts) WALTimeouts {
	if found.Sender != 0 {
		t.Sender = found.Sender
	}
	if found.Receiver != 0 {
		t.Receiver = found.Receiver
	}
	return t
}

// FoundWALTimeouts has warnings go by what a member, as links call it, was found to
// have; what is zero stays as the links have it.
func (p *Proxy) FoundWALTimeouts(member string, t WALTimeouts) {
	p.book.mu.Lock()
	defer p.book.mu.Unlock()
	if p.book.found == nil {
		p.book.found = map[string]WALTimeouts{}
	}
	if p.book.found[member] != t {
		p.book.found[member] = t
		p.warn()
	}
}

// warn logs what the rules that are in force now will do, once. Called with the
// book's lock held.
func (p *Proxy) warn() {
	var links []LinkConfig
	if !slices.ContainsFunc(p.book.rules, func(r inject.Rule) bool { return r.Effect == inject.EffectLag }) {
		p.book.warned = nil
		return
	}
	for _, l := range p.Links() {
		c := l.Config()
		c.WALTimeouts = c.WALTimeouts.but(p.book.found[c.To])
		links = append(links, c)
	}
	now := map[Warning]bool{}
	for _, w := range RuleWarnings(p.book.rules, links) {
		if now[w] = true; !p.book.warned[w] {
			p.log.Warn(w.Text, "rule", w.Rule)
		}
	}
	p.book.warned = now
}
