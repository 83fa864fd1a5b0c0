package proxy

import "github.com/wirewait/wirewait/wire"

// Replication implements wire.Replicator.
func (d *detector) Replication() wire.Replication {
	if r, ok := d.Session.(wire.Replicator); ok {
		return r.Replication()
	}
	return wire.Replication{}
}
