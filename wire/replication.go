package wire

// Replicator is a Session that can tell a connection by which a member of a
// cluster follows another one.
type Replicator interface {
	Session
	// Replication is what the connection turned out to be so far. It changes with
	// what Decode is given, and becomes nothing again if its stream ends.
	Replication() Replication
}

// Replication is what a connection carries of one member's following.
type Replication struct {
	// Log: the server's log goes to the member at the client's end, physically:
	// what a client makes of it for itself (logical replication, a change stream)
	// is an application's.
	Log bool
	// Progress: that member tells the server how far it has come. In MongoDB it
	// does so by other connections than the log's.
	Progress bool
	// Peer is what the member said of itself; nil: nothing.
	Peer *Peer
}
