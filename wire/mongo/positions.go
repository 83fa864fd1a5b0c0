package mongo

import (
	"encoding/binary"

	"github.com/wirewait/wirewait/wire"
)

// What members of a replica set tell each other of their logs. Three messages
// make reports; fields are read by name, as their order differs between versions.
//
//	who dials    message                       says
//	secondary    find, then one getMore        replies, unasked from the first on: entries
//	               on local.oplog.rs             of the oplog, each with ts and t   -> Sent
//	secondary    replSetUpdatePosition         optimes: [{memberId, durableOpTime,
//	                                             appliedOpTime, writtenOpTime}]     -> Reached
//	everybody    replSetHeartbeat              request: from, fromId, primaryId
//	                                           reply: opTime, durableOpTime,
//	                                             writtenOpTime, state, primaryId,
//	                                             syncingTo                          -> Reached
//
// (src/mongo/db/repl/oplog_fetcher.cpp; topology_coordinator.cpp,
// prepareReplSetUpdatePositionCommand; repl_set_heartbeat_args_v1.cpp and
// repl_set_heartbeat_response.cpp). Each optime is {ts, t}.
//
// Which message is one of these is known only when it's decoded, and its stamps
// must be taken when it's framed. So all messages of a connection make a report
// once its client has said, in its hello, that it's of the cluster
// (internalClient), and most are dropped. No member sends anything else before
// its hello is answered.
const (
	inOptimes node = 128 + iota
	inMember
	inWritten
	inDurable
	inApplied
	inCursor
	inEntries
	inEntry
	atPositionTS
	atPositionT
	atEntryTS
	atEntryT
	atMemberID
	atFromID
	atPrimaryID
	atState
	atSyncSource
	atVersion
)

// maxSetMembers bounds the members that one message speaks of; a set has at most
// 50 (src/mongo/db/repl/repl_set_config.h, kMaxMembers).
const maxSetMembers = 64

const statePrimary = 1 // MemberState in src/mongo/db/repl/member_state.h

// positions gathers what one message says.
type positions struct {
	list  []wire.Progress
	about standing // whose entry is being read
	level wire.Level
	entry wire.OpTime // of the oplog, being read
	sent  wire.Position

	from, primary, syncSource, host string
	state, configVersion            int64
}

// standing is one member's entry.
type standing struct {
	id      string
	reached [wire.Levels]wire.OpTime
}

func (s *standing) begin() {
	*s = standing{}
	for l := range s.reached {
		s.reached[l].T = -1
	}
}

// positionOf is an optime as a position. No optime has the term -1.
func positionOf(o wire.OpTime) wire.Position {
	if o.T < 0 || o.TS == 0 {
		return wire.Position{}
	}
	return wire.Position{Hi: uint64(o.T), Lo: o.TS}
}

// progress is a member's entry as others have it. Servers before 8.0 don't say
// what is written: it's what is applied.
func (s *standing) progress() wire.Progress {
	p := wire.Progress{Member: s.id}
	for l, o := range s.reached {
		p.Reached[l] = positionOf(o)
	}
	if p.Reached[wire.Written].IsZero() {
		p.Reached[wire.Written] = p.Reached[wire.Applied]
	}
	return p
}

// endMember takes the entry that was read.
func (p *positions) endMember() {
	if p.about.id != "" && len(p.list) < maxSetMembers {
		p.list = append(p.list, p.about.progress())
	}
	p.about.begin()
}

// element is visitor.element for what lies in the fields that standing took.
func (p *positions) element(at node, key []byte, typ byte) (node, action) {
	switch at {
	case inOptimes:
		p.endMember()
		return inMember, descend
	case inMember:
		if string(key) == "memberId" {
			return atMemberID, collect
		}
		return p.optime(key, "appliedOpTime")
	case inWritten, inDurable, inApplied:
		p.level = wire.Level(at - inWritten)
		if string(key) == "t" {
			return atPositionT, collect
		}
		return want(key, typ, "ts", typeTimestamp, atPositionTS)
	case inCursor:
		if string(key) == "nextBatch" || string(key) == "firstBatch" {
			return inEntries, descend
		}
	case inEntries:
		p.entry = wire.OpTime{T: -1}
		return inEntry, descend
	case inEntry:
		if string(key) == "t" {
			return atEntryT, collect
		}
		return want(key, typ, "ts", typeTimestamp, atEntryTS)
	}
	return nowhere, skip
}

// optime takes a field that is an optime; what is applied has another name in a
// heartbeat.
func (p *positions) optime(key []byte, applied string) (node, action) {
	switch string(key) {
	case "writtenOpTime":
		return inWritten, descend
	case "durableOpTime":
		return inDurable, descend
	case applied:
		return inApplied, descend
	}
	return nowhere, skip
}

// value is visitor.value.
func (p *positions) value(n node, typ byte, v []byte, text *interned) {
	switch n {
	case atPositionTS:
		p.about.reached[p.level].TS = binary.LittleEndian.Uint64(v)
		return
	case atEntryTS:
		p.entry.TS = binary.LittleEndian.Uint64(v)
		p.endEntry()
		return
	case atSyncSource:
		p.syncSource = text.text(v)
		return
	}
	i, ok := number(typ, v)
	if !ok {
		return
	}
	switch n {
	case atPositionT:
		p.about.reached[p.level].T = i
	case atEntryT:
		p.entry.T = i
		p.endEntry()
	case atMemberID:
		p.about.id = memberID(i, text)
	case atFromID:
		p.from = memberID(i, text)
	case atPrimaryID:
		p.primary = memberID(i, text)
	case atState:
		p.state = i
	case atVersion:
		p.configVersion = i
	}
}

// endEntry moves on to an entry of the oplog, once both its parts are there.
func (p *positions) endEntry() {
	if at := positionOf(p.entry); at.Compare(p.sent) > 0 {
		p.sent = at
	}
}

// memberID is a member's name in reports; -1 is nobody.
func memberID(i int64, text *interned) string {
	if i < 0 {
		return ""
	}
	return text.code(i)
}

// standing takes the fields of requests between members.
func (r *request) standing(op string, key []byte, typ byte) (node, action) {
	switch {
	case !r.s.open.WantsReports():
	case op == "replSetUpdatePosition" && string(key) == "optimes" && typ == typeArray:
		r.s.between = true
		r.about.begin()
		return inOptimes, descend
	case op == "replSetHeartbeat" && string(key) == "fromId":
		r.s.between = true
		return atFromID, collect
	case op == "replSetHeartbeat" && string(key) == "primaryId":
		return atPrimaryID, collect
	case op == "replSetHeartbeat" && string(key) == "configVersion":
		return atVersion, collect
	}
	return nowhere, skip
}

// standing takes the fields of replies between members, but for a heartbeat's
// opTime, which is read as any reply's.
func (r *reply) standing(key []byte, typ byte) (node, action) {
	switch {
	case r.oplog && string(key) == "cursor":
		return inCursor, descend
	case !r.heartbeat:
	case string(key) == "state":
		return atState, collect
	case string(key) == "primaryId":
		return atPrimaryID, collect
	case string(key) == "syncingTo":
		return want(key, typ, "syncingTo", typeString, atSyncSource)
	default:
		return r.optime(key, "")
	}
	return nowhere, skip
}
