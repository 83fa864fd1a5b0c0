package interop

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/wire"
)

// The scripted peer is for what FerretDB can't do: compression, writes without
// a reply, and what only a replica set says.

func startPeer(t *testing.T, o lab.MongoOptions) *lab.Mongo {
	t.Helper()
	m, err := lab.StartMongo(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Stop)
	return m
}

func peerSteps() []step {
	text := strings.Repeat("compress me ", 20_000)
	return []step{
		{"insert", func(ctx context.Context, c *mongo.Collection) (any, error) {
			return c.InsertOne(ctx, d("_id", 1, "text", text))
		}, []write{plain("insert", 1, 1, -1)}},
		{"insert many", func(ctx context.Context, c *mongo.Collection) (any, error) {
			docs := make([]any, 100)
			for i := range docs {
				docs[i] = d("_id", 100+i, "text", text[:1000])
			}
			return c.InsertMany(ctx, docs)
		}, []write{plain("insert", 100, 100, -1)}},
		{"update", func(ctx context.Context, c *mongo.Collection) (any, error) {
			return c.UpdateMany(ctx, d("_id", d("$gt", 149)), d("$set", d("x", 1)))
		}, []write{plain("update", 1, 50, 50)}},
		{"delete", func(ctx context.Context, c *mongo.Collection) (any, error) {
			return c.DeleteOne(ctx, d("_id", 100))
		}, []write{plain("delete", 1, 1, -1)}},
		{"find", func(ctx context.Context, c *mongo.Collection) (any, error) {
			cursor, err := c.Find(ctx, d(), options.Find().SetBatchSize(7).SetSort(d("_id", 1)))
			if err != nil {
				return nil, err
			}
			var all []bson.D
			err = cursor.All(ctx, &all)
			return fmt.Sprint(len(all), all), err
		}, nil},
		// As the Node.js driver's insertOne has it: compressed, the document is in
		// front of the concern.
		{"2 MB before the concern", func(ctx context.Context, c *mongo.Collection) (any, error) {
			var reply struct{ N int }
			err := c.Database().RunCommand(ctx, d("insert", collection, "documents", bson.A{d("_id", "late", "a", blob(2)[:2_000_000])},
				"writeConcern", d("w", 1, "j", true))).Decode(&reply)
			return reply, err
		}, []write{{Operation: "insert", Batch: 1, Concern: "w:1 j", N: 1, NModified: -1}}},
		{"5 MB", func(ctx context.Context, c *mongo.Collection) (any, error) {
			return c.InsertOne(ctx, d("_id", "big", "a", blob(1)))
		}, []write{plain("insert", 1, 1, -1)}},
	}
}

func TestPeer_Compressors(t *testing.T) {
	for _, name := range []string{"snappy", "zlib", "zstd"} {
		t.Run(name, func(t *testing.T) {
			o := lab.MongoOptions{Compressors: []string{name}, SetName: "rs0"}
			more := "&compressors=" + name
			a := startPeer(t, o)
			direct := runMongo(t, a.URI(a.Addr())+more, 0, peerSteps())

			const rtt = 10 * time.Millisecond
			b := startPeer(t, o)
			r := startLink(t, wire.MongoDB, b.Addr(), rtt)
			compare(t, direct, runMongo(t, b.URI(r.Addr())+more, rtt, peerSteps()))
			var want []write
			for _, s := range peerSteps() {
				want = append(want, s.writes...)
			}
			got := r.writes(t)
			checkMongoWrites(t, got, want)
			ids := map[string]bool{}
			for i := range got {
				f := &got[i]
				if f.Compressor != name {
					t.Errorf("%s: compressor %q, want %q", f.Operation, f.Compressor, name)
				}
				if f.Mongo.OpTime.T < 1 || f.Mongo.OpTime.TS == 0 {
					t.Errorf("%s: op time %+v", f.Operation, f.Mongo.OpTime)
				}
				ids[f.Mongo.LSID] = true
			}
			if len(ids) != 1 || ids[""] {
				t.Errorf("session ids %v: want the one that the driver pools", ids)
			}
		})
	}
}

