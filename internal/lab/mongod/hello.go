package mongod

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Versions of the server that this is a model of (src/mongo/db/wire_version.h).
const (
	version     = "8.0.0"
	wireVersion = 25
)

// hello answers at once, or where the client knows the state already, when that
// changes or the time is over.
func (s *Server) hello(q *request) (bson.D, error) {
	if _, err := q.body.LookupErr("internalClient"); err == nil {
		q.connection.internal.Store(true)
	}
	if err := s.awaitTopology(q); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var d bson.D
	add := func(key string, value any) { d = append(d, bson.E{Key: key, Value: value}) }
	if names := s.negotiate(q.body); len(names) > 0 {
		add("compression", names)
	}
	if q.bool("helloOk") {
		add("helloOk", true)
	}
	if s.streams() {
		add("topologyVersion", s.topologyVersion())
		q.awaits.version = s.version()
	}
	writable := "isWritablePrimary"
	if q.Name != "hello" {
		writable = "ismaster"
	}
	if s.set == nil {
		add(writable, true)
	} else {
		d = append(d, s.set.hello(writable)...)
	}
	add("maxBsonObjectSize", int32(maxBSON))
	add("maxMessageSizeBytes", int32(maxMessage))
	add("maxWriteBatchSize", int32(100_000))
	add("localTime", bson.NewDateTimeFromTime(time.Now()))
	add("logicalSessionTimeoutMinutes", int32(30))
	add("connectionId", int32(q.connection.id))
	minimum := int32(0)
	if q.connection.internal.Load() { // members speak one version (src/mongo/db/repl/replication_info.cpp)
		minimum = s.options.MaxWireVersion
	}
	add("minWireVersion", minimum)
	add("maxWireVersion", s.options.MaxWireVersion)
	add("readOnly", false)
	return d, nil
}

// hello is what the set says of itself and of this member, in the order of
// src/mongo/db/repl/hello/hello_response.cpp.
func (r *replication) hello(writable string) (d bson.D) {
	add := func(key string, value any) { d = append(d, bson.E{Key: key, Value: value}) }
	hosts, passives := bson.A{}, bson.A{}
	for _, m := range r.config.members {
		switch {
		case m.hidden || m.delaySecs > 0:
		case m.priority == 0:
			passives = append(passives, m.host)
		default:
			hosts = append(hosts, m.host)
		}
	}
	me := r.config.members[r.self]
	add("hosts", hosts)
	if len(passives) > 0 {
		add("passives", passives)
	}
	add("setName", r.config.name)
	add("setVersion", int32(configVersion))
	add(writable, r.writable)
	add("secondary", r.state == stateSecondary)
	if r.writable || r.state != statePrimary && r.primary >= 0 {
		add("primary", r.config.members[r.primary].host)
	}
	if me.priority == 0 {
		add("passive", true)
	}
	if me.hidden {
		add("hidden", true)
	}
	if me.delaySecs > 0 {
		add("secondaryDelaySecs", me.delaySecs)
	}
	if len(me.tags) > 0 {
		add("tags", me.tags)
	}
	add("me", me.host)
	if r.writable {
		add("electionId", electionID(r.term))
	}
	add("lastWrite", bson.D{
		{Key: "opTime", Value: wireOpTime(r.applied.OpTime)}, {Key: "lastWriteDate", Value: wholeSeconds(r.applied)},
		{Key: "majorityOpTime", Value: wireOpTime(r.committed.OpTime)}, {Key: "majorityWriteDate", Value: wholeSeconds(r.committed)},
	})
	return d
}

// wholeSeconds is a date of lastWrite, which have no fractions.
func wholeSeconds(m mark) bson.DateTime {
	return bson.NewDateTimeFromTime(m.wall.Truncate(time.Second))
}

// streams reports whether hello may be asked to wait for a change.
func (s *Server) streams() bool { return s.member != nil || s.options.StreamHello }

func (s *Server) version() int64 {
	if s.set == nil {
		return 0
	}
	return s.set.version
}

func (s *Server) topologyVersion() bson.D {
	return bson.D{{Key: "processId", Value: s.process}, {Key: "counter", Value: s.version()}}
}

// awaitTopology waits until there's something that the client doesn't know.
func (s *Server) awaitTopology(q *request) error {
	known, ok := q.body.Lookup("topologyVersion").DocumentOK()
	_, err := q.body.LookupErr("maxAwaitTimeMS")
	switch {
	case ok != (err == nil):
		return &commandError{code: 31368, name: "Location31368", message: "A request with either a 'topologyVersion' or 'maxAwaitTimeMS' must include both"}
	case !ok || !s.streams():
		return nil
	case q.awaits.version == 0:
		q.awaits.version, _ = known.Lookup("counter").AsInt64OK()
	}
	if process, _ := known.Lookup("processId").ObjectIDOK(); process != s.process {
		return nil
	}
	deadline := time.Now().Add(q.awaits.wait)
	for {
		s.mu.Lock()
		now := s.version()
		var changed <-chan struct{}
		if s.set != nil {
			changed = s.set.topology.next()
		}
		s.mu.Unlock()
		if q.awaits.version > now {
			return &commandError{code: 51764, name: "Location51764", message: "Received a topology version with a counter that is newer than ours"}
		}
		left := time.Until(deadline)
		if now != q.awaits.version || left <= 0 {
			return nil
		}
		if err := sleep(q.connection.ctx, left, changed); err != nil {
			return err
		}
	}
}

// negotiate is the client's list of compressors, in its order, without those
// that the server doesn't accept.
func (s *Server) negotiate(body bson.Raw) bson.A {
	offered, _ := body.Lookup("compression").ArrayOK()
	values, _ := offered.Values()
	var common bson.A
	for _, v := range values {
		name, _ := v.StringValueOK()
		for _, ours := range s.options.Compressors {
			if name == ours {
				common = append(common, name)
			}
		}
	}
	return common
}
