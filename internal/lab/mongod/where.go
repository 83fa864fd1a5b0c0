package mongod

import (
	"context"
	"regexp"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// sleeping is the one $where that there is: JavaScript that takes its time for
// each document and then lets it pass, which is how operations are made to hold
// their tickets.
var sleeping = regexp.MustCompile(`^\s*(?:return\s+)?sleep\(\s*(\d{1,6})\s*\)\s*\|\|\s*true\s*;?\s*$`)

// splitWhere takes a query's $where off: how long it takes for each document.
func splitWhere(query bson.Raw) (rest bson.Raw, each time.Duration, err error) {
	v, err := query.LookupErr("$where")
	if err != nil {
		return query, 0, nil
	}
	script, ok := v.StringValueOK()
	if !ok {
		script, ok = v.JavaScriptOK()
	}
	found := sleeping.FindStringSubmatch(script)
	if !ok || found == nil {
		return nil, 0, notImplemented("a $where other than sleep(MILLISECONDS) || true")
	}
	ms, _ := strconv.Atoi(found[1])
	elements, err := query.Elements()
	if err != nil {
		return nil, 0, failedToParse("query: %v", err)
	}
	d := bson.D{}
	for _, e := range elements {
		if e.Key() != "$where" {
			d = append(d, bson.E{Key: e.Key(), Value: e.Value()})
		}
	}
	rest, err = bson.Marshal(d)
	return rest, time.Duration(ms) * time.Millisecond, err
}

// sleepEach is the time that a $where takes for so many documents.
func sleepEach(ctx context.Context, each time.Duration, documents int) error {
	if each <= 0 || documents == 0 {
		return nil
	}
	if err := sleep(ctx, each*time.Duration(documents), nil); err != nil {
		return whyEnded(err)
	}
	return nil
}
