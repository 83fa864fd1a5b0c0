package otlp

import (
	"net"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// The names of ours. Everything that OpenTelemetry's database conventions name
// is taken from semconv; additions that belong to a database carry its name,
// as the conventions ask; the rest is under wirewait.
const (
	keyMongoW            = attribute.Key("mongodb.write_concern.w")
	keyMongoJ            = attribute.Key("mongodb.write_concern.j")
	keyMongoWTimeout     = attribute.Key("mongodb.write_concern.wtimeout_ms")
	keyMongoSource       = attribute.Key("mongodb.write_concern.source")
	keyMongoN            = attribute.Key("mongodb.reply.n")
	keyMongoNModified    = attribute.Key("mongodb.reply.n_modified")
	keyMongoWriteErrors  = attribute.Key("mongodb.reply.write_errors")
	keyMongoConcernError = attribute.Key("mongodb.write_concern_error.code")
	keyMongoOpTime       = attribute.Key("mongodb.op_time")
	// The drivers' OpenTelemetry specification puts these three on its spans:
	// by them a span of ours and one of theirs are joined without a parent.
	keyMongoLSID         = attribute.Key("db.mongodb.lsid")
	keyMongoTxnNumber    = attribute.Key("db.mongodb.txn_number")
	keyMongoConnectionID = attribute.Key("db.mongodb.server_connection_id")

	keySyncCommit  = attribute.Key("postgresql.synchronous_commit")
	keySyncSource  = attribute.Key("postgresql.synchronous_commit.source")
	keyBackendPID  = attribute.Key("postgresql.backend_pid")
	keyApplication = attribute.Key("postgresql.application_name")

	keyLink         = attribute.Key("wirewait.link")
	keyFrom         = attribute.Key("wirewait.from")
	keyFromBasis    = attribute.Key("wirewait.from.basis")
	keyTo           = attribute.Key("wirewait.to")
	keyUpstreamPort = attribute.Key("wirewait.upstream_port")
	keyScenario     = attribute.Key("wirewait.scenario")
	keyScenarioStep = attribute.Key("wirewait.scenario.step")
	// Of the rules that did something to the write, in their order.
	keyRule            = attribute.Key("wirewait.rule")
	keyRuleEffect      = attribute.Key("wirewait.rule.effect")
	keyRuleDraw        = attribute.Key("wirewait.rule.draw")
	keyBasis           = attribute.Key("wirewait.write.basis")
	keyShared          = attribute.Key("wirewait.commit.shared")
	keyUnacknowledged  = attribute.Key("wirewait.unacknowledged")
	keyUnreplicated    = attribute.Key("wirewait.committed_not_replicated")
	keyRolledBack      = attribute.Key("wirewait.rolled_back")
	keyPlanned         = attribute.Key("wirewait.delay.planned_ms")
	keyAchieved        = attribute.Key("wirewait.delay.achieved_ms")
	keyStalled         = attribute.Key("wirewait.stalled_ms")
	keyDominant        = attribute.Key("wirewait.dominant_wait")
	keyWaitReceive     = attribute.Key("wirewait.wait.receive_ms")
	keyWaitRequest     = attribute.Key("wirewait.wait.request_ms")
	keyWaitServer      = attribute.Key("wirewait.wait.server_ms")
	keyWaitReplication = attribute.Key("wirewait.wait.replication_ms")
	keyWaitReply       = attribute.Key("wirewait.wait.reply_ms")

	// Metrics only.
	keyPart      = attribute.Key("wirewait.wait")
	keyConcern   = attribute.Key("wirewait.concern")
	keyOutcome   = attribute.Key("wirewait.outcome")
	keyDirection = attribute.Key("wirewait.direction")
	keyReason    = attribute.Key("wirewait.reason")

	eventUnreplicated = "wirewait.committed_not_replicated"

	// errorNoReply is the error.type of a write whose connection ended before
	// its reply: a case without a code from the server.
	errorNoReply = "no_reply"
	// errorRolledBack is that of a write whose own reply was no error, but that
	// a later error in the same transaction undid.
	errorRolledBack = "rolled_back"
)

func system(p wire.Protocol) attribute.KeyValue {
	switch p {
	case wire.MongoDB:
		return semconv.DBSystemNameMongoDB
	case wire.Postgres:
		return semconv.DBSystemNamePostgreSQL
	}
	return semconv.DBSystemNameKey.String(string(p))
}

// ms is a duration as attributes have it: a name ends in _ms, the value is a
// fraction.
func ms(k attribute.Key, d time.Duration) attribute.KeyValue {
	return k.Float64(float64(d) / float64(time.Millisecond))
}

// connectionAttributes are those that all writes of a connection have.
func connectionAttributes(c *trace.Conn) []attribute.KeyValue {
	a := appendString(nil, semconv.ServerAddressKey, c.ServerHost)
	a = appendInt(a, semconv.ServerPortKey, int64(c.ServerPort))
	a = appendAddress(a, semconv.NetworkPeerAddressKey, semconv.NetworkPeerPortKey, c.PeerAddr)
	a = appendAddress(a, semconv.ClientAddressKey, semconv.ClientPortKey, c.ClientAddr)
	a = appendString(a, keyLink, c.Link)
	a = appendString(a, keyFrom, c.From)
	if c.FromBasis != "link" { // its own listener: nothing was concluded
		a = appendString(a, keyFromBasis, c.FromBasis)
	}
	a = appendString(a, keyTo, c.To)
	return appendInt(a, keyUpstreamPort, int64(c.UpstreamPort))
}

// appendWrite appends what a write's span says beside those.
func appendWrite(a []attribute.KeyValue, f *trace.Finished) []attribute.KeyValue {
	a = append(a, system(f.Protocol))
	a = appendString(a, semconv.DBNamespaceKey, f.Database)
	a = appendString(a, semconv.DBCollectionNameKey, f.Collection)
	a = appendString(a, semconv.DBOperationNameKey, f.Operation)
	if f.Batch >= 2 { // the conventions leave it out for single operations
		a = append(a, semconv.DBOperationBatchSize(f.Batch))
	}
	a = appendString(a, semconv.DBQuerySummaryKey, f.Postgres.Summary)
	a = appendString(a, semconv.DBQueryTextKey, f.Statement)
	a = appendString(a, keyBasis, f.WriteBasis)
	if f.Marker != nil {
		a = append(a, keyScenario.String(f.Marker.Scenario), keyScenarioStep.String(f.Marker.Step))
	}
	a = appendFaults(a, f)
	a = appendOutcome(a, f)
	switch f.Protocol {
	case wire.MongoDB:
		a = appendMongo(a, f)
	case wire.Postgres:
		a = appendPostgres(a, f)
	}
	a = appendReplication(a, f)
	a = appendMeanwhile(a, &f.Meanwhile)
	return appendWaits(a, &f.Waits)
}

// appendFaults says what rules did. Several are separated by commas: Jaeger
// searches by equality, and one is the usual case.
func appendFaults(a []attribute.KeyValue, f *trace.Finished) []attribute.KeyValue {
	if len(f.Faults) == 0 {
		return a
	}
	var rules, effects, draws []string
	for _, x := range f.Faults {
		rules, effects, draws = append(rules, x.Rule), append(effects, x.Effect), append(draws, x.Draw)
	}
	return append(a, keyRule.String(strings.Join(rules, ",")), keyRuleEffect.String(strings.Join(effects, ",")),
		keyRuleDraw.String(strings.Join(draws, ",")))
}

func appendOutcome(a []attribute.KeyValue, f *trace.Finished) []attribute.KeyValue {
	a = appendString(a, semconv.DBResponseStatusCodeKey, f.StatusCode())
	if f.Failed() {
		a = appendString(a, semconv.ErrorTypeKey, errorType(f))
	}
	if f.NoReply {
		a = append(a, keyUnacknowledged.Bool(true))
	}
	if f.Unreplicated() {
		a = append(a, keyUnreplicated.Bool(true))
	}
	return a
}

func errorType(f *trace.Finished) string {
	if f.Missing() {
		return errorNoReply
	}
	if code := f.StatusCode(); code != "" {
		return code
	}
	if f.Postgres.RolledBack {
		return errorRolledBack
	}
	return semconv.ErrorTypeOther.Value.AsString()
}

func appendMongo(a []attribute.KeyValue, f *trace.Finished) []attribute.KeyValue {
	m := &f.Mongo
	a = appendString(a, keyMongoW, m.WriteConcern.W)
	if m.WriteConcern.J != "" {
		a = append(a, keyMongoJ.Bool(m.WriteConcern.J == "true"))
	}
	a = appendInt(a, keyMongoWTimeout, m.WriteConcern.WTimeout.Milliseconds())
	a = appendString(a, keyMongoSource, m.WriteConcern.Source)
	if f.Answered && m.N >= 0 {
		a = append(a, keyMongoN.Int64(m.N))
	}
	if f.Answered && m.NModified >= 0 {
		a = append(a, keyMongoNModified.Int64(m.NModified))
	}
	a = appendInt(a, keyMongoWriteErrors, int64(m.WriteErrors))
	a = appendInt(a, keyMongoConcernError, int64(m.ConcernError))
	a = appendString(a, keyMongoOpTime, opTime(m))
	a = appendString(a, keyMongoLSID, m.LSID)
	if m.HasTxnNumber {
		a = append(a, keyMongoTxnNumber.Int64(m.TxnNumber))
	}
	if f.Peer != nil {
		a = appendInt(a, keyMongoConnectionID, f.Peer.ServerConnectionID)
	}
	return a
}

// opTime is the write's position as MongoDB's shell and log print it, so that
// it can be searched for there.
func opTime(m *wire.MongoFields) string {
	o := m.OpTime
	if o.TS == 0 {
		o = m.OperationTime
	}
	if o.TS == 0 {
		return ""
	}
	b := make([]byte, 0, 64)
	b = append(b, "{ ts: Timestamp("...)
	b = strconv.AppendUint(b, o.TS>>32, 10)
	b = append(b, ", "...)
	b = strconv.AppendUint(b, o.TS&0xffffffff, 10)
	b = append(b, ')')
	if m.OpTime.TS != 0 && o.T >= 0 {
		b = append(b, ", t: "...)
		b = strconv.AppendInt(b, o.T, 10)
	}
	return string(append(b, " }"...))
}

func appendPostgres(a []attribute.KeyValue, f *trace.Finished) []attribute.KeyValue {
	p := &f.Postgres
	a = appendString(a, keySyncCommit, p.SynchronousCommit)
	a = appendString(a, keySyncSource, p.SyncSource)
	if p.Shared > 1 {
		a = append(a, keyShared.Int(p.Shared))
	}
	if p.RolledBack {
		a = append(a, keyRolledBack.Bool(true))
	}
	if f.Peer != nil {
		a = appendInt(a, keyBackendPID, int64(f.Peer.BackendPID))
		a = appendString(a, keyApplication, f.Peer.Application)
	}
	return a
}

func appendWaits(a []attribute.KeyValue, w *trace.Waits) []attribute.KeyValue {
	a = append(a,
		ms(keyWaitReceive, w.Receive), ms(keyWaitRequest, w.Request),
		ms(keyWaitServer, w.Server), ms(keyWaitReply, w.Reply),
		keyDominant.String(w.Dominant))
	if w.Replication > 0 {
		a = append(a, ms(keyWaitReplication, w.Replication))
	}
	if w.Planned > 0 {
		a = append(a, ms(keyPlanned, w.Planned), ms(keyAchieved, w.Achieved))
	}
	if w.Stalled > 0 {
		a = append(a, ms(keyStalled, w.Stalled))
	}
	return a
}

func appendString(a []attribute.KeyValue, k attribute.Key, v string) []attribute.KeyValue {
	if v == "" {
		return a
	}
	return append(a, k.String(valid(v)))
}

func appendInt(a []attribute.KeyValue, k attribute.Key, v int64) []attribute.KeyValue {
	if v == 0 {
		return a
	}
	return append(a, k.Int64(v))
}

// appendAddress splits host:port in two, as the conventions have it. What has
// no port (a unix socket's path) is an address as it is.
func appendAddress(a []attribute.KeyValue, address, port attribute.Key, v string) []attribute.KeyValue {
	host, p, err := net.SplitHostPort(v)
	if err != nil {
		return appendString(a, address, v)
	}
	n, _ := strconv.ParseUint(p, 10, 16)
	return appendInt(appendString(a, address, host), port, int64(n))
}
