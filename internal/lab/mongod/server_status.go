package mongod

import (
	"os"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// serverStatus has what is counted here, under the names that a server of the
// version Engine.StatusOf has for it, and nothing else.
func serverStatus(s *Server, _ *request) (bson.D, error) {
	s.connections.Lock()
	current, total := int32(len(s.open)), s.lastID
	s.connections.Unlock()
	c, a := &s.counters, &s.admission
	d := bson.D{
		{Key: "host", Value: s.Addr()}, {Key: "version", Value: s.options.Engine.statusVersion()}, {Key: "process", Value: "mongod"},
		{Key: "pid", Value: int64(os.Getpid())}, {Key: "uptime", Value: time.Since(s.started).Seconds()},
		{Key: "localTime", Value: bson.NewDateTimeFromTime(time.Now())},
		{Key: "connections", Value: bson.D{{Key: "current", Value: current}, {Key: "totalCreated", Value: total}}},
		{Key: "opcounters", Value: bson.D{
			{Key: "insert", Value: c.inserts.Load()}, {Key: "query", Value: c.queries.Load()}, {Key: "update", Value: c.updates.Load()},
			{Key: "delete", Value: c.deletes.Load()}, {Key: "getmore", Value: c.getMores.Load()}, {Key: "command", Value: c.commands.Load()},
		}},
		{Key: "opLatencies", Value: bson.D{
			{Key: "reads", Value: latency(a.readMicros.Load(), a.readOps.Load())}, {Key: "writes", Value: latency(a.writeMicros.Load(), a.writeOps.Load())},
		}},
		{Key: "metrics", Value: bson.D{
			{Key: "getLastError", Value: bson.D{
				{Key: "wtime", Value: bson.D{{Key: "num", Value: c.waits.Load()}, {Key: "totalMillis", Value: c.waitMicros.Load() / 1000}}},
				{Key: "wtimeouts", Value: c.wtimeouts.Load()},
			}},
			{Key: "operation", Value: bson.D{{Key: "writeConflicts", Value: a.writeConflicts.Load()}}},
			{Key: "repl", Value: bson.D{{Key: "network", Value: bson.D{
				{Key: "replSetUpdatePosition", Value: bson.D{{Key: "num", Value: c.reportsSent.Load()}}},
			}}}},
		}},
	}
	readers, writers := int32(a.reads.now().waiting), int32(a.writes.now().waiting)
	d = append(d, bson.E{Key: "globalLock", Value: bson.D{{Key: "currentQueue", Value: bson.D{
		{Key: "total", Value: readers + writers}, {Key: "readers", Value: readers}, {Key: "writers", Value: writers},
	}}}})
	d = append(d, s.engineStatus()...)
	if s.set != nil {
		d = append(d, bson.E{Key: "flowControl", Value: a.flow.status()})
		s.mu.Lock()
		d = append(d, bson.E{Key: "repl", Value: append(s.set.hello("isWritablePrimary"), bson.E{Key: "rbid", Value: s.set.rollbacks})})
		s.mu.Unlock()
	}
	return d, nil
}

func latency(micros, ops int64) bson.D {
	return bson.D{{Key: "latency", Value: micros}, {Key: "ops", Value: ops}}
}

// engineStatus is what moved between versions:
//
//	             6.0                                7.0                                8.0
//	checkpoints  wiredTiger.transaction             the same                           wiredTiger.checkpoint
//	tickets      wiredTiger.concurrentTransactions  the same, with normalPriority      queues.execution
func (s *Server) engineStatus() (d bson.D) {
	wt := bson.D{}
	if s.journal != nil {
		wt = append(wt, bson.E{Key: "log", Value: s.journal.status()})
	}
	v, a := s.options.Engine.StatusOf, &s.admission
	pools := bson.D{
		{Key: "write", Value: ticketsStatus(&a.writes, v != "6.0")}, {Key: "read", Value: ticketsStatus(&a.reads, v != "6.0")},
	}
	if v == "6.0" || v == "7.0" {
		wt = append(wt, bson.E{Key: "transaction", Value: s.checkpoints.oldStatus()}, bson.E{Key: "concurrentTransactions", Value: pools})
		return bson.D{{Key: "wiredTiger", Value: wt}}
	}
	wt = append(wt, bson.E{Key: "checkpoint", Value: s.checkpoints.status()})
	return bson.D{{Key: "wiredTiger", Value: wt}, {Key: "queues", Value: bson.D{{Key: "execution", Value: pools}}}}
}

func (j *journal) status() bson.D {
	n := &j.stats
	return bson.D{
		{Key: "log bytes written", Value: n.bytes.Load()}, {Key: "log sync operations", Value: n.syncs.Load()},
		{Key: "log sync time duration (usecs)", Value: n.syncMicros.Load()}, {Key: "log write operations", Value: n.entries.Load()},
	}
}

// status and oldStatus have the names of wiredtiger/dist/stat_data.py of their
// time.
func (c *checkpoints) status() bson.D {
	return bson.D{
		{Key: "max time (msecs)", Value: c.longest.Load()}, {Key: "min time (msecs)", Value: c.least.Load()}, {Key: "most recent time (msecs)", Value: c.last.Load()},
		{Key: "progress state", Value: c.running.Load()}, {Key: "total succeed number of checkpoints", Value: c.count.Load()}, {Key: "total time (msecs)", Value: c.time.Load()},
	}
}

func (c *checkpoints) oldStatus() bson.D {
	return bson.D{
		{Key: "transaction checkpoint currently running", Value: c.running.Load()},
		{Key: "transaction checkpoint max time (msecs)", Value: c.longest.Load()}, {Key: "transaction checkpoint min time (msecs)", Value: c.least.Load()},
		{Key: "transaction checkpoint most recent time (msecs)", Value: c.last.Load()}, {Key: "transaction checkpoint total time (msecs)", Value: c.time.Load()},
		{Key: "transaction checkpoints", Value: c.count.Load()},
	}
}

// status as of src/mongo/db/admission/flow_control.cpp, generateSection.
func (f *flowControl) status() bson.D {
	f.mu.Lock()
	defer f.mu.Unlock()
	return bson.D{
		{Key: "enabled", Value: true}, {Key: "targetRateLimit", Value: int32(min(f.target, maxFlowTickets))},
		{Key: "timeAcquiringMicros", Value: f.acquiring.Microseconds()}, {Key: "locksPerKiloOp", Value: f.perOp * 1000},
		{Key: "sustainerRate", Value: int32(f.rate)}, {Key: "isLagged", Value: f.lagged},
		{Key: "isLaggedCount", Value: int32(f.count)}, {Key: "isLaggedTimeMicros", Value: f.laggedTime.Microseconds()},
	}
}
