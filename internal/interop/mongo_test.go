package interop

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/wirewait/wirewait/internal/interop/ferret"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

func TestFerretDB_OutcomeAndWrites(t *testing.T) {
	direct := runMongo(t, "mongodb://"+ferret.Start(t)+"/", 0, steps())
	for _, rtt := range []time.Duration{0, 20 * time.Millisecond} {
		t.Run(rtt.String(), func(t *testing.T) {
			r := startLink(t, wire.MongoDB, ferret.Start(t), rtt)
			compare(t, direct, runMongo(t, "mongodb://"+r.Addr()+"/", rtt, steps()))
			var want []write
			for _, s := range steps() {
				want = append(want, s.writes...)
			}
			checkMongoWrites(t, r.writes(t), want)
		})
	}
}

// checkMongoWrites holds what the tracer got against what was written.
func checkMongoWrites(t *testing.T, got []trace.Finished, want []write) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(want) {
			t.Errorf("write %d: got %+v, want no more", i, seen(&got[i]))
			continue
		}
		if i >= len(got) {
			t.Errorf("write %d: want %+v, got no more", i, want[i])
			continue
		}
		f := &got[i]
		if s := seen(f); s != want[i] {
			t.Errorf("write %d:\n got  %+v\n want %+v", i, s, want[i])
		}
		if f.Protocol != wire.MongoDB || f.Database != database || f.Collection != collection {
			t.Errorf("write %d: %s of %q.%q", i, f.Protocol, f.Database, f.Collection)
		}
		if !f.NoReply && (!f.Answered || !f.OK) || f.Missing() || f.Failed() != (want[i].Errors > 0) {
			t.Errorf("write %d: answered %v, ok %v, failed %v", i, f.Answered, f.OK, f.Failed())
		}
		if f.Peer == nil || f.Peer.Driver == "" {
			t.Errorf("write %d: peer %+v, want the driver's name", i, f.Peer)
		}
	}
}

func seen(f *trace.Finished) write {
	wc := &f.Mongo.WriteConcern
	return write{
		Operation: f.Operation, Batch: f.Batch, Concern: wc.Label(), WTimeout: wc.WTimeout,
		N: f.Mongo.N, NModified: f.Mongo.NModified, Errors: f.Mongo.WriteErrors, Code: f.ErrorCode,
	}
}

func TestFerretDB_ManyClients(t *testing.T) {
	const clients, each = 16, 25
	r := startLink(t, wire.MongoDB, ferret.Start(t), 0)
	uri := "mongodb://" + r.Addr() + "/"
	// FerretDB makes a collection at its first insert, which must not race.
	first := dialMongo(t, uri)
	c := first.Database(database).Collection(collection)
	if _, err := c.InsertOne(t.Context(), d("_id", "first")); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for k := range clients {
		client := dialMongo(t, uri)
		wg.Go(func() {
			defer client.Disconnect(context.Background())
			c := client.Database(database).Collection(collection)
			for i := range each {
				id := k*each + i
				if _, err := c.InsertOne(t.Context(), d("_id", id, "client", k)); err != nil {
					t.Error(err)
				}
				if err := c.FindOne(t.Context(), d("_id", id)).Err(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	var all []bson.D
	cursor, err := c.Find(t.Context(), d("client", d("$gte", 0)), options.Find().SetSort(d("_id", 1)))
	if err == nil {
		err = cursor.All(t.Context(), &all)
	}
	if err != nil || len(all) != clients*each {
		t.Fatalf("%d documents, %v; want %d", len(all), err, clients*each)
	}
	if err := first.Disconnect(context.Background()); err != nil {
		t.Error(err)
	}
	want := make([]write, clients*each+1)
	for i := range want {
		want[i] = plain("insert", 1, 1, -1)
	}
	got := r.writes(t)
	checkMongoWrites(t, got, want)
	var conns []string
	for i := range got {
		conns = append(conns, fmt.Sprint(got[i].Conn.ClientAddr))
	}
	slices.Sort(conns)
	if n := len(slices.Compact(conns)); n < clients {
		t.Errorf("the writes came over %d connections, want at least %d", n, clients)
	}
}
