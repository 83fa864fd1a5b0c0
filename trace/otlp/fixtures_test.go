package otlp

import (
	"strings"
	"time"

	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// fixture is a finished exchange made by hand. Its name is its link's, so that
// its spans can be told apart at a receiver.
type fixture struct {
	name string
	x    *wire.Exchange
	conn *trace.Conn
}

var epoch = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

const (
	traceID     = "0af7651916cd43dd8448eb211c80319c"
	traceparent = "00-" + traceID + "-b7ad6b7169203331-01"
)

// parentOf is a traceparent whose trace is this fixture's alone.
func parentOf(n string, flags string) string {
	return strings.Replace(traceparent, "0af76519", "0af765"+n, 1)[:53] + flags
}

func fixtures() []fixture {
	var all []fixture
	add := func(name string, protocol wire.Protocol, stamps []int, set func(*wire.Exchange)) {
		x := &wire.Exchange{Protocol: protocol, Write: true, Answered: true, OK: true}
		c := &trace.Conn{
			Link: name, From: "app", To: "rs0.a", ClientAddr: "10.0.0.7:50000",
			ServerHost: "mongo-a", ServerPort: 27017, PeerAddr: "10.0.1.1:27017", UpstreamPort: 40001, Epoch: epoch,
		}
		mongoDefaults(x)
		if protocol == wire.Postgres {
			c.To, c.ServerHost, c.ServerPort, c.PeerAddr = "pg.p", "pg-p", 5432, "10.0.2.1:5432"
			postgresDefaults(x)
		}
		setStamps(x, stamps)
		set(x)
		all = append(all, fixture{name, x, c})
	}
	addMongo(add)
	addPostgres(add)
	return all
}

// setStamps takes milliseconds: request first in, last in, last out, reply
// first in, last in, last out. A side held for 40 ms or more had a plan of 40.
func setStamps(x *wire.Exchange, stamps []int) {
	for i, s := range stamps {
		side := &x.Sides[i/3]
		*[...]*wire.Stamp{&side.FirstIn, &side.LastIn, &side.LastOut}[i%3] = wire.Stamp(s) * wire.Stamp(time.Millisecond)
	}
	for i := range x.Sides {
		if s := &x.Sides[i]; s.LastOut.Sub(s.LastIn) >= 40*time.Millisecond {
			s.Planned = 40 * time.Millisecond
		}
	}
}

func mongoDefaults(x *wire.Exchange) {
	x.Operation, x.Database, x.Collection, x.WriteBasis = "insert", "shop", "orders", "command"
	x.Mongo.N, x.Mongo.NModified = 1, -1
	x.Mongo.WriteConcern.Source = "assumed"
}

func postgresDefaults(x *wire.Exchange) {
	x.Operation, x.Database, x.Collection, x.WriteBasis = "INSERT", "shop", "", "tag"
	x.Mongo = wire.MongoFields{}
	x.Postgres = wire.PostgresFields{Tag: "INSERT 0 1", Keyword: "INSERT", Summary: "INSERT orders", SynchronousCommit: "on", SyncSource: "default"}
	x.Peer = &wire.Peer{User: "app", Database: "shop", Application: "checkout", BackendPID: 4711}
}

var (
	delayed   = []int{10, 12, 52, 55, 56, 97}
	undelayed = []int{10, 10, 10, 13, 13, 13}
)

type adder func(name string, protocol wire.Protocol, stamps []int, set func(*wire.Exchange))

func addMongo(add adder) {
	add("mongodb_majority_delayed", wire.MongoDB, delayed, func(x *wire.Exchange) {
		x.Batch, x.Traceparent = 3, parentOf("01", "01")
		x.Peer = &wire.Peer{ServerConnectionID: 991}
		m := &x.Mongo
		m.N, m.LSID, m.TxnNumber, m.HasTxnNumber = 3, "00112233445566778899aabbccddeeff", 7, true
		m.WriteConcern = wire.WriteConcern{W: "majority", J: "true", WTimeout: 5 * time.Second, Source: "command"}
		m.OpTime = wire.OpTime{T: 4, TS: 1772600767<<32 | 2}
	})
	add("mongodb_undelayed_update", wire.MongoDB, undelayed, func(x *wire.Exchange) {
		x.Operation, x.Mongo.N, x.Mongo.NModified = "update", 2, 1
		x.Mongo.OperationTime = wire.OpTime{T: -1, TS: 1772600767<<32 | 3}
	})
	add("mongodb_unacknowledged", wire.MongoDB, []int{10, 12, 52}, func(x *wire.Exchange) {
		x.NoReply, x.Answered, x.OK = true, false, false
		x.Mongo.WriteConcern = wire.WriteConcern{W: "0", Source: "command"}
		x.Mongo.N = -1
	})
	add("mongodb_write_errors", wire.MongoDB, undelayed, func(x *wire.Exchange) {
		x.Mongo.N, x.Mongo.WriteErrors, x.Mongo.WriteErrCode = 0, 1, 11000
	})
	add("mongodb_concern_error", wire.MongoDB, undelayed, func(x *wire.Exchange) {
		x.Mongo.WriteConcern = wire.WriteConcern{W: "3", WTimeout: 100 * time.Millisecond, Source: "command"}
		x.Mongo.ConcernError = 64
	})
	add("mongodb_command_failed", wire.MongoDB, delayed, func(x *wire.Exchange) {
		x.OK, x.ErrorCode, x.Mongo.N = false, "10107", -1
	})
	add("mongodb_reply_lost", wire.MongoDB, []int{10, 12, 52}, func(x *wire.Exchange) {
		x.Answered, x.OK, x.Mongo.N = false, false, -1
	})
	add("mongodb_ruled", wire.MongoDB, delayed, func(x *wire.Exchange) {
		x.Blame(wire.Fault{Rule: "slow", Effect: "latency", Draw: "42:slow:3"})
		x.Blame(wire.Fault{Rule: "full", Effect: "fail_reply", Draw: "42:full:1", Code: "64"})
	})
	add("mongodb_unsampled_parent", wire.MongoDB, delayed, func(x *wire.Exchange) {
		x.Traceparent = parentOf("02", "00")
	})
	add("mongodb_malformed_parent", wire.MongoDB, undelayed, func(x *wire.Exchange) {
		x.Traceparent = strings.ToUpper(traceparent)
	})
	add("mongodb_read", wire.MongoDB, delayed, func(x *wire.Exchange) {
		x.Operation, x.Write, x.WriteBasis = "find", false, ""
	})
	add("mongodb_stalled", wire.MongoDB, []int{10, 30, 80, 85, 86, 87}, func(x *wire.Exchange) {
		x.Sides[wire.ToServer].Stalled = 15 * time.Millisecond
	})
}

func addPostgres(add adder) {
	add("postgres_insert_delayed", wire.Postgres, delayed, func(x *wire.Exchange) {
		x.Traceparent = parentOf("03", "01")
		x.Postgres.SynchronousCommit, x.Postgres.SyncSource = "remote_apply", "set_local"
	})
	add("postgres_undelayed_text", wire.Postgres, undelayed, func(x *wire.Exchange) {
		x.Statement, x.Postgres.Parameterised = "INSERT INTO orders VALUES ($1)", true
		x.Postgres.Shared = 2
	})
	add("postgres_reused_parent", wire.Postgres, undelayed, func(x *wire.Exchange) {
		x.Traceparent, x.TraceparentReused = parentOf("04", "01"), true
	})
	add("postgres_not_replicated", wire.Postgres, delayed, func(x *wire.Exchange) {
		x.Operation, x.Postgres.Tag, x.Postgres.Keyword, x.Postgres.Summary = "COMMIT", "COMMIT", "COMMIT", ""
		x.WriteBasis, x.Postgres.NotReplicated = "block", true
	})
	add("postgres_failed", wire.Postgres, undelayed, func(x *wire.Exchange) {
		x.OK, x.ErrorCode, x.Postgres.Tag = false, "23505", ""
	})
	add("postgres_rolled_back", wire.Postgres, undelayed, func(x *wire.Exchange) { x.Postgres.RolledBack = true })
	add("postgres_unconfirmed", wire.Postgres, undelayed, func(x *wire.Exchange) { x.Postgres.Unconfirmed = true })
}
