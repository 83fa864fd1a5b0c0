package mongo

import (
	"maps"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// A read concern is nothing to wait for with a write, and no write concern:
// whatever it says, a read stays one and a write keeps its own
// (specifications, read-write-concern.md, and read_concern_args.cpp for the rest).
func TestConcern_EveryReadConcern(t *testing.T) {
	ts := bson.Timestamp{T: 7, I: 1}
	for _, rc := range []bson.D{
		{}, {{Key: "level", Value: "local"}}, {{Key: "level", Value: "available"}}, {{Key: "level", Value: "majority"}},
		{{Key: "level", Value: "linearizable"}}, {{Key: "level", Value: "snapshot"}, {Key: "atClusterTime", Value: ts}},
		{{Key: "level", Value: "majority"}, {Key: "afterClusterTime", Value: ts}},
		{{Key: "afterOpTime", Value: bson.D{{Key: "ts", Value: ts}, {Key: "t", Value: int64(3)}}}},
		{{Key: "level", Value: "local"}, {Key: "provenance", Value: "customDefault"}},
		{{Key: "w", Value: "majority"}, {Key: "writeConcern", Value: bson.D{{Key: "w", Value: 9}}}},
	} {
		field := bson.E{Key: "readConcern", Value: rc}
		for _, name := range []string{"find", "aggregate", "distinct", "count"} {
			x := ofCommand(t, bson.D{{Key: name, Value: "c"}, field, {Key: "$db", Value: "d"}})
			if wc := x.Mongo.WriteConcern; x.Write || wc.W != "" || wc.Source != "" || len(wc.Raw) > 0 || x.Database != "d" {
				t.Errorf("%s with %v: read as %s", name, rc, said(x))
			}
		}
		// As in a transaction's first command, and a causally consistent one.
		x := ofCommand(t, bson.D{{Key: "insert", Value: "c"}, field, {Key: "writeConcern", Value: bson.D{{Key: "w", Value: 2}}}, {Key: "$db", Value: "d"}})
		if !x.Write || x.Mongo.WriteConcern.W != "2" {
			t.Errorf("insert with %v: read as %s", rc, said(x))
		}
	}
}

// Every form that a server takes (write_concern_options.cpp, and the
// provenance that members add), with the word that tables and metrics have
// for it.
func TestConcern_EveryWriteConcern(t *testing.T) {
	w := func(v any, more ...bson.E) bson.D { return append(bson.D{{Key: "w", Value: v}}, more...) }
	for _, c := range []struct {
		wc       bson.D
		label    string
		wtimeout time.Duration
	}{
		{bson.D{}, "default", 0},
		{w(0), "w:0", 0}, {w(1), "w:1", 0}, {w(50), "w:50", 0}, {w(int64(3)), "w:3", 0}, {w(2.0), "w:2", 0},
		{w("majority"), "majority", 0}, {w("majority", bson.E{Key: "j", Value: true}), "majority j", 0},
		{w("majority", bson.E{Key: "j", Value: false}), "majority", 0},
		{w(1, bson.E{Key: "j", Value: 1}), "w:1 j", 0}, {w(1, bson.E{Key: "j", Value: 0.0}), "w:1", 0},
		{bson.D{{Key: "j", Value: true}}, "w:default j", 0}, {bson.D{{Key: "fsync", Value: true}}, "default", 0},
		{w(2, bson.E{Key: "wtimeout", Value: 0}), "w:2", 0},
		{w(2, bson.E{Key: "wtimeout", Value: 1500}), "w:2", 1500 * time.Millisecond},
		{w(2, bson.E{Key: "wtimeout", Value: int64(5)}), "w:2", 5 * time.Millisecond},
		{bson.D{{Key: "wtimeout", Value: 250.0}}, "default", 250 * time.Millisecond},
		{w("eastCoast"), "w:tag", 0}, {w(bson.D{{Key: "dc", Value: 2}, {Key: "rack", Value: 3}}), "w:tag", 0},
		{w("majority", bson.E{Key: "wtimeout", Value: 0}, bson.E{Key: "provenance", Value: "implicitDefault"}), "majority", 0},
		// What a server refuses is shown or left out, and never an error of ours.
		{w(bson.A{1}), "default", 0}, {w(nil), "default", 0}, {w(-1), "w:-1", 0}, {w(1, bson.E{Key: "wtimeout", Value: -5}), "w:1", 0},
		{w(strings.Repeat("t", 2000)), "w:tag", 0},
	} {
		for _, name := range []string{"insert", "findAndModify", "bulkWrite", "createIndexes", "dropDatabase", "createUser"} {
			x := ofCommand(t, bson.D{{Key: name, Value: 1}, {Key: "writeConcern", Value: c.wc}, {Key: "$db", Value: "d"}})
			got := x.Mongo.WriteConcern
			if !x.Write || got.Label() != c.label || got.WTimeout != c.wtimeout || got.Source != "command" || x.Database != "d" {
				t.Errorf("%s with %v: %q, %v; read as %s", name, c.wc, got.Label(), got.WTimeout, said(x))
			}
			if sent := doc(t, c.wc); len(sent) <= maxConcern != (string(got.Raw) == string(sent)) {
				t.Errorf("%v is kept as %x", c.wc, got.Raw)
			}
		}
	}
}

// An object of tags is kept as what it asks for; one that a server refuses isn't.
func TestConcern_Tags(t *testing.T) {
	for _, c := range []struct {
		w    any
		tags map[string]int
	}{
		{bson.D{{Key: "dc", Value: 2}, {Key: "rack", Value: int64(3)}}, map[string]int{"dc": 2, "rack": 3}},
		{bson.D{{Key: "dc", Value: 2.0}}, map[string]int{"dc": 2}},
		{bson.D{{Key: "dc", Value: "two"}}, nil}, {bson.D{{Key: "dc", Value: -1}}, nil},
		{"dc", nil}, {2, nil},
	} {
		x := ofCommand(t, bson.D{{Key: "insert", Value: "c"}, {Key: "writeConcern", Value: bson.D{{Key: "w", Value: c.w}}}, {Key: "$db", Value: "d"}})
		if got := x.Mongo.WriteConcern.Tags; !maps.Equal(got, c.tags) {
			t.Errorf("w: %v has the tags %v", c.w, got)
		}
	}
}

// Whatever looks like one elsewhere is the user's data.
func TestConcern_OnlyTheCommandsOwn(t *testing.T) {
	wc := bson.D{{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 9}}}}
	for _, d := range []bson.D{
		{{Key: "find", Value: "c"}, {Key: "filter", Value: wc}},
		{{Key: "find", Value: "c"}, {Key: "comment", Value: wc}},
		{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{wc}}},
		{{Key: "find", Value: "c"}, {Key: "let", Value: wc}, {Key: "sort", Value: wc}},
	} {
		if x := ofCommand(t, d); x.Write || len(x.Mongo.WriteConcern.Raw) > 0 {
			t.Errorf("%v: read as %s", d, said(x))
		}
	}
	x := ofCommand(t, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{wc}}}, kind1("documents", doc(t, wc)))
	if x.Mongo.WriteConcern.Source != "assumed" || len(x.Mongo.WriteConcern.Raw) > 0 {
		t.Errorf("read as %s", said(x))
	}
}
