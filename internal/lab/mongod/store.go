package mongod

import (
	"crypto/rand"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// store is a server's data, by "database.collection". Server.mu guards it.
type store map[string]*collection

// collection holds documents in the order of their insertion. A document is
// never changed in place, so that a cursor may go on reading it.
type collection struct {
	name    string
	uuid    bson.Binary
	docs    []bson.Raw // nil where one was removed
	byID    map[string]int
	indexes []bson.Raw // as listIndexes shows them
}

func (s store) create(name string, uuid bson.Binary) *collection {
	c := &collection{name: name, uuid: uuid, byID: map[string]int{}}
	key, _ := bson.Marshal(bson.D{{Key: "v", Value: int32(2)}, {Key: "key", Value: bson.D{{Key: "_id", Value: int32(1)}}}, {Key: "name", Value: "_id_"}})
	c.indexes = []bson.Raw{key}
	s[name] = c
	return c
}

// of lists a database's collections by name.
func (s store) of(database string) []*collection {
	var all []*collection
	for name, c := range s {
		if strings.HasPrefix(name, database+".") {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b *collection) int { return strings.Compare(a.name, b.name) })
	return all
}

func newUUID() bson.Binary {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return bson.Binary{Subtype: 4, Data: id}
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

// get is the document with an id; nil: there is none. A nil collection has none.
func (c *collection) get(id bson.RawValue) bson.Raw {
	if c == nil {
		return nil
	}
	if at, ok := c.byID[idKey(id)]; ok {
		return c.docs[at]
	}
	return nil
}

// put adds a document, or replaces the one with its id.
func (c *collection) put(doc bson.Raw) {
	key := idKey(doc.Lookup("_id"))
	if at, ok := c.byID[key]; ok {
		c.docs[at] = doc
		return
	}
	c.byID[key] = len(c.docs)
	c.docs = append(c.docs, doc)
}

// remove takes a document out, and now and then the gaps that this leaves.
func (c *collection) remove(id bson.RawValue) {
	key := idKey(id)
	at, ok := c.byID[key]
	if !ok {
		return
	}
	delete(c.byID, key)
	c.docs[at] = nil
	if len(c.docs) < 2*len(c.byID)+16 {
		return
	}
	kept := make([]bson.Raw, 0, len(c.byID))
	for _, doc := range c.docs {
		if doc != nil {
			c.byID[idKey(doc.Lookup("_id"))] = len(kept)
			kept = append(kept, doc)
		}
	}
	c.docs = kept
}

// find returns the documents that match, at most limit of them; limit 0: all.
func (c *collection) find(f filter, limit int) []bson.Raw {
	if c == nil {
		return nil
	}
	if id, ok := f.id(); ok {
		doc := c.get(id)
		if doc == nil || !f.match(doc) {
			return nil
		}
		return []bson.Raw{doc}
	}
	var found []bson.Raw
	for _, doc := range c.docs {
		if doc == nil || !f.match(doc) {
			continue
		}
		if found = append(found, doc); len(found) == limit {
			break
		}
	}
	return found
}

// checkNew refuses a document that can't be added.
func (c *collection) checkNew(doc bson.Raw) error {
	if len(doc) > maxBSON {
		return &commandError{code: 10334, name: "BSONObjectTooLarge", message: "object to insert too large"}
	}
	id := doc.Lookup("_id")
	if c.get(id) == nil {
		return nil
	}
	return &commandError{
		code: 11000, name: "DuplicateKey",
		message: "E11000 duplicate key error collection: " + c.name + " index: _id_ dup key: { _id: " + id.String() + " }",
		details: bson.D{
			{Key: "keyPattern", Value: bson.D{{Key: "_id", Value: int32(1)}}},
			{Key: "keyValue", Value: bson.D{{Key: "_id", Value: id}}},
		},
	}
}

// withID is a document of its own memory whose first field is its id.
func withID(doc bson.Raw) (bson.Raw, error) {
	if first, err := doc.IndexErr(0); err == nil && first.Key() == "_id" {
		return slices.Clone(doc), nil
	}
	d := bson.D{{Key: "_id", Value: bson.NewObjectID()}}
	elements, err := doc.Elements()
	if err != nil {
		return nil, err
	}
	for _, e := range elements {
		if e.Key() == "_id" {
			d[0].Value = e.Value()
			continue
		}
		d = append(d, bson.E{Key: e.Key(), Value: e.Value()})
	}
	return bson.Marshal(d)
}
