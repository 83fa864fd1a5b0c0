package lab

import (
	"encoding/binary"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// term is the only election's that the peer ever had.
const term = 1

// oplogClock numbers a set's writes: seconds, and a counter within each.
type oplogClock struct {
	mu   sync.Mutex
	last bson.Timestamp
	at   time.Time
}

// tick is the timestamp of a new oplog entry.
func (c *oplogClock) tick() bson.Timestamp {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tickLocked()
}

func (c *oplogClock) tickLocked() bson.Timestamp {
	c.at = time.Now()
	if now := uint32(c.at.Unix()); now > c.last.T {
		c.last = bson.Timestamp{T: now, I: 1}
	} else {
		c.last.I++
	}
	return c.last
}

// now is the timestamp of the last entry. The first is there from the start, as
// a set's initiation leaves one.
func (c *oplogClock) now() (bson.Timestamp, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last.T == 0 {
		c.tickLocked()
	}
	return c.last, c.at
}

// of is the time of a request's own last write. One that changed nothing has the
// last operation's, as in a server.
func (c *oplogClock) of(q *request) bson.Timestamp {
	if q.wrote.T != 0 {
		return q.wrote
	}
	ts, _ := c.now()
	return ts
}

func opTime(ts bson.Timestamp) bson.D {
	return bson.D{{Key: "ts", Value: ts}, {Key: "t", Value: int64(term)}}
}

// lastWrite is hello's. Its dates have no fractions of a second
// (src/mongo/db/repl/hello/hello_response.cpp); with one member every write is
// the majority's at once.
func (c *oplogClock) lastWrite() bson.D {
	ts, at := c.now()
	date := bson.NewDateTimeFromTime(at.Truncate(time.Second))
	return bson.D{
		{Key: "opTime", Value: opTime(ts)},
		{Key: "lastWriteDate", Value: date},
		{Key: "majorityOpTime", Value: opTime(ts)},
		{Key: "majorityWriteDate", Value: date},
	}
}

// gossip is what ends every reply of a set's member. A server without
// authentication signs with zeros.
func (c *oplogClock) gossip(q *request) bson.D {
	ts, _ := c.now()
	return bson.D{
		{Key: "$clusterTime", Value: bson.D{
			{Key: "clusterTime", Value: ts},
			{Key: "signature", Value: bson.D{
				{Key: "hash", Value: bson.Binary{Data: make([]byte, 20)}},
				{Key: "keyId", Value: int64(0)},
			}},
		}},
		{Key: "operationTime", Value: c.of(q)},
	}
}

// electionID is 7fffffff and the term (src/mongo/bson/oid.cpp, OID::fromTerm).
func electionID() bson.ObjectID {
	var id bson.ObjectID
	binary.BigEndian.PutUint32(id[:], 0x7fffffff)
	binary.BigEndian.PutUint64(id[4:], term)
	return id
}
