package mongod

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// positions is replSetUpdatePosition's document: this member's own progress and
// that of every member that it has heard of and holds to be up, which is how a
// chained member's gets to the primary (src/mongo/db/repl/topology_coordinator.cpp,
// prepareReplSetUpdatePositionCommand). Server.mu is held.
func (s *Server) positions() bson.D {
	r := s.set
	optimes := bson.A{}
	for i, m := range r.config.members {
		p := r.positionOf(i)
		if p.applied.OpTime == (OpTime{}) || i != r.self && r.peers[i].state == stateDown {
			continue
		}
		optimes = append(optimes, bson.D{
			{Key: "durableOpTime", Value: wireOpTime(p.durable.OpTime)}, {Key: "durableWallTime", Value: p.durable.date()},
			{Key: "appliedOpTime", Value: wireOpTime(p.applied.OpTime)}, {Key: "appliedWallTime", Value: p.applied.date()},
			{Key: "writtenOpTime", Value: wireOpTime(p.written.OpTime)}, {Key: "writtenWallTime", Value: p.written.date()},
			{Key: "memberId", Value: m.memberID}, {Key: "cfgver", Value: configVersion},
		})
	}
	return bson.D{
		{Key: "replSetUpdatePosition", Value: int32(1)}, {Key: "optimes", Value: optimes},
		{Key: "$replData", Value: r.metadata()}, {Key: "maxTimeMSOpOnly", Value: int32(reportTimeout.Milliseconds())},
	}
}

func readMark(doc bson.Raw, opTime, wall string) mark {
	ms, _ := doc.Lookup(wall).DateTimeOK()
	return mark{readOpTime(doc.Lookup(opTime)), time.UnixMilli(ms)}
}

// readPosition reads by name: the order differs between versions, and those
// before 8.0 have nothing written but what is applied.
func readPosition(doc bson.Raw) position {
	p := position{
		durable: readMark(doc, "durableOpTime", "durableWallTime"),
		applied: readMark(doc, "appliedOpTime", "appliedWallTime"),
		written: readMark(doc, "writtenOpTime", "writtenWallTime"),
	}
	if p.written.OpTime == (OpTime{}) {
		p.written = p.applied
	}
	return p
}

// updatePosition is the other side: members that follow this one say how far
// they and those behind them have come.
func (s *Server) updatePosition(q *request) (bson.D, error) {
	array, _ := q.body.Lookup("optimes").ArrayOK()
	values, err := array.Values()
	if err != nil {
		return nil, failedToParse("optimes: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set == nil {
		return nil, notReplicated()
	}
	// Taken under the lock: what is taken in later is later.
	at := time.Now()
	for _, v := range values {
		doc, _ := v.DocumentOK()
		if version, ok := doc.Lookup("cfgver").AsInt64OK(); ok && version != configVersion {
			return nil, &commandError{code: 93, name: "InvalidReplicaSetConfig", message: "the configuration's version is another"}
		}
		id, ok := doc.Lookup("memberId").AsInt64OK()
		member := s.set.config.index(id)
		if !ok || member < 0 {
			return nil, &commandError{code: 74, name: "NodeNotFound", message: "no member has this memberId"}
		}
		s.heardPosition(member, readPosition(doc), viaReport, at)
	}
	return bson.D{}, nil
}

// heardPosition takes in what somebody says of a member's progress. Server.mu is
// held.
func (s *Server) heardPosition(member int, p position, via string, at time.Time) {
	if member == s.set.self {
		return
	}
	s.truth.arrived(member, via, p, at)
	peer := &s.set.peers[member]
	if via == viaReport {
		peer.heard = at
	}
	if !peer.position.upTo(p) {
		return
	}
	if via == viaReport {
		s.report(false) // on to this member's own source
	}
	s.moved(cause{member, via, at})
}

func notReplicated() error {
	return &commandError{code: 76, name: "NoReplicationEnabled", message: "not running with --replSet"}
}
