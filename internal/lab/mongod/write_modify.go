package mongod

import "go.mongodb.org/mongo-driver/v2/bson"

// findAndModify updates or removes the first document that matches and answers
// with it. Unlike the other writes it fails as a whole.
func findAndModify(w *write) (bson.D, error) {
	if w.Collection == "" {
		return nil, badValue("%s needs a collection's name", w.Name)
	}
	if err := refuse(w.body, "arrayFilters", "collation", "hint"); err != nil {
		return nil, err
	}
	where, _ := w.body.Lookup("query").DocumentOK()
	f, err := parseFilter(where)
	if err != nil {
		return nil, err
	}
	order, err := parseSort(w.body.Lookup("sort"))
	if err != nil {
		return nil, err
	}
	shown, err := parseProjection(w.body.Lookup("fields"))
	if err != nil {
		return nil, err
	}
	f = w.collection().onlyFirst(f, order)
	if w.bool("remove") {
		return w.findAndRemove(f, shown)
	}
	return w.findAndUpdate(f, shown)
}

// onlyFirst narrows a filter to the first match in the given order.
func (c *collection) onlyFirst(f filter, order []sortKey) filter {
	docs := c.find(f, 0)
	if len(order) == 0 || len(docs) == 0 {
		return f
	}
	sortDocs(docs, order)
	return equalID(docs[0].Lookup("_id"))
}

func (w *write) findAndRemove(f filter, shown *projection) (bson.D, error) {
	var removed bson.Raw
	if w.retry.before(0) != nil {
		removed = w.retry.record.image
	} else if found := w.collection().find(f, 1); len(found) > 0 {
		removed = found[0]
		if err := w.delete(0, w.collection(), removed, "preImage"); err != nil {
			return nil, err
		}
	}
	last := bson.D{{Key: "n", Value: int32(0)}}
	if removed != nil {
		last[0].Value = int32(1)
	}
	return modifyReply(last, removed, shown), nil
}

func (w *write) findAndUpdate(f filter, shown *projection) (bson.D, error) {
	u, err := parseUpdate(w.body.Lookup("update"))
	if err != nil {
		return nil, err
	}
	wantsNew := w.bool("new")
	spec := updateSpec{filter: f, update: u, upsert: w.bool("upsert"), image: "preImage"}
	if wantsNew {
		spec.image = "postImage"
	}
	done, err := w.update(0, w.namespace(), spec)
	if err != nil {
		return nil, err
	}
	value := done.before
	if wantsNew {
		value = done.after
	}
	if len(w.retry.repeated) > 0 && done.upserted.Type == 0 {
		value = w.retry.record.image
	}
	last := bson.D{{Key: "n", Value: done.matched}, {Key: "updatedExisting", Value: done.matched > 0}}
	if done.upserted.Type != 0 {
		last[0].Value = int32(1)
		last = append(last, bson.E{Key: "upserted", Value: done.upserted})
	}
	return modifyReply(last, value, shown), nil
}

// modifyReply writes no document as null.
func modifyReply(last bson.D, doc bson.Raw, shown *projection) bson.D {
	var value any
	switch {
	case doc != nil && shown != nil:
		value = shown.apply(doc)
	case doc != nil:
		value = doc
	}
	return bson.D{{Key: "lastErrorObject", Value: last}, {Key: "value", Value: value}}
}
