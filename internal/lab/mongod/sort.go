package mongod

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// sortKey is one field of a sort, ascending or not.
type sortKey struct {
	field string
	down  bool
}

func parseSort(v bson.RawValue) ([]sortKey, error) {
	doc, ok := v.DocumentOK()
	if !ok {
		return nil, nil
	}
	elements, err := doc.Elements()
	if err != nil {
		return nil, failedToParse("sort: %v", err)
	}
	var keys []sortKey
	for _, e := range elements {
		n, ok := e.Value().AsInt64OK()
		if !ok || n != 1 && n != -1 {
			return nil, badValue("sort: %s must be 1 or -1", e.Key())
		}
		keys = append(keys, sortKey{e.Key(), n == -1})
	}
	return keys, nil
}

// sortDocs is stable. Values of different kinds compare by BSON type, which is
// not a server's order.
func sortDocs(docs []bson.Raw, keys []sortKey) {
	if len(keys) == 0 {
		return
	}
	slices.SortStableFunc(docs, func(a, b bson.Raw) int {
		for _, k := range keys {
			x, y := sortValue(a, k.field), sortValue(b, k.field)
			c, ok := compareValues(x, y)
			if !ok {
				c = int(x.Type) - int(y.Type)
			}
			if c != 0 && k.down {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		return 0
	})
}

// sortValue is the first value at a path; null if there is none.
func sortValue(doc bson.Raw, path string) bson.RawValue {
	if found := resolve(doc, path); len(found) > 0 {
		return found[0]
	}
	return bson.RawValue{Type: bson.TypeNull}
}
