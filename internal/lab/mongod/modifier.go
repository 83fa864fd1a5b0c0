package mongod

import (
	"math"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// modifier is one field of one update operator.
type modifier struct {
	operator, field string
	value           bson.RawValue
}

// modifierNames are the operators that an update may have.
const modifierNames = "$set, $setOnInsert, $unset, $inc, $mul, $min, $max, $push, $addToSet, $pull, $pop, $rename, $currentDate"

func knownModifier(name string) bool {
	for _, known := range strings.Split(modifierNames, ", ") {
		if name == known {
			return true
		}
	}
	return false
}

func (m modifier) apply(d bson.D, inserting bool) (bson.D, error) {
	if m.operator == "$setOnInsert" && !inserting {
		return d, nil
	}
	if m.operator == "$rename" {
		return m.rename(d)
	}
	return setPath(d, m.field, func(old any) (any, bool, error) {
		var have bson.RawValue // Type 0: nothing
		if old != nil {
			var err error
			if have, err = rawValue(old); err != nil {
				return nil, false, err
			}
		}
		return m.change(have)
	})
}

func (m modifier) change(old bson.RawValue) (value any, keep bool, err error) {
	switch m.operator {
	case "$set", "$setOnInsert":
		return m.value, true, nil
	case "$unset":
		return nil, false, nil
	case "$inc", "$mul":
		return m.arithmetic(old)
	case "$min", "$max":
		c, ok := compareValues(m.value, old)
		if old.Type == 0 || ok && (c < 0) == (m.operator == "$min") && c != 0 {
			return m.value, true, nil
		}
		return old, true, nil
	case "$currentDate":
		if kind, _ := m.value.Document().Lookup("$type").StringValueOK(); kind == "timestamp" {
			return bson.Timestamp{T: uint32(time.Now().Unix()), I: 1}, true, nil
		}
		return bson.NewDateTimeFromTime(time.Now()), true, nil
	}
	return m.changeArray(old)
}

// changeArray is $push, $addToSet, $pull and $pop.
func (m modifier) changeArray(old bson.RawValue) (any, bool, error) {
	array, ok := old.ArrayOK()
	if !ok && old.Type != 0 {
		return nil, false, badValue("The field '%s' must be an array but is of type %s", m.field, old.Type)
	}
	values, err := array.Values()
	if err != nil && old.Type != 0 {
		return nil, false, err
	}
	out := make(bson.A, 0, len(values)+1)
	for _, v := range values {
		if m.operator != "$pull" || !equalValues(v, m.value) {
			out = append(out, v)
		}
	}
	switch m.operator {
	case "$pull":
		return out, old.Type != 0, nil
	case "$pop":
		if n, _ := m.value.AsInt64OK(); len(out) > 0 && n < 0 {
			out = out[1:]
		} else if len(out) > 0 {
			out = out[:len(out)-1]
		}
		return out, old.Type != 0, nil
	}
	added, err := m.each()
	if err != nil {
		return nil, false, err
	}
	for _, v := range added {
		if m.operator == "$addToSet" && contains(out, v) {
			continue
		}
		out = append(out, v)
	}
	return out, true, nil
}

func contains(a bson.A, v bson.RawValue) bool {
	for _, have := range a {
		if raw, ok := have.(bson.RawValue); ok && equalValues(raw, v) {
			return true
		}
	}
	return false
}

// each is what $push and $addToSet add: their value, or those of $each.
func (m modifier) each() ([]bson.RawValue, error) {
	doc, ok := m.value.DocumentOK()
	if !ok || !startsWithDollar(doc) {
		return []bson.RawValue{m.value}, nil
	}
	elements, err := doc.Elements()
	if err != nil {
		return nil, err
	}
	array, ok := elements[0].Value().ArrayOK()
	if len(elements) != 1 || elements[0].Key() != "$each" || !ok {
		return nil, notImplemented(m.operator + " with more than $each")
	}
	return array.Values()
}

func (m modifier) rename(d bson.D) (bson.D, error) {
	to, ok := m.value.StringValueOK()
	if !ok || to == m.field {
		return nil, badValue("The 'to' field for $rename must be another string: %s", m.field)
	}
	var moved any
	d, err := setPath(d, m.field, func(old any) (any, bool, error) {
		moved = old
		return nil, false, nil
	})
	if err != nil || moved == nil {
		return d, err
	}
	return setPath(d, to, func(any) (any, bool, error) { return moved, true, nil })
}

func (m modifier) arithmetic(old bson.RawValue) (any, bool, error) {
	if !m.value.IsNumber() || m.value.Type == bson.TypeDecimal128 {
		return nil, false, m.notANumber(m.value)
	}
	if old.Type == 0 {
		if m.operator == "$mul" {
			old = bson.RawValue{Type: bson.TypeInt32, Value: make([]byte, 4)}
		} else {
			return m.value, true, nil
		}
	}
	if !old.IsNumber() || old.Type == bson.TypeDecimal128 {
		return nil, false, m.notANumber(old)
	}
	if old.Type == bson.TypeDouble || m.value.Type == bson.TypeDouble {
		x, y := old.AsFloat64(), m.value.AsFloat64()
		if m.operator == "$mul" {
			return x * y, true, nil
		}
		return x + y, true, nil
	}
	x, y := old.AsInt64(), m.value.AsInt64()
	result := x + y
	overflow := (result > x) != (y > 0) && y != 0
	if m.operator == "$mul" {
		result = x * y
		overflow = x != 0 && (result/x != y || x == -1 && y == math.MinInt64)
	}
	if overflow {
		return nil, false, badValue("%s would overflow", m.operator)
	}
	if old.Type == bson.TypeInt32 && m.value.Type == bson.TypeInt32 && result >= math.MinInt32 && result <= math.MaxInt32 {
		return int32(result), true, nil
	}
	return result, true, nil
}

func (m modifier) notANumber(v bson.RawValue) error {
	return &commandError{code: 14, name: "TypeMismatch",
		message: "Cannot apply " + m.operator + " to a value of non-numeric type " + v.Type.String()}
}
