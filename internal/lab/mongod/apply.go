package mongod

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// apply does what an entry says, on the primary that made it as on a secondary
// that got it: data is what the oplog adds up to. Server.mu is held.
func (s *Server) apply(e *entry) {
	var before, after bson.Raw
	switch c := s.data[e.namespace]; e.kind {
	case "i":
		if c == nil {
			c = s.data.create(e.namespace, e.ui)
		}
		after = e.o
		c.put(after)
	case "u":
		if before = c.get(e.o2.Lookup("_id")); before != nil {
			if after = applyDiff(before, e.o); after.Validate() != nil {
				after = before
			}
			c.put(after)
		}
	case "d":
		if before = c.get(e.o.Lookup("_id")); before != nil {
			c.remove(e.o.Lookup("_id"))
		}
	case "c":
		s.applyCommand(e)
	}
	s.sessions.remember(e, before, after)
}

func (s *Server) applyCommand(e *entry) {
	first, err := e.o.IndexErr(0)
	if err != nil {
		return
	}
	database := strings.TrimSuffix(e.namespace, ".$cmd")
	name, _ := first.Value().StringValueOK()
	name = database + "." + name
	switch first.Key() {
	case "create":
		if s.data[name] == nil {
			s.data.create(name, e.ui)
		}
	case "createIndexes":
		if c := s.data[name]; c != nil {
			if spec, ok := e.o.Lookup("spec").DocumentOK(); ok {
				c.indexes = append(c.indexes, spec)
			}
		}
	case "drop":
		delete(s.data, name)
	case "dropDatabase":
		for _, c := range s.data.of(database) {
			delete(s.data, c.name)
		}
	}
}

// diff describes a change as an update's entry does, {$v: 2, diff: {d, u, i}}:
// fields removed, changed, and new (src/mongo/db/update/document_diff_serialization.h).
// A change within a field gives the whole field.
func diff(before, after bson.Raw) (bson.Raw, error) {
	removed, changed, added := bson.D{}, bson.D{}, bson.D{}
	old, err := before.Elements()
	if err != nil {
		return nil, err
	}
	for _, e := range old {
		v, err := after.LookupErr(e.Key())
		switch {
		case err != nil:
			removed = append(removed, bson.E{Key: e.Key(), Value: false})
		case !v.Equal(e.Value()):
			changed = append(changed, bson.E{Key: e.Key(), Value: v})
		}
	}
	elements, err := after.Elements()
	if err != nil {
		return nil, err
	}
	for _, e := range elements {
		if _, err := before.LookupErr(e.Key()); err != nil {
			added = append(added, bson.E{Key: e.Key(), Value: e.Value()})
		}
	}
	var d bson.D
	for _, part := range []bson.E{{Key: "d", Value: removed}, {Key: "u", Value: changed}, {Key: "i", Value: added}} {
		if len(part.Value.(bson.D)) > 0 {
			d = append(d, part)
		}
	}
	return bson.Marshal(bson.D{{Key: "$v", Value: int32(2)}, {Key: "diff", Value: d}})
}

// applyDiff is the document after an update's entry: one that diff made, or the
// whole new document.
func applyDiff(before, o bson.Raw) bson.Raw {
	change, ok := o.Lookup("diff").DocumentOK()
	if v, _ := o.Lookup("$v").AsInt64OK(); !ok || v != 2 {
		return o
	}
	elements, err := before.Elements()
	if err != nil {
		return before
	}
	var d bson.D
	for _, e := range elements {
		if _, err := change.LookupErr("d", e.Key()); err == nil {
			continue
		}
		value := e.Value()
		if v, err := change.LookupErr("u", e.Key()); err == nil {
			value = v
		}
		d = append(d, bson.E{Key: e.Key(), Value: value})
	}
	added, _ := change.Lookup("i").DocumentOK()
	inserted, _ := added.Elements()
	for _, e := range inserted {
		d = append(d, bson.E{Key: e.Key(), Value: e.Value()})
	}
	after, err := bson.Marshal(d)
	if err != nil {
		return before
	}
	return after
}
