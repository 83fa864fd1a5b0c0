package mongo

import "github.com/wirewait/wirewait/wire"

// following is what a member was seen to do on a connection to another one.
//
// The log's connection is known by the getMore on local.oplog.rs of a client that
// said internalClient in its hello: an application that tails the oplog doesn't,
// and a member that looks for a source reads one entry by a find alone, over a
// connection that reports come by as well
// (src/mongo/db/repl/oplog_fetcher.cpp, sync_source_resolver.cpp).
type following struct {
	log      bool
	progress bool
}

// note looks at a request that was read.
func (f *following) note(x *wire.Exchange) {
	switch x.Operation {
	case "getMore":
		f.log = f.log || x.Collection == "oplog.rs" && x.Database == "local"
	case "replSetUpdatePosition":
		f.progress = true
	}
}

// Replication implements wire.Replicator.
func (s *session) Replication() wire.Replication {
	if s.err != nil || !s.following.log && !s.following.progress {
		return wire.Replication{}
	}
	return wire.Replication{Log: s.following.log, Progress: s.following.progress, Peer: s.peer}
}
