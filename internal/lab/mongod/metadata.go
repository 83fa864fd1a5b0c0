package mongod

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// metadata is $replData (src/mongo/rpc/metadata/repl_set_metadata.cpp).
func (r *replication) metadata() bson.D {
	return bson.D{
		{Key: "term", Value: r.term},
		{Key: "lastOpCommitted", Value: wireOpTime(r.committed.OpTime)}, {Key: "lastCommittedWall", Value: r.committed.date()},
		{Key: "lastOpVisible", Value: wireOpTime(r.committed.OpTime)},
		{Key: "configVersion", Value: configVersion}, {Key: "configTerm", Value: configTerm},
		{Key: "replicaSetId", Value: r.config.id},
		{Key: "syncSourceIndex", Value: int32(r.source)}, {Key: "isPrimary", Value: r.state == statePrimary},
	}
}

// oplogMetadata is $oplogQueryData (src/mongo/rpc/metadata/oplog_query_metadata.cpp).
func (r *replication) oplogMetadata() bson.D {
	source := ""
	if r.source >= 0 {
		source = r.config.members[r.source].host
	}
	return bson.D{
		{Key: "lastOpCommitted", Value: wireOpTime(r.committed.OpTime)}, {Key: "lastCommittedWall", Value: r.committed.date()},
		{Key: "lastOpApplied", Value: wireOpTime(r.applied.OpTime)}, {Key: "lastOpWritten", Value: wireOpTime(r.written.OpTime)},
		{Key: "rbid", Value: r.rollbacks}, {Key: "primaryIndex", Value: int32(r.primary)},
		{Key: "syncSourceIndex", Value: int32(r.source)}, {Key: "syncSourceHost", Value: source},
	}
}

// wireOpTime writes no optime as servers do, with the term -1.
func wireOpTime(o OpTime) OpTime {
	if o == (OpTime{}) {
		o.T = -1
	}
	return o
}

// learn takes in what a reply's metadata says of its sender's term and of the
// commit point. The term comes first: a commit point of an unknown one is none.
func (s *Server) learn(reply bson.Raw, fromSource bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range []string{"$replData", "$oplogQueryData"} {
		data, ok := reply.Lookup(name).DocumentOK()
		if !ok {
			continue
		}
		if term, ok := data.Lookup("term").AsInt64OK(); ok {
			s.meetTerm(term)
		}
		wall, _ := data.Lookup("lastCommittedWall").DateTimeOK()
		s.set.learnCommit(mark{readOpTime(data.Lookup("lastOpCommitted")), time.UnixMilli(wall)}, fromSource)
	}
}
