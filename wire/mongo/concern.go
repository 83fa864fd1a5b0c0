package mongo

import (
	"math"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/wire"
)

const maxConcern = 1024 // bytes of a write concern that are kept as sent

// readConcern reads a writeConcern document
// (mongo/src/mongo/db/write_concern_options.cpp); false if it isn't valid BSON.
func readConcern(wc *wire.WriteConcern, v []byte, text *interned) bool {
	doc := bson.Raw(v)
	if doc.Validate() != nil {
		return false
	}
	wc.Raw = wc.Raw[:0]
	if len(v) <= maxConcern {
		wc.Raw = append(wc.Raw, v...)
	}
	if w, err := doc.LookupErr("w"); err == nil {
		wc.W = concernW(w, text)
		if w.Type == bson.TypeEmbeddedDocument {
			wc.Tags = concernTags(bson.Raw(w.Value), text)
		}
	}
	if j, err := doc.LookupErr("j"); err == nil {
		wc.J = concernJ(j)
	}
	if t, err := doc.LookupErr("wtimeout"); err == nil {
		if ms, ok := number(byte(t.Type), t.Value); ok && ms > 0 && ms < 1<<40 {
			wc.WTimeout = time.Duration(ms) * time.Millisecond
		}
	}
	return true
}

func concernW(w bson.RawValue, text *interned) string {
	switch w.Type {
	case bson.TypeString:
		if len(w.Value) > 4 {
			return text.text(w.Value[4 : len(w.Value)-1])
		}
	case bson.TypeEmbeddedDocument:
		return "{...}"
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble:
		if n, ok := number(byte(w.Type), w.Value); ok {
			return text.code(n)
		}
	}
	return ""
}

// maxConcernTags is far more than a set has.
const maxConcernTags = 50

// concernTags reads w as an object, {dc: 2}; nil if it isn't all numbers.
func concernTags(w bson.Raw, text *interned) map[string]int {
	elements, err := w.Elements()
	if err != nil || len(elements) > maxConcernTags {
		return nil
	}
	tags := make(map[string]int, len(elements))
	for _, e := range elements {
		v := e.Value()
		n, ok := number(byte(v.Type), v.Value)
		if !ok || n < 0 || n > math.MaxInt32 {
			return nil
		}
		tags[text.text([]byte(e.Key()))] = int(n)
	}
	return tags
}

func concernJ(j bson.RawValue) string {
	n, ok := number(byte(j.Type), j.Value)
	switch {
	case !ok:
		return ""
	case n != 0:
		return "true"
	}
	return "false"
}
