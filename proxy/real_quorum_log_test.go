//go:build unix

package proxy_test

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wirewait/wirewait/wire"
)

// The truth is the primary's own log. Each walsender says at debug2 what its
// standby acknowledges, and at debug3, whenever it's its turn to, up to where it
// has released the backends that wait (ProcessStandbyReplyMessage in
// src/backend/replication/walsender.c and SyncRepReleaseWaiters in syncrep.c, the
// same in 15, 17 and 18). The first that released anybody and came up to a
// commit's end released that commit. (It wakes them before it says so, and on a
// busy machine another that has nobody to release may be heard first. But if that
// one was heard before the other's standby had the commit at all, the session came
// to wait when it needn't any more.) It's usually the one that satisfied the rule
// who says so. But a walsender enters an acknowledgement before it looks whom to
// release, and another that looks in between acts on it first.
//
// Which commit a client's write was is known from the client, which asked for
// its transaction's number, and from pg_walinspect, which knows where that ends.

var truthSettings = map[string]string{"log_min_messages": "debug3", "log_line_prefix": "app=%a pid=%p xid=%x ", "wal_keep_size": "256MB"}

var (
	truthLine = regexp.MustCompile(`^app=(\S*) pid=(\d+) xid=(\d+) (DEBUG:  released |DEBUG:  write |LOG:  .* END;$)`)
	howMany   = regexp.MustCompile(`(\d+) procs`)
	anLSN     = regexp.MustCompile(`[0-9A-F]+/[0-9A-F]+`)
)

// heard is what walsenders said of a level, in the order in which they did.
type heard struct {
	upTo []wire.Position // what they came up to so far, whoever did
	by   []string
	line []int // of the log
}

func (h *heard) add(upTo wire.Position, by string, line int) {
	if n := len(h.upTo); n > 0 && h.upTo[n-1].Reaches(upTo) {
		return // what another came up to before, and so not the first for anything
	}
	h.upTo, h.by, h.line = append(h.upTo, upTo), append(h.by, by), append(h.line, line)
}

// first is the first who came up to a position, and where the log says so.
func (h *heard) first(end wire.Position) (by string, line int) {
	i, _ := slices.BinarySearchFunc(h.upTo, end, wire.Position.Compare)
	if i == len(h.upTo) {
		return "", -1
	}
	return h.by[i], h.line[i]
}

// truth is what the primary's log says.
type truth struct {
	released, idle [wire.Levels]heard // those who released somebody, and those who found nobody
	acknowledged   map[string]*[wire.Levels]heard
	commits        []made // by END, whose xid stands in the log where statements do
}

// truth reads the primary's log.
func (r *quorumRig) truth(t *testing.T) *truth {
	t.Helper()
	all := &truth{acknowledged: map[string]*[wire.Levels]heard{}}
	n := 0
	for line := range strings.Lines(r.cluster.Primary.Log()) {
		if m := truthLine.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			n++
			all.read(t, line, m, n)
		}
	}
	return all
}

func (all *truth) read(t *testing.T, line string, m []string, n int) {
	t.Helper()
	by := m[1]
	if m[4][0] == 'L' {
		pid, err1 := strconv.ParseInt(m[2], 10, 32)
		xid, err2 := strconv.ParseUint(m[3], 10, 32)
		if err := cmp.Or(err1, err2); err != nil {
			t.Fatal(err)
		}
		all.commits = append(all.commits, made{pid: int32(pid), xid: uint32(xid)})
		return
	}
	acks := all.acknowledged[by]
	if acks == nil {
		acks = &[wire.Levels]heard{}
		all.acknowledged[by] = acks
	}
	counts := howMany.FindAllStringSubmatch(line, wire.Levels)
	for l, s := range anLSN.FindAllString(line, wire.Levels) {
		upTo := lsn(t, s)
		switch {
		case len(counts) == 0:
			acks[l].add(upTo, by, n)
		case counts[l][1] != "0":
			all.released[l].add(upTo, by, n)
		default:
			all.idle[l].add(upTo, by, n)
		}
	}
}

// acknowledgedAt is where the log says that a standby came up to a position.
func (all *truth) acknowledgedAt(by string, l wire.Level, end wire.Position) int {
	acks := all.acknowledged[by]
	if acks == nil {
		return -1
	}
	_, line := acks[l].first(end)
	return line
}

// of is who released a position at a level, and whose acknowledgement was the
// last before that. Where any one is enough, who released it without having it
// acted for that one.
func (all *truth) of(end wire.Position, level string, anyOne bool) (by, last string) {
	l := map[string]wire.Level{"remote_write": wire.Written, "on": wire.Durable, "remote_apply": wire.Applied}[level]
	by, released := all.released[l].first(end)
	if idle, line := all.idle[l].first(end); idle != "" && (by == "" || line < all.acknowledgedAt(by, l, end) && line < released) {
		by, released = idle, line
	}
	latest := -1
	for member := range all.acknowledged {
		if line := all.acknowledgedAt(member, l, end); line > latest && line < released {
			last, latest = member, line
		}
	}
	if !anyOne {
		return by, last
	}
	if at := all.acknowledgedAt(by, l, end); at >= 0 && at < released {
		return by, by
	}
	return last, last
}

func lsn(t *testing.T, s string) wire.Position {
	t.Helper()
	hi, lo, _ := strings.Cut(s, "/")
	h, err1 := strconv.ParseUint(hi, 16, 32)
	l, err2 := strconv.ParseUint(lo, 16, 32)
	if err := cmp.Or(err1, err2); err != nil {
		t.Fatalf("%q is no LSN: %v", s, err)
	}
	return wire.LSN(h<<32 | l)
}
