package mongod

import "go.mongodb.org/mongo-driver/v2/bson"

// aggregate does what drivers and shells count and list documents with: $match,
// $sort, $skip, $limit, $project, $count, and a $group of everything whose fields
// are sums of a constant.
func (s *Server) aggregate(q *request) (bson.D, error) {
	if q.Collection == "" {
		return nil, notImplemented("an aggregation without a collection")
	}
	array, ok := q.body.Lookup("pipeline").ArrayOK()
	stages, err := array.Values()
	if !ok || err != nil {
		return nil, failedToParse("aggregate needs an array \"pipeline\"")
	}
	docs, err := s.matching(q, filter{}, 0)
	if err != nil {
		return nil, err
	}
	for _, stage := range stages {
		if docs, err = runStage(stage, docs); err != nil {
			return nil, err
		}
	}
	cur := &cursor{namespace: q.namespace(), docs: docs}
	batch := cur.batch(firstBatch)
	return cursorReply(s.cursors.keep(0, cur), cur.namespace, "firstBatch", batch), nil
}

func runStage(stage bson.RawValue, docs []bson.Raw) ([]bson.Raw, error) {
	doc, _ := stage.DocumentOK()
	e, err := doc.IndexErr(0)
	if err != nil {
		return nil, badValue("a pipeline stage must be a document with one field")
	}
	switch e.Key() {
	case "$match":
		where, _ := e.Value().DocumentOK()
		f, err := parseFilter(where)
		if err != nil {
			return nil, err
		}
		var kept []bson.Raw
		for _, d := range docs {
			if f.match(d) {
				kept = append(kept, d)
			}
		}
		return kept, nil
	case "$skip", "$limit":
		n, err := amount(doc, e.Key(), 0)
		if err != nil {
			return nil, err
		}
		if e.Key() == "$skip" {
			return cut(docs, n, 0), nil
		}
		if n == 0 {
			return nil, badValue("$limit must be positive")
		}
		return cut(docs, 0, n), nil
	case "$sort":
		order, err := parseSort(e.Value())
		if err != nil {
			return nil, err
		}
		sortDocs(docs, order)
		return docs, nil
	case "$project":
		p, err := parseProjection(e.Value())
		if err != nil {
			return nil, err
		}
		return project(docs, p)
	case "$count":
		return count(e.Value(), len(docs))
	case "$group":
		return group(e.Value(), len(docs))
	}
	return nil, &commandError{code: 40324, name: "Location40324",
		message: "Unrecognized pipeline stage name: '" + e.Key() + "' (this lab knows $match, $sort, $skip, $limit, $project, $count, $group)"}
}

func group(spec bson.RawValue, n int) ([]bson.Raw, error) {
	doc, _ := spec.DocumentOK()
	elements, err := doc.Elements()
	if err != nil || len(elements) == 0 || elements[0].Key() != "_id" {
		return nil, badValue("$group needs a document that begins with _id")
	}
	id := elements[0].Value()
	if _, isField := id.StringValueOK(); isField || id.Type == bson.TypeEmbeddedDocument {
		return nil, notImplemented("$group by a field")
	}
	if n == 0 {
		return nil, nil
	}
	out := bson.D{{Key: "_id", Value: id}}
	for _, e := range elements[1:] {
		sum, _ := e.Value().DocumentOK()
		each, ok := sum.Lookup("$sum").AsInt64OK()
		if !ok {
			return nil, notImplemented("a $group field other than $sum of a number")
		}
		out = append(out, bson.E{Key: e.Key(), Value: int32(each * int64(n))})
	}
	raw, err := bson.Marshal(out)
	if err != nil {
		return nil, err
	}
	return []bson.Raw{raw}, nil
}

func count(field bson.RawValue, n int) ([]bson.Raw, error) {
	name, ok := field.StringValueOK()
	if !ok || name == "" {
		return nil, badValue("the count field must be a non-empty string")
	}
	if n == 0 {
		return nil, nil
	}
	raw, err := bson.Marshal(bson.D{{Key: name, Value: int32(n)}})
	return []bson.Raw{raw}, err
}
