package mongod

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// write is a write command while it runs: what a server does in the one moment
// in which it holds Server.mu.
type write struct {
	*Server
	*request
	retry *retry
}

// writing wraps a write command with what all of them have: the check that this
// is the primary, the memory for retries, an optime, and a write concern, which
// is waited for when the write itself is over.
func writing(run func(*write) (bson.D, error)) handler {
	return func(s *Server, q *request) (bson.D, error) {
		concern, err := s.concernOf(q)
		if err != nil {
			return nil, err
		}
		defer s.tookTime(q.Name, time.Now())
		done, err := s.admitWrite(q)
		if err != nil {
			return nil, err
		}
		reply, wait, err := s.runWrite(q, concern, run)
		done()
		if err != nil || s.set == nil {
			return reply, err
		}
		if problem := s.await(wait); problem != nil {
			reply = append(reply, bson.E{Key: "writeConcernError", Value: problem})
		}
		return append(reply, bson.E{Key: "opTime", Value: wait.last}, bson.E{Key: "electionId", Value: electionID(wait.last.T)}), nil
	}
}

// runWrite does the write, and begins to wait for its concern in the same moment,
// so that no progress is missed. The optime that the concern is about is the
// write's own last one, or if it changed nothing, the last one there is
// (src/mongo/db/repl/repl_client_info.h, setLastOpToSystemLastOpTime).
func (s *Server) runWrite(q *request, c concern, run func(*write) (bson.D, error)) (reply bson.D, wait *waiter, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkWritable(q); err != nil {
		return nil, nil, err
	}
	r, err := s.retryOf(q)
	if err != nil {
		return nil, nil, err
	}
	w := &write{s, q, r}
	if reply, err = run(w); err != nil {
		return nil, nil, err
	}
	if len(r.repeated) > 0 {
		reply = append(reply, bson.E{Key: "retriedStmtIds", Value: r.repeated})
	}
	if s.set == nil {
		return reply, nil, nil
	}
	last := q.wrote
	if last == (OpTime{}) {
		last = s.set.written.OpTime
	}
	return reply, s.waitFor(last, c, !q.NoReply), nil
}

// collection is the one that a write goes to, nil if there is none yet.
func (w *write) collection() *collection { return w.data[w.namespace()] }

// ensure makes the collection if there is none.
func (w *write) ensure(name string) (*collection, error) {
	if c := w.data[name]; c != nil {
		return c, nil
	}
	return w.create(name)
}

// insert adds a document, with an id if it has none.
func (w *write) insert(i int, name string, doc bson.Raw) (bson.Raw, error) {
	doc, err := withID(doc)
	if err != nil {
		return nil, err
	}
	c, err := w.ensure(name)
	if err != nil {
		return nil, err
	}
	if err := c.checkNew(doc); err != nil {
		return nil, err
	}
	id, err := onlyID(doc)
	if err != nil {
		return nil, err
	}
	return doc, w.commit(w.entry(i, "i", c, doc, id))
}

// change puts a document in another's place. whole says that the update gave a
// whole document.
func (w *write) change(i int, c *collection, before, after bson.Raw, whole bool, image string) error {
	o := after
	if !whole {
		var err error
		if o, err = diff(before, after); err != nil {
			return err
		}
	}
	id, err := onlyID(before)
	if err != nil {
		return err
	}
	e := w.entry(i, "u", c, o, id)
	if e.session != "" {
		e.image = image
	}
	return w.commit(e)
}

func (w *write) delete(i int, c *collection, doc bson.Raw, image string) error {
	id, err := onlyID(doc)
	if err != nil {
		return err
	}
	e := w.entry(i, "d", c, id, nil)
	if e.session != "" {
		e.image = image
	}
	return w.commit(e)
}

// entry is one of the i-th statement.
func (w *write) entry(i int, kind string, c *collection, o, o2 bson.Raw) *entry {
	e := &entry{kind: kind, namespace: c.name, ui: c.uuid, o: o, o2: o2}
	if w.retry.session != "" {
		e.session, e.txnNumber = w.retry.session, w.retry.txnNumber
		e.stmtIDs = []int32{w.retry.stmtID(i)}
	}
	return e
}

// commit gives an entry its place in history, and applies it.
func (w *write) commit(e *entry) error {
	if w.set != nil {
		if err := w.set.stamp(e); err != nil {
			return err
		}
		w.wrote = e.OpTime
	}
	w.apply(e)
	if w.set != nil {
		w.wrotePrimary(e)
	}
	return nil
}

func onlyID(doc bson.Raw) (bson.Raw, error) {
	return bson.Marshal(bson.D{{Key: "_id", Value: doc.Lookup("_id")}})
}

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

// each runs one statement after the other. A failed one becomes an entry of
// writeErrors and ends an ordered command.
func (w *write) each(field string, run func(i int, doc bson.Raw) error) (bson.A, error) {
	if w.Collection == "" {
		return nil, badValue("%s needs a collection's name", w.Name)
	}
	docs, err := documents(w.request, field)
	if err != nil {
		return nil, err
	}
	var failed bson.A
	for i, doc := range docs {
		err := run(i, doc)
		if err == nil {
			continue
		}
		failed = append(failed, writeError(i, asCommandError(err)))
		if w.ordered() {
			break
		}
	}
	return failed, nil
}

func (q *request) ordered() bool {
	v, err := q.body.LookupErr("ordered")
	return err != nil || truth(v)
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

func insertCommand(w *write) (bson.D, error) {
	var n int32
	failed, err := w.each("documents", func(i int, doc bson.Raw) error {
		if w.retry.before(i) == nil {
			if _, err := w.insert(i, w.namespace(), doc); err != nil {
				return err
			}
		}
		n++
		return nil
	})
	if err != nil {
		return nil, err
	}
	return withErrors(bson.D{{Key: "n", Value: n}}, failed), nil
}

func deleteCommand(w *write) (bson.D, error) {
	var n int32
	failed, err := w.each("deletes", func(i int, doc bson.Raw) error {
		if err := refuse(doc, "collation", "hint"); err != nil {
			return err
		}
		where, _ := doc.Lookup("q").DocumentOK()
		limit, ok := doc.Lookup("limit").AsInt64OK()
		if !ok || limit < 0 || limit > 1 {
			return failedToParse("the limit field in delete objects must be 0 or 1")
		}
		removed, err := w.deleteMatching(i, w.namespace(), where, int(limit))
		n += removed
		return err
	})
	if err != nil {
		return nil, err
	}
	return withErrors(bson.D{{Key: "n", Value: n}}, failed), nil
}

// deleteMatching removes the documents that match; limit 0: all.
func (w *write) deleteMatching(i int, name string, where bson.Raw, limit int) (n int32, err error) {
	if w.retry.before(i) != nil {
		return 1, nil
	}
	f, err := parseFilter(where)
	if err != nil {
		return 0, err
	}
	c := w.data[name]
	for _, doc := range c.find(f, limit) {
		if err := w.delete(i, c, doc, ""); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
