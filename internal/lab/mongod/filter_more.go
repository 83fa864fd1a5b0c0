package mongod

import (
	"regexp"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// parseLogical is $and, $or and $nor.
func parseLogical(operator string, v bson.RawValue) (clause, error) {
	array, ok := v.ArrayOK()
	values, err := array.Values()
	if !ok || err != nil || len(values) == 0 {
		return clause{}, badValue("%s must be a nonempty array", operator)
	}
	var filters []filter
	for _, v := range values {
		doc, ok := v.DocumentOK()
		if !ok {
			return clause{}, badValue("%s entries need to be full objects", operator)
		}
		f, err := parseFilter(doc)
		if err != nil {
			return clause{}, err
		}
		filters = append(filters, f)
	}
	return clause{match: func(doc bson.Raw) bool {
		n := 0
		for _, f := range filters {
			if f.match(doc) {
				n++
			}
		}
		switch operator {
		case "$and":
			return n == len(filters)
		case "$or":
			return n > 0
		}
		return n == 0
	}}, nil
}

// parseOther are the operators that aren't comparisons.
func parseOther(field, operator string, want bson.RawValue) (clause, error) {
	switch operator {
	case "$not":
		doc, ok := want.DocumentOK()
		if !ok || !startsWithDollar(doc) {
			return clause{}, badValue("$not needs a regex or a document")
		}
		clauses, err := parseOperators(field, doc)
		return not(clause{field: field, match: filter{clauses}.match}), err
	case "$size":
		n, ok := want.AsInt64OK()
		if !ok || n < 0 {
			return clause{}, badValue("$size must be a whole number")
		}
		return clause{field: field, match: func(doc bson.Raw) bool {
			for _, v := range resolve(doc, field) {
				array, ok := v.ArrayOK()
				if values, _ := array.Values(); ok && int64(len(values)) == n {
					return true
				}
			}
			return false
		}}, nil
	case "$all":
		array, ok := want.ArrayOK()
		values, err := array.Values()
		if !ok || err != nil {
			return clause{}, badValue("$all needs an array")
		}
		var each filter
		for _, v := range values {
			each.clauses = append(each.clauses, equality(field, v))
		}
		return clause{field: field, match: func(doc bson.Raw) bool { return len(values) > 0 && each.match(doc) }}, nil
	case "$regex":
		return parseRegex(field, want)
	case "$elemMatch", "$type", "$mod", "$where", "$text", "$near", "$geoWithin", "$geoIntersects", "$jsonSchema", "$bitsAllSet", "$expr":
		return clause{}, notImplemented("the operator " + operator)
	}
	return clause{}, badValue("unknown operator: %s", operator)
}

// withOptions makes one value of $regex and the $options that stand beside it.
func withOptions(v bson.RawValue, doc bson.Raw) (bson.RawValue, error) {
	pattern, ok := v.StringValueOK()
	if !ok {
		return v, nil
	}
	options, _ := doc.Lookup("$options").StringValueOK()
	return rawValue(bson.Regex{Pattern: pattern, Options: options})
}

func parseRegex(field string, want bson.RawValue) (clause, error) {
	pattern, options, ok := want.RegexOK()
	if !ok {
		return clause{}, badValue("$regex has to be a string")
	}
	if strings.Trim(options, "ims") != "" {
		return clause{}, notImplemented("a regular expression with the options " + options)
	}
	if options != "" {
		pattern = "(?" + options + ")" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return clause{}, &commandError{code: 51091, name: "Location51091", message: "Regular expression is invalid: " + err.Error()}
	}
	return clause{field: field, match: func(doc bson.Raw) bool {
		return matchAny(doc, field, func(v bson.RawValue) bool {
			s, ok := v.StringValueOK()
			return ok && re.MatchString(s)
		})
	}}, nil
}
