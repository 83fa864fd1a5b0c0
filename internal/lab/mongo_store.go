package lab

import (
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// store is the peer's data, by "database.collection".
type store struct {
	mu          sync.Mutex
	collections map[string]*collection
}

func newStore() *store { return &store{collections: map[string]*collection{}} }

// collection is the one that a command names; it exists as soon as it's asked
// for. The caller holds mu for as long as it uses the collection.
func (s *store) collection(q *request) *collection {
	name := q.namespace()
	c := s.collections[name]
	if c == nil {
		c = &collection{name: name, byID: map[string]int{}}
		s.collections[name] = c
	}
	return c
}

func (q *request) namespace() string { return q.Database + "." + q.Collection }

// collection holds documents in the order of their insertion. A document is
// never changed in place, so that a cursor may go on reading it.
type collection struct {
	name string
	docs []bson.Raw
	byID map[string]int
}

// idKey makes equal ids equal strings: 1, 1.0 and int64(1) are one id.
func idKey(v bson.RawValue) string {
	if f, ok := v.AsFloat64OK(); ok && f == float64(int64(f)) {
		if n, ok := v.AsInt64OK(); ok {
			v = bson.RawValue{Type: bson.TypeInt64, Value: appendInt64(nil, n)}
		}
	}
	return string(v.Type) + string(v.Value)
}

// insert adds a document, with an id if it has none.
func (c *collection) insert(doc bson.Raw) error {
	doc, err := withID(doc)
	if err != nil {
		return err
	}
	if len(doc) > maxBSON {
		return &commandError{code: 10334, name: "BSONObjectTooLarge", message: "object to insert too large"}
	}
	id := doc.Lookup("_id")
	key := idKey(id)
	if _, ok := c.byID[key]; ok {
		return &commandError{
			code: 11000, name: "DuplicateKey",
			message: "E11000 duplicate key error collection: " + c.name + " index: _id_ dup key: { _id: " + id.String() + " }",
			details: bson.D{
				{Key: "keyPattern", Value: bson.D{{Key: "_id", Value: int32(1)}}},
				{Key: "keyValue", Value: bson.D{{Key: "_id", Value: id}}},
			},
		}
	}
	c.byID[key] = len(c.docs)
	// The request's buffer also holds its other documents.
	c.docs = append(c.docs, slices.Clone(doc))
	return nil
}

func withID(doc bson.Raw) (bson.Raw, error) {
	if _, err := doc.LookupErr("_id"); err == nil {
		return doc, nil
	}
	d := bson.D{{Key: "_id", Value: bson.NewObjectID()}}
	elements, err := doc.Elements()
	if err != nil {
		return nil, err
	}
	for _, e := range elements {
		d = append(d, bson.E{Key: e.Key(), Value: e.Value()})
	}
	return bson.Marshal(d)
}

// find returns the places of the documents that match, at most limit of them;
// limit 0: all.
func (c *collection) find(f filter, limit int) []int {
	if id, ok := f.id(); ok {
		at, ok := c.byID[idKey(id)]
		if !ok || !f.match(c.docs[at]) {
			return nil
		}
		return []int{at}
	}
	var found []int
	for at, doc := range c.docs {
		if !f.match(doc) {
			continue
		}
		if found = append(found, at); len(found) == limit {
			break
		}
	}
	return found
}

// remove takes out the documents at these places, which are in order.
func (c *collection) remove(places []int) {
	if len(places) == 0 {
		return
	}
	kept := make([]bson.Raw, 0, len(c.docs)-len(places))
	for at, doc := range c.docs {
		if len(places) > 0 && places[0] == at {
			places = places[1:]
			continue
		}
		kept = append(kept, doc)
	}
	c.docs = kept
	clear(c.byID)
	for at, doc := range kept {
		c.byID[idKey(doc.Lookup("_id"))] = at
	}
}

// onlyFirst narrows a filter to the first match in the given order.
func (c *collection) onlyFirst(f filter, order []sortKey) filter {
	var docs []bson.Raw
	for _, at := range c.find(f, 0) {
		docs = append(docs, c.docs[at])
	}
	if len(docs) == 0 {
		return f
	}
	sortDocs(docs, order)
	return equalID(docs[0].Lookup("_id"))
}
