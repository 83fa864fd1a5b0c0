package mongod

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

var stateNames = map[int]string{
	statePrimary: "PRIMARY", stateSecondary: "SECONDARY", stateUnknown: "UNKNOWN", stateDown: "(not reachable/healthy)", stateRollback: "ROLLBACK",
}

// replSetGetStatus (src/mongo/db/repl/topology_coordinator.cpp,
// prepareStatusResponse).
func replSetGetStatus(s *Server, _ *request) (bson.D, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.set
	if r == nil {
		return nil, notReplicated()
	}
	source, sourceID := "", int32(-1)
	if r.source >= 0 {
		source, sourceID = r.config.members[r.source].host, r.config.members[r.source].memberID
	}
	members := bson.A{}
	for i := range r.config.members {
		members = append(members, s.memberStatus(i))
	}
	majority := int32(r.config.majority())
	return bson.D{
		{Key: "set", Value: r.config.name}, {Key: "date", Value: bson.NewDateTimeFromTime(time.Now())}, {Key: "myState", Value: int32(r.state)},
		{Key: "term", Value: r.term}, {Key: "syncSourceHost", Value: source}, {Key: "syncSourceId", Value: sourceID},
		{Key: "heartbeatIntervalMillis", Value: r.config.heartbeatInterval},
		{Key: "majorityVoteCount", Value: majority}, {Key: "writeMajorityCount", Value: majority},
		{Key: "votingMembersCount", Value: int32(r.config.voters())}, {Key: "writableVotingMembersCount", Value: int32(r.config.voters())},
		{Key: "optimes", Value: bson.D{
			{Key: "lastCommittedOpTime", Value: wireOpTime(r.committed.OpTime)}, {Key: "lastCommittedWallTime", Value: r.committed.date()},
			{Key: "readConcernMajorityOpTime", Value: wireOpTime(r.committed.OpTime)},
			{Key: "appliedOpTime", Value: wireOpTime(r.applied.OpTime)}, {Key: "durableOpTime", Value: wireOpTime(r.durable.OpTime)},
			{Key: "writtenOpTime", Value: wireOpTime(r.written.OpTime)},
			{Key: "lastAppliedWallTime", Value: r.applied.date()}, {Key: "lastDurableWallTime", Value: r.durable.date()},
			{Key: "lastWrittenWallTime", Value: r.written.date()},
		}},
		{Key: "members", Value: members},
	}, nil
}

func (s *Server) memberStatus(i int) bson.D {
	r := s.set
	p, state, source := r.positionOf(i), r.state, ""
	if i != r.self {
		state, source = r.peers[i].state, r.peers[i].source
	} else if r.source >= 0 {
		source = r.config.members[r.source].host
	}
	health := 1.0
	if state == stateDown || state == stateUnknown {
		health = 0
	}
	d := bson.D{
		{Key: "_id", Value: r.config.members[i].memberID}, {Key: "name", Value: r.config.members[i].host}, {Key: "health", Value: health},
		{Key: "state", Value: int32(state)}, {Key: "stateStr", Value: stateNames[state]},
		{Key: "optime", Value: wireOpTime(p.applied.OpTime)}, {Key: "optimeDurable", Value: wireOpTime(p.durable.OpTime)},
		{Key: "optimeWritten", Value: wireOpTime(p.written.OpTime)}, {Key: "optimeDate", Value: p.applied.date()},
		{Key: "lastAppliedWallTime", Value: p.applied.date()}, {Key: "lastDurableWallTime", Value: p.durable.date()},
		{Key: "lastWrittenWallTime", Value: p.written.date()}, {Key: "syncSourceHost", Value: source},
	}
	if i == r.self {
		d = append(d, bson.E{Key: "self", Value: true})
	} else {
		d = append(d, bson.E{Key: "lastHeartbeat", Value: bson.NewDateTimeFromTime(r.peers[i].heard)},
			bson.E{Key: "pingMs", Value: r.peers[i].ping.Milliseconds()})
	}
	return append(d, bson.E{Key: "configVersion", Value: int32(configVersion)}, bson.E{Key: "configTerm", Value: configTerm})
}
