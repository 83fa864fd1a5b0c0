package mongod

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// heartbeatTimeout is how long one may take (heartbeatTimeoutSecs).
const heartbeatTimeout = 10 * time.Second

// heartbeatRetries follow a failed one at once, before the member counts as down
// (src/mongo/db/repl/topology_coordinator.cpp, kMaxHeartbeatRetries).
const heartbeatRetries = 2

// heartbeats ask another member every heartbeatInterval how it is.
func (s *Server) heartbeats(to int) {
	var conn *peerConn
	defer func() {
		if conn != nil {
			conn.close()
		}
	}()
	interval := time.Duration(s.set.config.heartbeatInterval) * time.Millisecond
	for {
		s.mu.Lock()
		nudge := s.set.peers[to].nudge.next()
		s.mu.Unlock()
		if !s.reaches(&conn, to) {
			s.noAnswer(to)
		}
		if sleep(s.ctx, interval, nudge) != nil {
			return
		}
	}
}

// reaches tries a heartbeat, and again if it fails early.
func (s *Server) reaches(conn **peerConn, to int) bool {
	begun := time.Now()
	for try := 0; try <= heartbeatRetries && time.Since(begun) < heartbeatTimeout/2 && s.ctx.Err() == nil; try++ {
		if s.heartbeat(conn, to) == nil {
			return true
		}
		if *conn != nil {
			(*conn).close()
			*conn = nil
		}
	}
	return false
}

func (s *Server) heartbeat(conn **peerConn, to int) (err error) {
	timeout := min(heartbeatTimeout, time.Duration(s.set.config.electionTimeout)*time.Millisecond)
	timed, cancel := context.WithTimeout(s.ctx, timeout)
	defer cancel()
	if *conn == nil {
		// The connection outlives this heartbeat.
		if *conn, err = s.dialPeer(s.ctx, to, driverHeartbeats, ""); err != nil {
			return err
		}
	}
	s.mu.Lock()
	r := s.set
	command := bson.D{
		{Key: "replSetHeartbeat", Value: r.config.name}, {Key: "configVersion", Value: configVersion}, {Key: "configTerm", Value: configTerm},
		{Key: "hbv", Value: int64(1)}, {Key: "from", Value: s.member.Host()}, {Key: "fromId", Value: r.config.members[r.self].memberID},
		{Key: "term", Value: r.term}, {Key: "primaryId", Value: r.primaryID()},
		{Key: "maxTimeMSOpOnly", Value: int32(timeout.Milliseconds())}, {Key: "$replData", Value: int32(1)},
	}
	s.mu.Unlock()
	start := time.Now()
	reply, err := (*conn).call(timed, timeout, s.gossiped(command, "admin"))
	if err != nil {
		return err
	}
	s.beat(to, reply, time.Since(start))
	s.learn(reply, false)
	return nil
}

func (r *replication) primaryID() int64 {
	if r.primary < 0 {
		return -1
	}
	return int64(r.config.members[r.primary].memberID)
}

// beat takes in a heartbeat's reply.
func (s *Server) beat(from int, reply bson.Raw, ping time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := time.Now()
	p := &s.set.peers[from]
	p.heard = at
	if p.ping == 0 {
		p.ping = ping
	}
	p.ping = (p.ping*4 + ping) / 5 // as src/mongo/db/repl/topology_coordinator.cpp, PingStats::hit
	state, _ := reply.Lookup("state").AsInt64OK()
	p.state = int(state)
	p.term, _ = reply.Lookup("term").AsInt64OK()
	p.source, _ = reply.Lookup("syncingTo").StringValueOK()
	p.electable, _ = reply.Lookup("electable").BooleanOK()
	s.heardPosition(from, position{
		written: readMark(reply, "writtenOpTime", "writtenWallTime"),
		durable: readMark(reply, "durableOpTime", "durableWallTime"),
		applied: readMark(reply, "opTime", "wallTime"),
	}, viaHeartbeat, at)
	s.meetTerm(p.term)
	if p.state == statePrimary && p.term == s.set.term {
		s.follow(from, at)
	} else if s.set.primary == from {
		s.losePrimary()
	}
}

// noAnswer takes in that heartbeats fail: the member is down.
func (s *Server) noAnswer(from int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.set.peers[from]
	p.state, p.electable, p.source = stateDown, false, ""
	if s.set.primary == from {
		s.losePrimary()
	}
}

func (r *replication) electionTimeout() time.Duration {
	return time.Duration(r.config.electionTimeout) * time.Millisecond
}

// follow takes note of who is primary.
func (s *Server) follow(primary int, at time.Time) {
	r := s.set
	r.heard = at
	if r.primary == primary || r.state == statePrimary {
		return
	}
	r.primary = primary
	r.turned()
}

func (s *Server) losePrimary() {
	s.set.primary = -1
	s.set.turned()
}

// replSetHeartbeat answers another member's, in the order of
// src/mongo/db/repl/repl_set_heartbeat_response.cpp.
func (s *Server) replSetHeartbeat(q *request) (bson.D, error) {
	name, _ := q.body.Lookup("replSetHeartbeat").StringValueOK()
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.set
	switch {
	case r == nil:
		return nil, notReplicated()
	case name != r.config.name:
		return nil, &commandError{code: 111, name: "InconsistentReplicaSetNames",
			message: fmt.Sprintf("Our set name of %s does not match the set name of %s", r.config.name, name)}
	}
	at, term := time.Now(), q.int64("term")
	s.meetTerm(term)
	if from := r.config.index(q.int64("fromId")); from >= 0 && from != r.self {
		peer := &r.peers[from]
		peer.heard = at
		if peer.state == stateDown {
			peer.nudge.raise()
		}
		if q.int64("primaryId") == int64(r.config.members[from].memberID) && term == r.term {
			s.follow(from, at)
		}
	}
	d := bson.D{{Key: "electionTime", Value: electionDate(r.elected)}, {Key: "state", Value: int32(r.state)},
		{Key: "v", Value: configVersion}, {Key: "configTerm", Value: configTerm}, {Key: "set", Value: r.config.name}}
	if r.source >= 0 {
		d = append(d, bson.E{Key: "syncingTo", Value: r.config.members[r.source].host})
	}
	return append(d,
		bson.E{Key: "term", Value: r.term}, bson.E{Key: "primaryId", Value: r.primaryID()},
		bson.E{Key: "opTime", Value: wireOpTime(r.applied.OpTime)}, bson.E{Key: "wallTime", Value: r.applied.date()},
		bson.E{Key: "writtenOpTime", Value: wireOpTime(r.written.OpTime)}, bson.E{Key: "writtenWallTime", Value: r.written.date()},
		bson.E{Key: "durableOpTime", Value: wireOpTime(r.durable.OpTime)}, bson.E{Key: "durableWallTime", Value: r.durable.date()},
		bson.E{Key: "electable", Value: r.electable()}), nil
}

// electionDate is a date whose bits are a timestamp's, as heartbeats have it.
func electionDate(ts bson.Timestamp) bson.DateTime {
	return bson.DateTime(int64(ts.T)<<32 | int64(ts.I))
}
