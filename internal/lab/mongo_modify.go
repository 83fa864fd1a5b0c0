package lab

import "go.mongodb.org/mongo-driver/v2/bson"

// findAndModify updates or removes the first document that matches and answers
// with it. Unlike the other writes it fails as a whole.
func (m *Mongo) findAndModify(q *request) (bson.D, error) {
	if err := refuse(q.body, "fields", "arrayFilters", "collation", "hint"); err != nil {
		return nil, err
	}
	where, _ := q.body.Lookup("query").DocumentOK()
	f, err := parseFilter(where)
	if err != nil {
		return nil, err
	}
	order, err := parseSort(q.body.Lookup("sort"))
	if err != nil {
		return nil, err
	}
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	c := m.store.collection(q)
	if len(order) > 0 {
		f = c.onlyFirst(f, order)
	}
	if remove, _ := q.body.Lookup("remove").BooleanOK(); remove {
		return m.findAndRemove(q, c, f), nil
	}
	return m.findAndUpdate(q, c, f)
}

func (m *Mongo) findAndRemove(q *request, c *collection, f filter) bson.D {
	found := c.find(f, 1)
	var value any
	if len(found) > 0 {
		value = c.docs[found[0]]
		c.remove(found)
		m.changed(q)
	}
	return bson.D{
		{Key: "lastErrorObject", Value: bson.D{{Key: "n", Value: int32(len(found))}}},
		{Key: "value", Value: value},
	}
}

func (m *Mongo) findAndUpdate(q *request, c *collection, f filter) (bson.D, error) {
	u, err := parseUpdate(q.body.Lookup("update"))
	if err != nil {
		return nil, err
	}
	upsert, _ := q.body.Lookup("upsert").BooleanOK()
	done, err := m.applyUpdate(q, c, updateSpec{filter: f, update: u, upsert: upsert})
	if err != nil {
		return nil, err
	}
	last := bson.D{{Key: "n", Value: done.matched}, {Key: "updatedExisting", Value: done.matched > 0}}
	if done.upserted.Type != 0 {
		last[0].Value = int32(1)
		last = append(last, bson.E{Key: "upserted", Value: done.upserted})
	}
	value := done.before
	if after, _ := q.body.Lookup("new").BooleanOK(); after {
		value = done.after
	}
	reply := bson.D{{Key: "lastErrorObject", Value: last}, {Key: "value", Value: value}}
	if value == nil {
		reply[1].Value = nil
	}
	return reply, nil
}
