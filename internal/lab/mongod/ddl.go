package mongod

import (
	"maps"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// create makes a collection.
func (w *write) create(name string) (*collection, error) {
	database, coll, _ := strings.Cut(name, ".")
	if coll == "" || strings.HasPrefix(coll, "system.") {
		return nil, &commandError{code: 73, name: "InvalidNamespace", message: "Invalid collection name: " + name}
	}
	id := newUUID()
	if err := w.command(database, id, bson.D{{Key: "create", Value: coll}}); err != nil {
		return nil, err
	}
	return w.data[name], nil
}

// command commits an entry that changes more than a document.
func (w *write) command(database string, ui bson.Binary, o bson.D) error {
	raw, err := bson.Marshal(o)
	if err != nil {
		return err
	}
	e := &entry{kind: "c", namespace: database + ".$cmd", o: raw, ui: ui}
	return w.commit(e)
}

func createCommand(w *write) (bson.D, error) {
	if err := refuse(w.body, "capped", "timeseries", "clusteredIndex", "viewOn", "validator", "collation", "encryptedFields"); err != nil {
		return nil, err
	}
	if w.collection() != nil {
		return bson.D{}, nil // as a server, if the options are the same
	}
	_, err := w.create(w.namespace())
	return bson.D{}, err
}

func dropCommand(w *write) (bson.D, error) {
	c := w.collection()
	if c == nil {
		return bson.D{}, nil // since 7.0 no error
	}
	n := int32(len(c.indexes))
	err := w.command(w.Database, c.uuid, bson.D{{Key: "drop", Value: w.Collection}})
	return bson.D{{Key: "nIndexesWas", Value: n}, {Key: "ns", Value: w.namespace()}}, err
}

func dropDatabaseCommand(w *write) (bson.D, error) {
	if len(w.data.of(w.Database)) == 0 {
		return bson.D{}, nil
	}
	err := w.command(w.Database, bson.Binary{}, bson.D{{Key: "dropDatabase", Value: int32(1)}})
	return bson.D{{Key: "dropped", Value: w.Database}}, err
}

// createIndexes takes note of indexes and uses none: every query but one by _id
// reads the whole collection. One that must be unique is refused.
func createIndexes(w *write) (bson.D, error) {
	specs, err := documents(w.request, "indexes")
	if err != nil {
		return nil, err
	}
	created := w.collection() == nil
	c, err := w.ensure(w.namespace())
	if err != nil {
		return nil, err
	}
	before := int32(len(c.indexes))
	for _, spec := range specs {
		if err := refuse(spec, "unique", "expireAfterSeconds"); err != nil {
			return nil, err
		}
		if err := w.createIndex(c, spec); err != nil {
			return nil, err
		}
	}
	d := bson.D{{Key: "numIndexesBefore", Value: before}, {Key: "numIndexesAfter", Value: int32(len(c.indexes))}}
	if int32(len(c.indexes)) == before {
		return append(d, bson.E{Key: "note", Value: "all indexes already exist"}), nil
	}
	return append(d, bson.E{Key: "createdCollectionAutomatically", Value: created}), nil
}

func (w *write) createIndex(c *collection, spec bson.Raw) error {
	name, ok := spec.Lookup("name").StringValueOK()
	key, isDoc := spec.Lookup("key").DocumentOK()
	if !ok || !isDoc {
		return failedToParse("an index needs a name and a key")
	}
	for _, have := range c.indexes {
		if n, _ := have.Lookup("name").StringValueOK(); n == name {
			return nil
		}
	}
	return w.command(w.Database, c.uuid, bson.D{{Key: "createIndexes", Value: w.Collection},
		{Key: "spec", Value: bson.D{{Key: "v", Value: int32(2)}, {Key: "key", Value: key}, {Key: "name", Value: name}}}})
}

func (s *Server) listIndexes(q *request) (bson.D, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.data[q.namespace()]
	if c == nil {
		return nil, &commandError{code: 26, name: "NamespaceNotFound", message: "ns does not exist: " + q.namespace()}
	}
	batch := bson.A{}
	for _, i := range c.indexes {
		batch = append(batch, i)
	}
	return cursorReply(0, q.namespace(), "firstBatch", batch), nil
}

func (s *Server) listCollections(q *request) (bson.D, error) {
	where, _ := q.body.Lookup("filter").DocumentOK()
	f, err := parseFilter(where)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	batch := bson.A{}
	for _, c := range s.data.of(q.Database) {
		raw, err := bson.Marshal(bson.D{
			{Key: "name", Value: strings.TrimPrefix(c.name, q.Database+".")}, {Key: "type", Value: "collection"}, {Key: "options", Value: bson.D{}},
			{Key: "info", Value: bson.D{{Key: "readOnly", Value: false}, {Key: "uuid", Value: c.uuid}}}, {Key: "idIndex", Value: c.indexes[0]},
		})
		if err != nil {
			return nil, err
		}
		if f.match(raw) {
			batch = append(batch, bson.Raw(raw))
		}
	}
	return cursorReply(0, q.Database+".$cmd.listCollections", "firstBatch", batch), nil
}

func (s *Server) listDatabases(q *request) (bson.D, error) {
	where, _ := q.body.Lookup("filter").DocumentOK()
	f, err := parseFilter(where)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sizes := map[string]int64{}
	for name, c := range s.data {
		database, _, _ := strings.Cut(name, ".")
		for _, doc := range c.docs {
			sizes[database] += int64(len(doc))
		}
	}
	list, total := bson.A{}, int64(0)
	for _, database := range sortedKeys(sizes) {
		raw, err := bson.Marshal(bson.D{{Key: "name", Value: database}, {Key: "sizeOnDisk", Value: sizes[database]}, {Key: "empty", Value: false}})
		if err != nil {
			return nil, err
		}
		if f.match(raw) {
			total += sizes[database]
			list = append(list, bson.Raw(raw))
		}
	}
	return bson.D{{Key: "databases", Value: list}, {Key: "totalSize", Value: total}, {Key: "totalSizeMb", Value: total >> 20}}, nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
