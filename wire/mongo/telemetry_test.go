package mongo

import (
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/wire"
)

// A telemetry section (kind 3, of servers from 9.0 on) gives the parent
// wherever it stands, and is no part of the command.
func TestSections_Telemetry(t *testing.T) {
	command := kind0(doc(t, bson.D{{Key: "update", Value: "c"}, {Key: "writeConcern", Value: bson.D{{Key: "w", Value: 2}}}, {Key: "$db", Value: "d"}}))
	one := doc(t, bson.D{{Key: "q", Value: bson.D{}}})
	updates := kind1("updates", one, one)
	telemetry := func(d bson.D) []byte { return cat([]byte{3}, doc(t, d)) }
	otel := func(v any) []byte { return telemetry(bson.D{{Key: "otel", Value: v}}) }
	good := otel(bson.D{{Key: "traceparent", Value: parent}})
	for name, c := range map[string]struct {
		sections [][]byte
		want     string
	}{
		"last":            {[][]byte{command, updates, good}, parent},
		"between":         {[][]byte{command, good, updates}, parent},
		"first":           {[][]byte{good, updates, command}, parent},
		"more in it":      {[][]byte{command, telemetry(bson.D{{Key: "x", Value: 1}, {Key: "otel", Value: bson.D{{Key: "tracestate", Value: "a=b"}, {Key: "traceparent", Value: parent}}}}), updates}, parent},
		"not sampled":     {[][]byte{command, updates, otel(bson.D{{Key: "traceparent", Value: parent[:53] + "00"}})}, parent[:53] + "00"},
		"nothing in it":   {[][]byte{command, telemetry(bson.D{}), updates}, ""},
		"not a document":  {[][]byte{command, otel(parent), updates}, ""},
		"not a parent":    {[][]byte{command, otel(bson.D{{Key: "traceparent", Value: "00-" + strings.Repeat("0", 52)}}), updates}, ""},
		"not a string":    {[][]byte{command, otel(bson.D{{Key: "traceparent", Value: 5}}), updates}, ""},
		"in the command":  {[][]byte{kind0(doc(t, bson.D{{Key: "update", Value: "c"}, {Key: "otel", Value: bson.D{{Key: "traceparent", Value: parent}}}, {Key: "writeConcern", Value: bson.D{{Key: "w", Value: 2}}}, {Key: "$db", Value: "d"}})), updates}, ""},
		"twice, an error": {[][]byte{command, updates, good, good}, parent},
	} {
		plain := msg(1, 0, 0, c.sections...)
		for form, m := range map[string][]byte{"plain": plain, "with a checksum": summed(plain), "compressed": compress(t, packedZstd, plain)} {
			for _, step := range []int{1 << 20, 1} {
				t.Run(fmt.Sprintf("%s, %s, by %d", name, form, step), func(t *testing.T) {
					h := newHarness(t, wire.Options{})
					h.cuts(wire.ToServer, m, func() int { return step })
					// A reply has none so far. One that had would still be read.
					h.feed(wire.ToClient, msg(2, 1, 0, good, kind0(doc(t, bson.D{{Key: "n", Value: 2}, {Key: "ok", Value: 1.0}}))))
					all := h.end()
					if len(all) != 1 || len(h.troubles) > 0 {
						t.Fatalf("%d exchanges, troubles %v", len(all), h.troubles)
					}
					x := all[0]
					if x.Traceparent != c.want || x.Operation != "update" || x.Batch != 2 || x.Mongo.WriteConcern.W != "2" || !x.OK || x.Mongo.N != 2 {
						t.Errorf("read as %s", said(x))
					}
				})
			}
		}
	}
}
