package mongod

import (
	"sync/atomic"
	"time"
)

// counters are what serverStatus shows.
type counters struct {
	inserts, updates, deletes, queries, getMores, commands atomic.Int64

	waits, waitMicros, wtimeouts atomic.Int64 // of write concerns
	reportsSent                  atomic.Int64
}

func (c *counters) count(name string) {
	switch name {
	case "insert":
		c.inserts.Add(1)
	case "update", "findAndModify", "findandmodify":
		c.updates.Add(1)
	case "delete":
		c.deletes.Add(1)
	case "find":
		c.queries.Add(1)
	case "getMore":
		c.getMores.Add(1)
	default:
		c.commands.Add(1)
	}
}

func (c *counters) waited(since time.Time) {
	c.waits.Add(1)
	c.waitMicros.Add(time.Since(since).Microseconds())
}
