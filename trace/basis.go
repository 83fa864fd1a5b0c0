package trace

import "github.com/wirewait/wirewait/wire"

// How what is said of a write's wait is known, from the best down. Times are
// always measured; what can be a belief is what the write waited for, and for
// whom.
const (
	BasisExact   = "exact"
	BasisAssumed = "assumed_config" // the server's default applies, as far as is known
	BasisUnknown = "unknown"
)

// Exact reports whether what is said of a wait for other members is no
// conclusion: it was seen whole, or there was none.
func Exact(replicationBasis string) bool {
	switch replicationBasis {
	case "", BasisExact, BasisNotWaited, BasisNoCommit:
		return true
	}
	return false
}

// Basis is how it is known what the write waited for: exact if the command, its
// transaction or the session said so, or if it's the default and the set was asked
// for that. Empty for reads.
func (f *Finished) Basis() string {
	switch {
	case !f.Write:
		return ""
	case f.Deferred():
		return BasisExact // it waits for nothing
	case f.Protocol == wire.MongoDB && f.Mongo.WriteConcern.W == "" && f.Mongo.WriteConcern.Source != wire.UnknownConcern:
		// It may have said more, but not w.
		if f.defaultKnown {
			return BasisExact
		}
		return BasisAssumed
	case f.Protocol == wire.MongoDB:
		return stated(f.Mongo.WriteConcern.Source)
	}
	return stated(f.Postgres.SyncSource)
}

// stated is the basis of a write concern or commit level from such a source.
func stated(source string) string {
	switch source {
	case "command", "transaction", "startup", "set", "set_local":
		return BasisExact
	case "unknown", "":
		return BasisUnknown
	}
	return BasisAssumed
}
