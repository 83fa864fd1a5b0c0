package mongod

import "go.mongodb.org/mongo-driver/v2/bson"

// bulkWrite does inserts, updates and deletes in any collections, in one command
// (since 8.0; mongodb/specifications, source/crud/bulk-write.md):
//
//	ops     {insert: <ns>, document} {update: <ns>, filter, updateMods, multi, upsert}
//	        {delete: <ns>, filter, multi}
//	nsInfo  {ns: "database.collection"}, which the numbers in ops count
func bulkWrite(w *write) (bson.D, error) {
	if w.Database != "admin" {
		return nil, &commandError{code: 13, name: "Unauthorized", message: "bulkWrite may only be run against the admin database."}
	}
	if err := refuse(w.body, "let"); err != nil {
		return nil, err
	}
	ops, err := documents(w.request, "ops")
	if err != nil {
		return nil, err
	}
	infos, err := documents(w.request, "nsInfo")
	if err != nil {
		return nil, err
	}
	b := &bulk{write: w, results: bson.A{}, errorsOnly: w.bool("errorsOnly")}
	for _, info := range infos {
		ns, _ := info.Lookup("ns").StringValueOK()
		b.names = append(b.names, ns)
	}
	for i, op := range ops {
		if failed := b.run(i, op); failed && w.ordered() {
			break
		}
	}
	d := cursorReply(0, "admin.$cmd.bulkWrite", "firstBatch", b.results)
	return append(d,
		bson.E{Key: "nErrors", Value: b.errors}, bson.E{Key: "nInserted", Value: b.inserted}, bson.E{Key: "nMatched", Value: b.matched},
		bson.E{Key: "nModified", Value: b.modified}, bson.E{Key: "nUpserted", Value: b.upserted}, bson.E{Key: "nDeleted", Value: b.deleted}), nil
}

type bulk struct {
	*write
	names      []string
	results    bson.A
	errorsOnly bool

	errors, inserted, matched, modified, upserted, deleted int32
}

// run does one op and notes its result.
func (b *bulk) run(i int, op bson.Raw) (failed bool) {
	result := bson.D{{Key: "ok", Value: 1.0}, {Key: "idx", Value: int32(i)}}
	more, err := b.do(i, op)
	if err != nil {
		e := asCommandError(err)
		b.errors++
		b.results = append(b.results, append(bson.D{{Key: "ok", Value: 0.0}, {Key: "idx", Value: int32(i)}, {Key: "code", Value: e.code},
			{Key: "errmsg", Value: e.message}, {Key: "n", Value: int32(0)}}, e.details...))
		return true
	}
	if !b.errorsOnly {
		b.results = append(b.results, append(result, more...))
	}
	return false
}

func (b *bulk) do(i int, op bson.Raw) (bson.D, error) {
	first, err := op.IndexErr(0)
	if err != nil {
		return nil, failedToParse("ops.%d is empty", i)
	}
	at, ok := first.Value().AsInt64OK()
	if !ok || at < 0 || int(at) >= len(b.names) {
		return nil, badValue("ops.%d names no entry of nsInfo", i)
	}
	ns := b.names[at]
	switch first.Key() {
	case "insert":
		return b.insertOne(i, ns, op)
	case "update":
		return b.updateOne(i, ns, op)
	case "delete":
		return b.deleteOne(i, ns, op)
	}
	return nil, failedToParse("ops.%d: %s is no operation", i, first.Key())
}

func (b *bulk) insertOne(i int, ns string, op bson.Raw) (bson.D, error) {
	doc, ok := op.Lookup("document").DocumentOK()
	if !ok {
		return nil, failedToParse("ops.%d needs a document", i)
	}
	if b.retry.before(i) == nil {
		if _, err := b.insert(i, ns, doc); err != nil {
			return nil, err
		}
	}
	b.inserted++
	return bson.D{{Key: "n", Value: int32(1)}}, nil
}

func (b *bulk) updateOne(i int, ns string, op bson.Raw) (bson.D, error) {
	where, _ := op.Lookup("filter").DocumentOK()
	spec, err := readUpdateSpec(op, where, op.Lookup("updateMods"))
	if err != nil {
		return nil, err
	}
	done, err := b.update(i, ns, spec)
	b.matched += done.matched
	b.modified += done.modified
	if err != nil {
		return nil, err
	}
	d := bson.D{{Key: "n", Value: done.matched}, {Key: "nModified", Value: done.modified}}
	if done.upserted.Type != 0 {
		b.upserted++
		d[0].Value = int32(1)
		d = append(d, bson.E{Key: "upserted", Value: bson.D{{Key: "_id", Value: done.upserted}}})
	}
	return d, nil
}

func (b *bulk) deleteOne(i int, ns string, op bson.Raw) (bson.D, error) {
	if err := refuse(op, "collation", "hint"); err != nil {
		return nil, err
	}
	where, _ := op.Lookup("filter").DocumentOK()
	limit := 1
	if truth(op.Lookup("multi")) {
		limit = 0
	}
	n, err := b.deleteMatching(i, ns, where, limit)
	b.deleted += n
	return bson.D{{Key: "n", Value: n}}, err
}
