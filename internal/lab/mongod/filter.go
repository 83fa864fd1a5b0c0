package mongod

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// filter is a query: all clauses must hold.
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
		return matchAny(doc, field, func(v bson.RawValue) bool { return equalValues(v, want) })
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
	switch field {
	case "$comment":
		return nil, nil
	case "$and", "$or", "$nor":
		c, err := parseLogical(field, v)
		return []clause{c}, err
	}
	if strings.HasPrefix(field, "$") {
		return nil, badValue("unknown top level operator: %s", field)
	}
	if v.Type == bson.TypeRegex {
		c, err := parseOperator(field, "$regex", v)
		return []clause{c}, err
	}
	doc, ok := v.DocumentOK()
	if !ok || !startsWithDollar(doc) {
		return []clause{equality(field, v)}, nil
	}
	return parseOperators(field, doc)
}

func parseOperators(field string, doc bson.Raw) ([]clause, error) {
	elements, err := doc.Elements()
	if err != nil {
		return nil, failedToParse("query on %s: %v", field, err)
	}
	var clauses []clause
	for _, e := range elements {
		if e.Key() == "$options" {
			continue // of $regex, which looks for it
		}
		v := e.Value()
		if e.Key() == "$regex" {
			if v, err = withOptions(v, doc); err != nil {
				return nil, err
			}
		}
		t, err := parseOperator(field, e.Key(), v)
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
			return matchAny(doc, field, func(v bson.RawValue) bool {
				c, ok := compareValues(v, want)
				return ok && holds(c)
			})
		}}
	}
	switch operator {
	case "$eq":
		return equality(field, want), nil
	case "$ne":
		return not(equality(field, want)), nil
	case "$gt":
		return ordered(func(c int) bool { return c > 0 }), nil
	case "$gte":
		return ordered(func(c int) bool { return c >= 0 }), nil
	case "$lt":
		return ordered(func(c int) bool { return c < 0 }), nil
	case "$lte":
		return ordered(func(c int) bool { return c <= 0 }), nil
	case "$exists":
		exists := truth(want)
		return clause{field: field, match: func(doc bson.Raw) bool { return len(resolve(doc, field)) > 0 == exists }}, nil
	case "$in":
		return parseIn(field, operator, want)
	case "$nin":
		c, err := parseIn(field, operator, want)
		return not(c), err
	}
	return parseOther(field, operator, want)
}

// not is a clause's opposite.
func not(c clause) clause {
	return clause{field: c.field, match: func(doc bson.Raw) bool { return !c.match(doc) }}
}

func parseIn(field, operator string, want bson.RawValue) (clause, error) {
	array, ok := want.ArrayOK()
	values, err := array.Values()
	if !ok || err != nil {
		return clause{}, badValue("%s needs an array", operator)
	}
	return clause{field: field, match: func(doc bson.Raw) bool {
		return matchAny(doc, field, func(v bson.RawValue) bool {
			return slices.ContainsFunc(values, func(w bson.RawValue) bool { return equalValues(v, w) })
		})
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
