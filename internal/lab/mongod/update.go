package mongod

import (
	"math"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// update is a change to a document: a replacement, or modifiers in order.
type update struct {
	replacement bson.Raw
	modifiers   []modifier
}

type modifier struct {
	operator, field string
	value           bson.RawValue
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
		switch e.Key() {
		case "$set", "$setOnInsert", "$unset", "$inc":
		default:
			return update{}, failedToParse("Unknown modifier: %s (this lab peer knows $set, $setOnInsert, $unset, $inc)", e.Key())
		}
		fields, ok := e.Value().DocumentOK()
		inner, err := fields.Elements()
		if !ok || err != nil {
			return update{}, failedToParse("%s needs a document", e.Key())
		}
		for _, f := range inner {
			if strings.Contains(f.Key(), ".") || strings.HasPrefix(f.Key(), "$") {
				return update{}, notImplemented("a dotted path (" + f.Key() + ")")
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
	elements, err := doc.Elements()
	if err != nil {
		return nil, err
	}
	d := make(bson.D, 0, len(elements)+len(u.modifiers))
	for _, e := range elements {
		d = append(d, bson.E{Key: e.Key(), Value: e.Value()})
	}
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

func (m modifier) apply(d bson.D, inserting bool) (bson.D, error) {
	at := -1
	for i := range d {
		if d[i].Key == m.field {
			at = i
		}
	}
	switch m.operator {
	case "$unset":
		if at >= 0 {
			d = append(d[:at], d[at+1:]...)
		}
		return d, nil
	case "$setOnInsert":
		if !inserting {
			return d, nil
		}
	case "$inc":
		if at >= 0 {
			old, ok := d[at].Value.(bson.RawValue)
			if !ok {
				return nil, badValue("two changes of the field '%s' in one update", m.field)
			}
			sum, err := add(old, m.value)
			if err != nil {
				return nil, err
			}
			d[at].Value = sum
			return d, nil
		}
		if !m.value.IsNumber() {
			return nil, notANumber(m.value)
		}
	}
	if at >= 0 {
		d[at].Value = m.value
		return d, nil
	}
	return append(d, bson.E{Key: m.field, Value: m.value}), nil
}

func notANumber(v bson.RawValue) error {
	return &commandError{code: 14, name: "TypeMismatch",
		message: "Cannot apply $inc to a value of non-numeric type " + v.Type.String()}
}

// add is $inc: int32 unless that overflows, int64, or double.
func add(a, b bson.RawValue) (any, error) {
	for _, v := range []bson.RawValue{a, b} {
		if !v.IsNumber() || v.Type == bson.TypeDecimal128 {
			return nil, notANumber(v)
		}
	}
	if a.Type == bson.TypeDouble || b.Type == bson.TypeDouble {
		return a.AsFloat64() + b.AsFloat64(), nil
	}
	x, y := a.AsInt64(), b.AsInt64()
	sum := x + y
	if (sum > x) != (y > 0) && y != 0 {
		return nil, badValue("$inc would overflow")
	}
	if a.Type == bson.TypeInt32 && b.Type == bson.TypeInt32 && sum >= math.MinInt32 && sum <= math.MaxInt32 {
		return int32(sum), nil
	}
	return sum, nil
}
