package mongod

import "go.mongodb.org/mongo-driver/v2/bson"

func updateCommand(w *write) (bson.D, error) {
	var n, modified int32
	var upserted bson.A
	failed, err := w.each("updates", func(i int, doc bson.Raw) error {
		where, _ := doc.Lookup("q").DocumentOK()
		spec, err := readUpdateSpec(doc, where, doc.Lookup("u"))
		if err != nil {
			return err
		}
		done, err := w.update(i, w.namespace(), spec)
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

// updateSpec is one statement of an update.
type updateSpec struct {
	filter        filter
	update        update
	multi, upsert bool
	image         string // of entry
}

// readUpdateSpec reads the options that all commands with updates have.
func readUpdateSpec(doc, where bson.Raw, change bson.RawValue) (updateSpec, error) {
	var s updateSpec
	if err := refuse(doc, "arrayFilters", "collation", "hint", "sort"); err != nil {
		return s, err
	}
	var err error
	if s.filter, err = parseFilter(where); err != nil {
		return s, err
	}
	s.multi = truth(doc.Lookup("multi"))
	s.upsert = truth(doc.Lookup("upsert"))
	s.update, err = parseUpdate(change)
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

func (w *write) update(i int, name string, s updateSpec) (updateDone, error) {
	var done updateDone
	if e := w.retry.before(i); e != nil {
		return doneBefore(e), nil
	}
	limit := 1
	if s.multi {
		limit = 0
	}
	c := w.data[name]
	found := c.find(s.filter, limit)
	for _, before := range found {
		after, err := s.update.apply(before, false)
		if err != nil {
			return done, err
		}
		done.matched++
		done.before, done.after = before, after
		if string(before) == string(after) {
			continue
		}
		if err := w.change(i, c, before, after, s.update.replacement != nil, s.image); err != nil {
			return done, err
		}
		done.modified++
	}
	if len(found) > 0 || !s.upsert {
		return done, nil
	}
	after, err := s.update.apply(s.filter.seed(), true)
	if err != nil {
		return done, err
	}
	if after, err = w.insert(i, name, after); err != nil {
		return done, err
	}
	done.after, done.upserted = after, after.Lookup("_id")
	return done, nil
}

// doneBefore is what a repeated update did, as far as its entry tells, which is
// as far as a server goes (src/mongo/db/transaction/retryable_writes_stats and
// write_ops_retryability.cpp, parseOplogEntryForUpdate).
func doneBefore(e *entry) updateDone {
	if e.kind == "i" {
		return updateDone{upserted: e.o.Lookup("_id"), after: e.o}
	}
	return updateDone{matched: 1, modified: 1}
}
