package mongod

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// update is a change to a document: a replacement, or modifiers in order.
type update struct {
	replacement bson.Raw
	modifiers   []modifier
}

func parseUpdate(v bson.RawValue) (update, error) {
	doc, ok := v.DocumentOK()
	if !ok {
		return update{}, notImplemented("an update that isn't a document")
	}
	elements, err := doc.Elements()
	if err != nil {
		return update{}, failedToParse("update: %v", err)
	}
	if !startsWithDollar(doc) {
		return update{replacement: doc}, nil
	}
	var u update
	for _, e := range elements {
		if !knownModifier(e.Key()) {
			return update{}, failedToParse("Unknown modifier: %s (this lab knows %s)", e.Key(), modifierNames)
		}
		inner, ok := e.Value().DocumentOK()
		list, err := inner.Elements()
		if !ok || err != nil {
			return update{}, failedToParse("%s needs a document", e.Key())
		}
		for _, f := range list {
			if strings.Contains(f.Key(), "$") {
				return update{}, notImplemented("a positional path (" + f.Key() + ")")
			}
			u.modifiers = append(u.modifiers, modifier{e.Key(), f.Key(), f.Value()})
		}
	}
	return u, nil
}

// apply returns the changed document and leaves the old one alone.
func (u update) apply(doc bson.Raw, inserting bool) (bson.Raw, error) {
	if u.replacement != nil {
		return u.replace(doc)
	}
	d := fields(doc)
	var err error
	for _, m := range u.modifiers {
		if d, err = m.apply(d, inserting); err != nil {
			return nil, err
		}
	}
	after, err := bson.Marshal(d)
	if err != nil {
		return nil, err
	}
	return after, sameID(doc, after)
}

// replace keeps the id that the document has.
func (u update) replace(doc bson.Raw) (bson.Raw, error) {
	id, err := doc.LookupErr("_id")
	if err != nil {
		return append(bson.Raw(nil), u.replacement...), nil
	}
	if _, err := u.replacement.LookupErr("_id"); err == nil {
		return append(bson.Raw(nil), u.replacement...), sameID(doc, u.replacement)
	}
	elements, err := u.replacement.Elements()
	if err != nil {
		return nil, err
	}
	d := bson.D{{Key: "_id", Value: id}}
	for _, e := range elements {
		d = append(d, bson.E{Key: e.Key(), Value: e.Value()})
	}
	return bson.Marshal(d)
}

func sameID(before, after bson.Raw) error {
	old, err := before.LookupErr("_id")
	if err != nil || equalValues(old, lookup(after, "_id")) {
		return nil
	}
	return &commandError{code: 66, name: "ImmutableField",
		message: "Performing an update on the path '_id' would modify the immutable field '_id'"}
}
