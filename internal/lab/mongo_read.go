package lab

import (
	"math/rand/v2"
	"slices"
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
}

func newCursors() *cursors { return &cursors{open: map[int64]*cursor{}} }

// keep stores what is left of a cursor and returns its id, 0 if nothing is.
func (c *cursors) keep(id int64, cur *cursor) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(cur.docs) == 0 {
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

// amount reads an option that must not be negative; def if it isn't there.
func amount(body bson.Raw, name string, def int) (int, error) {
	v, err := body.LookupErr(name)
	if err != nil {
		return def, nil
	}
	n, ok := v.AsInt64OK()
	if !ok || n < 0 || n > 1<<31 {
		return 0, badValue("%s must be a number from 0", name)
	}
	return int(n), nil
}

func (m *Mongo) find(q *request) (bson.D, error) {
	if err := refuse(q.body, "projection", "tailable", "awaitData", "collation", "hint", "min", "max", "returnKey", "showRecordId"); err != nil {
		return nil, err
	}
	where, _ := q.body.Lookup("filter").DocumentOK()
	docs, err := m.query(q, where)
	if err != nil {
		return nil, err
	}
	size, err := amount(q.body, "batchSize", firstBatch)
	if err != nil {
		return nil, err
	}
	cur := &cursor{namespace: q.namespace(), docs: docs}
	batch := bson.A{}
	if _, err := q.body.LookupErr("batchSize"); err != nil || size > 0 { // 0 asks for the cursor alone
		batch = cur.batch(size)
	}
	if single, _ := q.body.Lookup("singleBatch").BooleanOK(); single {
		cur.docs = nil
	}
	return cursorReply(m.cursors.keep(0, cur), cur.namespace, "firstBatch", batch), nil
}

func cursorReply(id int64, namespace, name string, batch bson.A) bson.D {
	return bson.D{{Key: "cursor", Value: bson.D{
		{Key: name, Value: batch},
		{Key: "id", Value: id},
		{Key: "ns", Value: namespace},
	}}}
}

// query finds, sorts, skips and limits, by a command's options.
func (m *Mongo) query(q *request, where bson.Raw) ([]bson.Raw, error) {
	f, err := parseFilter(where)
	if err != nil {
		return nil, err
	}
	order, err := parseSort(q.body.Lookup("sort"))
	if err != nil {
		return nil, err
	}
	skip, err := amount(q.body, "skip", 0)
	if err != nil {
		return nil, err
	}
	limit, err := amount(q.body, "limit", 0)
	if err != nil {
		return nil, err
	}
	docs := m.matching(q, f)
	sortDocs(docs, order)
	return cut(docs, skip, limit), nil
}

func (m *Mongo) matching(q *request, f filter) []bson.Raw {
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	c := m.store.collection(q)
	var docs []bson.Raw
	for _, at := range c.find(f, 0) {
		docs = append(docs, c.docs[at])
	}
	return docs
}

// cut drops the first skip documents and keeps limit of the rest; 0: all.
func cut(docs []bson.Raw, skip, limit int) []bson.Raw {
	docs = docs[min(skip, len(docs)):]
	if limit > 0 {
		docs = docs[:min(limit, len(docs))]
	}
	return docs
}

func (m *Mongo) getMore(q *request) (bson.D, error) {
	id, ok := q.body.Lookup("getMore").AsInt64OK()
	size, err := amount(q.body, "batchSize", 0)
	if !ok || err != nil {
		return nil, badValue("getMore needs a cursor's id and a batchSize from 0")
	}
	cur := m.cursors.take(id, q.namespace())
	if cur == nil {
		return nil, &commandError{code: 43, name: "CursorNotFound", message: "cursor id not found"}
	}
	batch := cur.batch(size)
	return cursorReply(m.cursors.keep(id, cur), cur.namespace, "nextBatch", batch), nil
}

func (m *Mongo) killCursors(q *request) (bson.D, error) {
	array, _ := q.body.Lookup("cursors").ArrayOK()
	values, err := array.Values()
	if err != nil {
		return nil, failedToParse("cursors: %v", err)
	}
	killed, missing := bson.A{}, bson.A{}
	for _, v := range values {
		id, _ := v.AsInt64OK()
		if m.cursors.take(id, q.namespace()) != nil {
			killed = append(killed, id)
		} else {
			missing = append(missing, id)
		}
	}
	return bson.D{
		{Key: "cursorsKilled", Value: killed},
		{Key: "cursorsNotFound", Value: missing},
		{Key: "cursorsAlive", Value: bson.A{}},
		{Key: "cursorsUnknown", Value: bson.A{}},
	}, nil
}

func (m *Mongo) count(q *request) (bson.D, error) {
	where, _ := q.body.Lookup("query").DocumentOK()
	docs, err := m.query(q, where)
	if err != nil {
		return nil, err
	}
	return bson.D{{Key: "n", Value: int32(len(docs))}}, nil
}

// sortKey is one field of a sort, ascending or not.
type sortKey struct {
	field string
	down  bool
}

func parseSort(v bson.RawValue) ([]sortKey, error) {
	doc, ok := v.DocumentOK()
	if !ok {
		return nil, nil
	}
	elements, err := doc.Elements()
	if err != nil {
		return nil, failedToParse("sort: %v", err)
	}
	var keys []sortKey
	for _, e := range elements {
		n, ok := e.Value().AsInt64OK()
		if !ok || n != 1 && n != -1 {
			return nil, badValue("sort: %s must be 1 or -1", e.Key())
		}
		keys = append(keys, sortKey{e.Key(), n == -1})
	}
	return keys, nil
}

// sortDocs is stable. Values of different kinds compare by BSON type, which is
// not a server's order.
func sortDocs(docs []bson.Raw, keys []sortKey) {
	if len(keys) == 0 {
		return
	}
	slices.SortStableFunc(docs, func(a, b bson.Raw) int {
		for _, k := range keys {
			x, y := lookup(a, k.field), lookup(b, k.field)
			c, ok := compareValues(x, y)
			if !ok {
				c = int(x.Type) - int(y.Type)
			}
			if c != 0 && k.down {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		return 0
	})
}
