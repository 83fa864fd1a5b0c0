package mongod

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// filter is a query: all clauses must hold. Fields are those at the top of a
// document; dotted paths and elements of arrays are refused, not ignored.
type filter struct {
	clauses []clause
}

type clause struct {
	field string
	// equal is set if the term is plain equality, as upserts and lookups by _id
	// need to know.
	equal bson.RawValue
	match func(doc bson.Raw) bool
}

func (f filter) match(doc bson.Raw) bool {
	for _, t := range f.clauses {
		if !t.match(doc) {
			return false
		}
	}
	return true
}

// id is the _id that the filter asks for, if it does.
func (f filter) id() (bson.RawValue, bool) {
	for _, t := range f.clauses {
		if t.field == "_id" && t.equal.Type != 0 {
			return t.equal, true
		}
	}
	return bson.RawValue{}, false
}

// seed is the document that an upsert begins with: the filter's equalities.
func (f filter) seed() bson.Raw {
	d := bson.D{}
	for _, t := range f.clauses {
		if t.equal.Type != 0 {
			d = append(d, bson.E{Key: t.field, Value: t.equal})
		}
	}
	raw, err := bson.Marshal(d)
	if err != nil {
		return emptyDoc
	}
	return raw
}

var emptyDoc = bson.Raw{5, 0, 0, 0, 0}

func equalID(id bson.RawValue) filter {
	return filter{clauses: []clause{equality("_id", id)}}
}

func equality(field string, want bson.RawValue) clause {
	return clause{field: field, equal: want, match: func(doc bson.Raw) bool {
		return equalValues(lookup(doc, field), want)
	}}
}

// lookup takes a missing field for null, as queries do.
func lookup(doc bson.Raw, field string) bson.RawValue {
	v, err := doc.LookupErr(field)
	if err != nil {
		return bson.RawValue{Type: bson.TypeNull}
	}
	return v
}

// parseFilter reads a query document; nil matches everything.
func parseFilter(doc bson.Raw) (filter, error) {
	var f filter
	if len(doc) == 0 {
		return f, nil
	}
	elements, err := doc.Elements()
	if err != nil {
		return f, failedToParse("query: %v", err)
	}
	for _, e := range elements {
		t, err := parseTerm(e.Key(), e.Value())
		if err != nil {
			return f, err
		}
		f.clauses = append(f.clauses, t...)
	}
	return f, nil
}

func parseTerm(field string, v bson.RawValue) ([]clause, error) {
	switch {
	case field == "$comment":
		return nil, nil
	case strings.HasPrefix(field, "$"):
		return nil, badValue("unknown top level operator: %s", field)
	case strings.Contains(field, "."):
		return nil, notImplemented("a dotted path (" + field + ")")
	}
	doc, ok := v.DocumentOK()
	if !ok || !startsWithDollar(doc) {
		if v.Type == bson.TypeRegex {
			return nil, notImplemented("a regular expression")
		}
		return []clause{equality(field, v)}, nil
	}
	elements, err := doc.Elements()
	if err != nil {
		return nil, failedToParse("query on %s: %v", field, err)
	}
	var clauses []clause
	for _, e := range elements {
		t, err := parseOperator(field, e.Key(), e.Value())
		if err != nil {
			return nil, err
		}
		clauses = append(clauses, t)
	}
	return clauses, nil
}

func startsWithDollar(doc bson.Raw) bool {
	first, err := doc.IndexErr(0)
	return err == nil && strings.HasPrefix(first.Key(), "$")
}

func parseOperator(field, operator string, want bson.RawValue) (clause, error) {
	ordered := func(holds func(int) bool) clause {
		return clause{field: field, match: func(doc bson.Raw) bool {
			c, ok := compareValues(lookup(doc, field), want)
			return ok && holds(c)
		}}
	}
	switch operator {
	case "$eq":
		return equality(field, want), nil
	case "$ne":
		return clause{field: field, match: func(doc bson.Raw) bool { return !equalValues(lookup(doc, field), want) }}, nil
	case "$gt":
		return ordered(func(c int) bool { return c > 0 }), nil
	case "$gte":
		return ordered(func(c int) bool { return c >= 0 }), nil
	case "$lt":
		return ordered(func(c int) bool { return c < 0 }), nil
	case "$lte":
		return ordered(func(c int) bool { return c <= 0 }), nil
	case "$exists":
		exists, isBool := want.BooleanOK()
		if !isBool {
			return clause{}, badValue("$exists needs true or false")
		}
		return clause{field: field, match: func(doc bson.Raw) bool {
			_, err := doc.LookupErr(field)
			return (err == nil) == exists
		}}, nil
	case "$in", "$nin":
		return parseIn(field, operator, want)
	}
	return clause{}, badValue("unknown operator: %s", operator)
}

func parseIn(field, operator string, want bson.RawValue) (clause, error) {
	array, ok := want.ArrayOK()
	values, err := array.Values()
	if !ok || err != nil {
		return clause{}, badValue("%s needs an array", operator)
	}
	return clause{field: field, match: func(doc bson.Raw) bool {
		v := lookup(doc, field)
		in := slices.ContainsFunc(values, func(w bson.RawValue) bool { return equalValues(v, w) })
		return in == (operator == "$in")
	}}, nil
}

func equalValues(a, b bson.RawValue) bool {
	if c, ok := compareValues(a, b); ok {
		return c == 0
	}
	return a.Type == b.Type && bytes.Equal(a.Value, b.Value)
}

// compareValues orders numbers, strings, dates, object ids and timestamps, each
// among their kind; others have no order here.
func compareValues(a, b bson.RawValue) (int, bool) {
	if a.IsNumber() && b.IsNumber() {
		return compareNumbers(a, b)
	}
	if a.Type != b.Type {
		return 0, false
	}
	switch a.Type {
	case bson.TypeString:
		return cmp.Compare(a.StringValue(), b.StringValue()), true
	case bson.TypeDateTime:
		return cmp.Compare(a.DateTime(), b.DateTime()), true
	case bson.TypeObjectID:
		return bytes.Compare(a.Value, b.Value), true
	case bson.TypeTimestamp:
		return cmp.Compare(binary.LittleEndian.Uint64(a.Value), binary.LittleEndian.Uint64(b.Value)), true
	}
	return 0, false
}

func compareNumbers(a, b bson.RawValue) (int, bool) {
	if a.Type != bson.TypeDouble && b.Type != bson.TypeDouble {
		x, ok1 := a.AsInt64OK()
		y, ok2 := b.AsInt64OK()
		return cmp.Compare(x, y), ok1 && ok2
	}
	x, ok1 := a.AsFloat64OK()
	y, ok2 := b.AsFloat64OK()
	return cmp.Compare(x, y), ok1 && ok2
}

func appendInt64(b []byte, n int64) []byte { return binary.LittleEndian.AppendUint64(b, uint64(n)) }

// refuse says no to options that a server would obey and the peer doesn't know.
func refuse(doc bson.Raw, options ...string) error {
	for _, name := range options {
		v, err := doc.LookupErr(name)
		if err != nil {
			continue
		}
		d, isDoc := v.DocumentOK()
		on, isBool := v.BooleanOK()
		if isDoc && len(d) <= len(emptyDoc) || isBool && !on {
			continue
		}
		return notImplemented("the option " + name)
	}
	return nil
}
