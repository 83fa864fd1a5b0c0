package mongod

import (
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// resolve finds the values at a dotted path. Within an array a step is a place,
// or goes into each of its documents.
func resolve(doc bson.Raw, path string) []bson.RawValue {
	step, rest, more := strings.Cut(path, ".")
	v, err := doc.LookupErr(step)
	if err != nil {
		return nil
	}
	if !more {
		return []bson.RawValue{v}
	}
	return descend(v, rest)
}

func descend(v bson.RawValue, path string) (found []bson.RawValue) {
	if inner, ok := v.DocumentOK(); ok {
		return resolve(inner, path)
	}
	array, ok := v.ArrayOK()
	if !ok {
		return nil
	}
	values, _ := array.Values()
	step, rest, more := strings.Cut(path, ".")
	if at, err := strconv.Atoi(step); err == nil && at >= 0 && at < len(values) {
		if !more {
			found = append(found, values[at])
		} else {
			found = append(found, descend(values[at], rest)...)
		}
	}
	for _, e := range values {
		if inner, ok := e.DocumentOK(); ok {
			found = append(found, resolve(inner, path)...)
		}
	}
	return found
}

// matchAny reports whether a test holds for the value at a path, or for an
// element of it if it's an array. A missing field is null, as in queries.
func matchAny(doc bson.Raw, path string, holds func(bson.RawValue) bool) bool {
	found := resolve(doc, path)
	if len(found) == 0 {
		return holds(bson.RawValue{Type: bson.TypeNull})
	}
	for _, v := range found {
		if holds(v) {
			return true
		}
		array, _ := v.ArrayOK()
		values, _ := array.Values()
		for _, e := range values {
			if holds(e) {
				return true
			}
		}
	}
	return false
}

// setPath changes what stands at a path, by change, which gets the old value (nil:
// there is none) and says whether to keep the new one. Documents on the way are
// made if there's something to put into them.
func setPath(d bson.D, path string, change func(old any) (value any, keep bool, err error)) (bson.D, error) {
	step, rest, more := strings.Cut(path, ".")
	at := -1
	var old any
	for i := range d {
		if d[i].Key == step {
			at, old = i, d[i].Value
		}
	}
	value, keep, err := changeAt(old, step, rest, more, change)
	switch {
	case err != nil:
		return nil, err
	case at < 0 && keep:
		return append(d, bson.E{Key: step, Value: value}), nil
	case at < 0:
		return d, nil
	case !keep:
		return append(d[:at], d[at+1:]...), nil
	}
	d[at].Value = value
	return d, nil
}

func changeAt(old any, step, rest string, more bool, change func(any) (any, bool, error)) (any, bool, error) {
	if !more {
		return change(old)
	}
	switch inner := open(old).(type) {
	case nil:
		d, err := setPath(bson.D{}, rest, change)
		return d, len(d) > 0, err
	case bson.D:
		d, err := setPath(inner, rest, change)
		return d, true, err
	case bson.A:
		return changeElement(inner, rest, change)
	}
	return nil, false, &commandError{code: 28, name: "PathNotViable", message: "Cannot create field '" + rest + "' in element '" + step + "'"}
}

func changeElement(a bson.A, path string, change func(any) (any, bool, error)) (any, bool, error) {
	step, rest, more := strings.Cut(path, ".")
	at, err := strconv.Atoi(step)
	if err != nil || at < 0 {
		return nil, false, notImplemented("the path " + path + " in an array")
	}
	if at > len(a)+1000 {
		return nil, false, badValue("%s is far beyond the array's end", path)
	}
	for len(a) <= at {
		a = append(a, nil)
	}
	value, keep, err := changeAt(a[at], step, rest, more, change)
	if !keep {
		value = nil // $unset leaves a gap
	}
	a[at] = value
	return a, true, err
}

// open turns a document or an array that is still as it was read into something
// that can be changed; anything else it returns as it is.
func open(v any) any {
	raw, ok := v.(bson.RawValue)
	if !ok {
		return v
	}
	if doc, ok := raw.DocumentOK(); ok {
		return fields(doc)
	}
	if array, ok := raw.ArrayOK(); ok {
		values, _ := array.Values()
		a := make(bson.A, len(values))
		for i, e := range values {
			a[i] = e
		}
		return a
	}
	return v
}

// fields are a document's, their values as they are.
func fields(doc bson.Raw) bson.D {
	elements, _ := doc.Elements()
	d := make(bson.D, 0, len(elements)+1)
	for _, e := range elements {
		d = append(d, bson.E{Key: e.Key(), Value: e.Value()})
	}
	return d
}

// rawValue is a value as the wire has it.
func rawValue(v any) (bson.RawValue, error) {
	if raw, ok := v.(bson.RawValue); ok {
		return raw, nil
	}
	t, b, err := bson.MarshalValue(v)
	return bson.RawValue{Type: t, Value: b}, err
}
