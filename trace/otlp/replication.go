package otlp

import (
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

const (
	keyCommitLSN       = attribute.Key("postgresql.commit.lsn")
	keyCommitXID       = attribute.Key("postgresql.commit.xid")
	keyReleasedBy      = attribute.Key("wirewait.released_by")
	keyReleasedBasis   = attribute.Key("wirewait.released_by.basis")
	keyNotWaitedFor    = attribute.Key("wirewait.not_waited_for")
	keyReplicaSpread   = attribute.Key("wirewait.wait.replication_spread_ms")
	keyReplicaAcks     = attribute.Key("wirewait.acknowledged_by")
	keyJournal         = attribute.Key("wirewait.wait.journal_ms")
	keySyncMember      = attribute.Key("mongodb.sync_source")
	replicatePrefix    = "replicate "
	separator          = ","
	maxReplicaChildren = 16
)

// appendReplication appends what a write waited for in other members, if links
// to them were seen. Members are joined by commas.
func appendReplication(a []attribute.KeyValue, f *trace.Finished) []attribute.KeyValue {
	r := &f.Replication
	if r.Basis == "" {
		return a
	}
	a = appendString(a, keyReleasedBy, r.ReleasedBy)
	a = appendString(a, keyReleasedBasis, r.Basis)
	var acknowledged []string
	for _, m := range r.Acknowledged {
		acknowledged = append(acknowledged, m.Member)
	}
	a = appendString(a, keyReplicaAcks, strings.Join(acknowledged, separator))
	a = appendString(a, keyNotWaitedFor, strings.Join(r.Behind, separator))
	if r.Spread > 0 {
		a = append(a, ms(keyReplicaSpread, r.Spread))
	}
	if r.Journal > 0 {
		a = append(a, ms(keyJournal, r.Journal))
	}
	if f.Protocol == wire.Postgres && !r.Commit.IsZero() {
		a = append(a, keyCommitLSN.String(r.Commit.LSN()))
		a = appendInt(a, keyCommitXID, int64(r.XID))
	}
	return a
}

// addReplicas adds a child for each member that had the write when the reply
// left: from when the log was first read on its way there to when its
// acknowledgement was passed on.
//
//	server          |-----------------------------|
//	replicate s1        |--------|
//	replicate s2        |-----------------|
func (s *spans) addReplicas(f *trace.Finished) {
	end := trace.End(f.Exchange)
	for i, m := range f.Replication.Acknowledged {
		if i >= maxReplicaChildren {
			return
		}
		done := min(m.Acknowledged, end)
		s.addChild(valid(replicatePrefix+m.Member), f.Conn.Time(m.Sent), max(time.Duration(done-m.Sent), 0), nil)
		if m.SyncSource != "" {
			n := len(s.attributes)
			s.attributes = appendString(s.attributes, keySyncMember, m.SyncSource)
			s.finished[len(s.finished)-1].attributes = s.attributes[n:]
		}
	}
}
