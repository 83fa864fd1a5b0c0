package lab

import (
	"go.mongodb.org/mongo-driver/v2/bson"
)

// documents is an array of documents in a command.
func documents(q *request, field string) ([]bson.Raw, error) {
	array, ok := q.body.Lookup(field).ArrayOK()
	values, err := array.Values()
	if !ok || err != nil || len(values) == 0 {
		return nil, badValue("%s needs an array %q that isn't empty", q.Name, field)
	}
	docs := make([]bson.Raw, len(values))
	for i, v := range values {
		if docs[i], ok = v.DocumentOK(); !ok {
			return nil, badValue("%s.%d isn't a document", field, i)
		}
	}
	return docs, nil
}

// writeAll runs one statement after the other. A failed one becomes an entry of
// writeErrors and ends an ordered command.
func (m *Mongo) writeAll(q *request, field string, write func(c *collection, i int, doc bson.Raw) error) (bson.A, error) {
	docs, err := documents(q, field)
	if err != nil {
		return nil, err
	}
	ordered := true
	if v, ok := q.body.Lookup("ordered").BooleanOK(); ok {
		ordered = v
	}
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	c := m.store.collection(q)
	var failed bson.A
	for i, doc := range docs {
		err := write(c, i, doc)
		if err == nil {
			continue
		}
		failed = append(failed, writeError(i, asCommandError(err)))
		if ordered {
			break
		}
	}
	return failed, nil
}

func writeError(i int, e *commandError) bson.D {
	d := bson.D{{Key: "index", Value: int32(i)}, {Key: "code", Value: e.code}}
	d = append(d, e.details...)
	return append(d, bson.E{Key: "errmsg", Value: e.message})
}

func withErrors(reply bson.D, failed bson.A) bson.D {
	if len(failed) > 0 {
		reply = append(reply, bson.E{Key: "writeErrors", Value: failed})
	}
	return reply
}

// changed gives the oplog an entry, one per changed document.
func (m *Mongo) changed(q *request) {
	if m.clock != nil {
		q.wrote = m.clock.tick()
	}
}

func (m *Mongo) insert(q *request) (bson.D, error) {
	var n int32
	failed, err := m.writeAll(q, "documents", func(c *collection, _ int, doc bson.Raw) error {
		if err := c.insert(doc); err != nil {
			return err
		}
		n++
		m.changed(q)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return withErrors(bson.D{{Key: "n", Value: n}}, failed), nil
}

func (m *Mongo) update(q *request) (bson.D, error) {
	var n, modified int32
	var upserted bson.A
	failed, err := m.writeAll(q, "updates", func(c *collection, i int, doc bson.Raw) error {
		spec, err := readUpdateSpec(doc)
		if err != nil {
			return err
		}
		done, err := m.applyUpdate(q, c, spec)
		n += done.matched
		modified += done.modified
		if done.upserted.Type != 0 {
			n++
			upserted = append(upserted, bson.D{{Key: "index", Value: int32(i)}, {Key: "_id", Value: done.upserted}})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	reply := bson.D{{Key: "n", Value: n}, {Key: "nModified", Value: modified}}
	if len(upserted) > 0 {
		reply = append(reply, bson.E{Key: "upserted", Value: upserted})
	}
	return withErrors(reply, failed), nil
}

// updateSpec is one entry of an update command's "updates".
type updateSpec struct {
	filter        filter
	update        update
	multi, upsert bool
}

func readUpdateSpec(doc bson.Raw) (updateSpec, error) {
	var s updateSpec
	if err := refuse(doc, "arrayFilters", "collation", "hint", "sort"); err != nil {
		return s, err
	}
	q, _ := doc.Lookup("q").DocumentOK()
	var err error
	if s.filter, err = parseFilter(q); err != nil {
		return s, err
	}
	s.multi, _ = doc.Lookup("multi").BooleanOK()
	s.upsert, _ = doc.Lookup("upsert").BooleanOK()
	s.update, err = parseUpdate(doc.Lookup("u"))
	if err == nil && s.multi && s.update.replacement != nil {
		err = failedToParse("multi update is not supported for replacement-style update")
	}
	return s, err
}

type updateDone struct {
	matched, modified int32
	upserted          bson.RawValue // Type 0: none was
	before, after     bson.Raw      // of the last document
}

func (m *Mongo) applyUpdate(q *request, c *collection, s updateSpec) (updateDone, error) {
	var done updateDone
	limit := 1
	if s.multi {
		limit = 0
	}
	found := c.find(s.filter, limit)
	for _, at := range found {
		before := c.docs[at]
		after, err := s.update.apply(before, false)
		if err != nil {
			return done, err
		}
		done.matched++
		done.before, done.after = before, after
		if string(before) != string(after) {
			c.docs[at] = after
			done.modified++
			m.changed(q)
		}
	}
	if len(found) > 0 || !s.upsert {
		return done, nil
	}
	after, err := s.update.apply(s.filter.seed(), true)
	if err != nil {
		return done, err
	}
	if after, err = withID(after); err != nil {
		return done, err
	}
	if err := c.insert(after); err != nil {
		return done, err
	}
	m.changed(q)
	done.after, done.upserted = after, after.Lookup("_id")
	return done, nil
}

func (m *Mongo) delete(q *request) (bson.D, error) {
	var n int32
	failed, err := m.writeAll(q, "deletes", func(c *collection, _ int, doc bson.Raw) error {
		if err := refuse(doc, "collation", "hint"); err != nil {
			return err
		}
		where, _ := doc.Lookup("q").DocumentOK()
		f, err := parseFilter(where)
		if err != nil {
			return err
		}
		limit, ok := doc.Lookup("limit").AsInt64OK()
		if !ok || limit < 0 || limit > 1 {
			return failedToParse("the limit field in delete objects must be 0 or 1")
		}
		found := c.find(f, int(limit))
		c.remove(found)
		n += int32(len(found))
		for range found {
			m.changed(q)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return withErrors(bson.D{{Key: "n", Value: n}}, failed), nil
}
