package mongod

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// projection says which fields of a document to return: those it names, or all
// but those. nil returns everything.
type projection struct {
	named   map[string]*projection // what it names at this level; a nil value: the whole field
	exclude bool
}

func parseProjection(v bson.RawValue) (*projection, error) {
	doc, ok := v.DocumentOK()
	elements, err := doc.Elements()
	if !ok || err != nil || len(elements) == 0 {
		return nil, err
	}
	p := &projection{named: map[string]*projection{}, exclude: true}
	withID := true
	for _, e := range elements {
		on, isBool := e.Value().BooleanOK()
		if !isBool && !e.Value().IsNumber() || strings.Contains(e.Key(), "$") {
			return nil, notImplemented("a projection of more than fields (" + e.Key() + ")")
		}
		on = on || truth(e.Value())
		switch {
		case e.Key() == "_id":
			withID = on
			continue
		case len(p.named) > 0 && p.exclude == on:
			return nil, &commandError{code: 31254, name: "Location31254", message: "Cannot do exclusion on field " + e.Key() + " in inclusion projection"}
		}
		p.exclude = !on
		p.add(e.Key())
	}
	if len(p.named) == 0 && withID {
		p.exclude = false // {_id: 1} is nothing but the id
	}
	if withID != p.exclude {
		p.add("_id")
	}
	return p, nil
}

func (p *projection) add(path string) {
	step, rest, more := strings.Cut(path, ".")
	if !more {
		p.named[step] = nil
		return
	}
	inner := p.named[step]
	if inner == nil {
		inner = &projection{named: map[string]*projection{}, exclude: p.exclude}
		p.named[step] = inner
	}
	inner.exclude = p.exclude
	inner.add(rest)
}

func (p *projection) apply(doc bson.Raw) bson.D {
	d := bson.D{}
	for _, f := range fields(doc) {
		inner, named := p.named[f.Key]
		switch {
		case named && inner != nil:
			if v, ok := inner.into(f.Value); ok {
				d = append(d, bson.E{Key: f.Key, Value: v})
			}
		case named != p.exclude:
			d = append(d, f)
		}
	}
	return d
}

// into applies to what a field holds: a document, or each of an array's.
func (p *projection) into(v any) (any, bool) {
	raw, ok := v.(bson.RawValue)
	if doc, isDoc := raw.DocumentOK(); ok && isDoc {
		return p.apply(doc), true
	}
	a, isArray := open(v).(bson.A)
	if !isArray {
		return v, p.exclude
	}
	out := bson.A{}
	for _, e := range a {
		if kept, ok := p.into(e); ok {
			out = append(out, kept)
		}
	}
	return out, true
}

// project applies a projection to many; nil leaves them as they are.
func project(docs []bson.Raw, p *projection) ([]bson.Raw, error) {
	if p == nil {
		return docs, nil
	}
	out := make([]bson.Raw, len(docs))
	for i, doc := range docs {
		raw, err := bson.Marshal(p.apply(doc))
		if err != nil {
			return nil, err
		}
		out[i] = raw
	}
	return out, nil
}