func TestPeer_UnacknowledgedWrites(t *testing.T) {
	const rtt = 20 * time.Millisecond
	for _, compressor := range []string{"", "snappy"} {
		t.Run("compressor="+compressor, func(t *testing.T) {
			o := lab.MongoOptions{}
			if compressor != "" {
				o.Compressors = []string{compressor}
			}
			m := startPeer(t, o)
			r := startLink(t, wire.MongoDB, m.Addr(), rtt)
			// One connection, on which everything is answered in order: a reply
			// that went to the wrong request would show.
			client := dialMongo(t, m.URI(r.Addr())+"&maxPoolSize=1&compressors="+compressor)
			db := client.Database(database)
			silent := db.Collection(collection, options.Collection().SetWriteConcern(writeconcern.Unacknowledged()))
			var want []write
			for i := range 20 {
				res, err := silent.InsertOne(t.Context(), d("_id", i))
				if err != nil || res.Acknowledged {
					t.Fatalf("acknowledged %+v, %v", res, err)
				}
				want = append(want, write{Operation: "insert", Batch: 1, Concern: "w:0", N: -1, NModified: -1})
			}
			loud := db.Collection(collection)
			if n, err := loud.CountDocuments(t.Context(), d()); n != 20 || err != nil {
				t.Errorf("counted %d, %v; want 20", n, err)
			}
			if _, err := loud.DeleteMany(t.Context(), d("_id", d("$lt", 5))); err != nil {
				t.Error(err)
			}
			want = append(want, plain("delete", 1, 5, -1))
			if err := client.Disconnect(context.Background()); err != nil {
				t.Error(err)
			}
			got := r.writes(t)
			checkMongoWrites(t, got, want)
			for i := range got {
				f := &got[i]
				if silent := i < 20; f.NoReply != silent || f.Answered == silent || f.Compressor != compressor {
					t.Errorf("write %d: no reply %v, answered %v, compressor %q", i, f.NoReply, f.Answered, f.Compressor)
				}
			}
		})
	}
}

// The bulkWrite command of 8.0 as the driver sends it: two document sequences
// behind the command.
func TestPeer_BulkWriteAsTheDriverSendsIt(t *testing.T) {
	const mongo80 = 25 // its maxWireVersion
	for _, compressor := range []string{"", "zstd"} {
		t.Run("compressor="+compressor, func(t *testing.T) {
			o := lab.MongoOptions{MaxWireVersion: mongo80, SetName: "rs0"}
			if compressor != "" {
				o.Compressors = []string{compressor}
			}
			bulk := func(uri string) []string {
				client := dialMongo(t, uri+"&retryWrites=false&compressors="+compressor)
				writes := []mongo.ClientBulkWrite{
					{Database: "a", Collection: "b", Model: mongo.NewClientInsertOneModel().SetDocument(d("_id", 1, "a", blob(3)[:300_000]))},
					{Database: "c", Collection: "d", Model: mongo.NewClientUpdateManyModel().SetFilter(d()).SetUpdate(d("$set", d("x", 1)))},
					{Database: "a", Collection: "b", Model: mongo.NewClientDeleteOneModel().SetFilter(d("_id", 1))},
				}
				res, err := client.BulkWrite(t.Context(), writes,
					options.ClientBulkWrite().SetOrdered(false).SetWriteConcern(writeconcern.Majority()))
				if err != nil {
					t.Fatal(err)
				}
				if err := client.Disconnect(context.Background()); err != nil {
					t.Error(err)
				}
				return []string{fmt.Sprint(res.InsertedCount, res.MatchedCount, res.ModifiedCount, res.DeletedCount)}
			}
			m := startPeer(t, o)
			r := startLink(t, wire.MongoDB, m.Addr(), 10*time.Millisecond)
			direct := bulk(m.URI(m.Addr()))
			if direct[0] != "1 0 0 1" {
				t.Fatalf("directly: %s", direct[0])
			}
			compare(t, direct, bulk(m.URI(r.Addr())))
			got := r.writes(t)
			if len(got) != 1 {
				t.Fatalf("%d writes", len(got))
			}
			f := &got[0]
			// Of a compressed one the documents behind 256 KiB aren't counted.
			batch := 3
			if compressor != "" {
				batch = 0
			}
			if f.Operation != "bulkWrite" || f.Database != "admin" || f.Batch != batch || f.Concern() != "majority" || f.Failed() || f.Mongo.N != 2 {
				t.Errorf("read as %+v", *f.Exchange)
			}
		})
	}
}
