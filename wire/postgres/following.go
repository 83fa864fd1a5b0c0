package postgres

import "github.com/wirewait/wirewait/wire"

// Replication implements wire.Replicator. A physical stream carries the log to the
// standby and what the standby says of it back.
func (s *session) Replication() wire.Replication {
	if s.err != nil || !s.copyBoth || s.logical {
		return wire.Replication{}
	}
	return wire.Replication{Log: true, Progress: true, Peer: s.peer}
}
