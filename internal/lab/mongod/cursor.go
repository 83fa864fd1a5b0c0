package mongod

import (
	"math/rand/v2"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// firstBatch is a server's size of a first batch if none is asked for.
const firstBatch = 101

// cursors hold what find hasn't returned yet.
type cursors struct {
	mu   sync.Mutex
	open map[int64]*cursor
}

type cursor struct {
	namespace string
	docs      []bson.Raw
	tail      *tail // of the oplog; nil: docs are all
}

func newCursors() *cursors { return &cursors{open: map[int64]*cursor{}} }

// keep stores what is left of a cursor and returns its id, 0 if nothing is.
func (c *cursors) keep(id int64, cur *cursor) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(cur.docs) == 0 && cur.tail == nil {
		delete(c.open, id)
		return 0
	}
	if id == 0 {
		id = rand.Int64N(1<<62) + 1
	}
	c.open[id] = cur
	return id
}

// take removes a cursor while a batch is taken from it; nil: there is none.
func (c *cursors) take(id int64, namespace string) *cursor {
	c.mu.Lock()
	defer c.mu.Unlock()
	cur := c.open[id]
	if cur == nil || cur.namespace != namespace {
		return nil
	}
	delete(c.open, id)
	return cur
}

// batch takes the next documents: at most n, if n isn't 0, and never more than
// fit into a reply, but always one.
func (c *cursor) batch(n int) bson.A {
	out := bson.A{}
	size := 0
	for len(c.docs) > 0 && (n == 0 || len(out) < n) {
		if size += len(c.docs[0]); size > maxBSON && len(out) > 0 {
			break
		}
		out = append(out, c.docs[0])
		c.docs = c.docs[1:]
	}
	return out
}
