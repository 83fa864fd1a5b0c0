package interop

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// database and collection of the scenarios.
const (
	database   = "shop"
	collection = "orders"
)

// write is what must reach the tracer of one command.
type write struct {
	Operation    string
	Batch        int    // 0: of findAndModify, which has none
	Concern      string // wire.WriteConcern.Label
	WTimeout     time.Duration
	N, NModified int64 // -1: not in the reply
	Errors       int
	Code         string
}

// plain is a write without a stated concern and without an error.
func plain(operation string, batch int, n, modified int64) write {
	return write{Operation: operation, Batch: batch, Concern: "default", N: n, NModified: modified}
}

// step is something a client does, the outcome as it sees it, and the writes
// that it takes.
type step struct {
	name   string
	do     func(ctx context.Context, c *mongo.Collection) (any, error)
	writes []write
}

// runMongo runs the steps over one client and returns their outcomes. Each must
// take at least the time given.
func runMongo(t *testing.T, uri string, least time.Duration, steps []step) (outcomes []string) {
	t.Helper()
	client := dialMongo(t, uri)
	c := client.Database(database).Collection(collection)
	for _, s := range steps {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		v, err := s.do(ctx, c)
		cancel()
		if d := time.Since(began); d < least {
			t.Errorf("%s took %v, want at least %v", s.name, d, least)
		}
		outcomes = append(outcomes, fmt.Sprintf("%s: %+v, error %s", s.name, v, errorText(err)))
	}
	if err := client.Disconnect(context.Background()); err != nil {
		t.Error(err)
	}
	return outcomes
}

func dialMongo(t *testing.T, uri string) *mongo.Client {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(uri).SetServerSelectionTimeout(30 * time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client
}

func errorText(err error) string {
	var se mongo.ServerError
	if errors.As(err, &se) {
		return fmt.Sprintf("%T %s", err, err)
	}
	return fmt.Sprint(err)
}

func d(pairs ...any) bson.D {
	doc := bson.D{}
	for i := 0; i < len(pairs); i += 2 {
		doc = append(doc, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
	}
	return doc
}

func steps() []step {
	return append(append(insertSteps(), changeSteps()...), lastSteps()...)
}

func insertSteps() []step {
	return []step{
		{"insert one", func(ctx context.Context, c *mongo.Collection) (any, error) {
			return c.InsertOne(ctx, d("_id", 1, "item", "pencil", "qty", 5))
		}, []write{plain("insert", 1, 1, -1)}},
		{"insert many", func(ctx context.Context, c *mongo.Collection) (any, error) {
			docs := make([]any, 250)
			for i := range docs {
				docs[i] = d("_id", 100+i, "item", "pen", "qty", i%10)
			}
			return c.InsertMany(ctx, docs)
		}, []write{plain("insert", 250, 250, -1)}},
		{"duplicate key", func(ctx context.Context, c *mongo.Collection) (any, error) {
			_, err := c.InsertOne(ctx, d("_id", 1))
			return mongo.IsDuplicateKeyError(err), err
		}, []write{{Operation: "insert", Batch: 1, Concern: "default", N: 0, NModified: -1, Errors: 1, Code: "11000"}}},
		{"bulk", func(ctx context.Context, c *mongo.Collection) (any, error) {
			res, err := c.BulkWrite(ctx, []mongo.WriteModel{
				mongo.NewInsertOneModel().SetDocument(d("_id", 2, "qty", 1)),
				mongo.NewInsertOneModel().SetDocument(d("_id", 3, "qty", 2)),
				mongo.NewUpdateOneModel().SetFilter(d("_id", 2)).SetUpdate(d("$inc", d("qty", 10))),
				mongo.NewReplaceOneModel().SetFilter(d("_id", 3)).SetReplacement(d("item", "ink")),
				mongo.NewUpdateManyModel().SetFilter(d("qty", d("$lt", 3))).SetUpdate(d("$set", d("low", true))),
				mongo.NewDeleteOneModel().SetFilter(d("_id", 3)),
			})
			return *res, err
		}, []write{
			plain("insert", 2, 2, -1), plain("update", 2, 2, 2),
			plain("update", 1, 75, 75), plain("delete", 1, 1, -1),
		}},
	}
}

func changeSteps() []step {
	yes := true
	with := func(wc *writeconcern.WriteConcern, id int) func(context.Context, *mongo.Collection) (any, error) {
		return func(ctx context.Context, c *mongo.Collection) (any, error) {
			c = c.Database().Collection(c.Name(), options.Collection().SetWriteConcern(wc))
			return c.UpdateOne(ctx, d("_id", id), d("$set", d("seen", id)))
		}
	}
	concern := func(label string) []write {
		return []write{{Operation: "update", Batch: 1, Concern: label, N: 1, NModified: 1}}
	}
	return []step{
		{"update", func(ctx context.Context, c *mongo.Collection) (any, error) {
			return c.UpdateMany(ctx, d("qty", 7), d("$set", d("lucky", true)))
		}, []write{plain("update", 1, 25, 25)}},
		{"update nothing", func(ctx context.Context, c *mongo.Collection) (any, error) {
			return c.UpdateOne(ctx, d("_id", -1), d("$set", d("x", 1)))
		}, []write{plain("update", 1, 0, 0)}},
		{"upsert", func(ctx context.Context, c *mongo.Collection) (any, error) {
			return c.UpdateOne(ctx, d("_id", 4), d("$set", d("x", 1)), options.UpdateOne().SetUpsert(true))
		}, []write{plain("update", 1, 1, 0)}},
		{"delete", func(ctx context.Context, c *mongo.Collection) (any, error) {
			return c.DeleteMany(ctx, d("qty", 9))
		}, []write{plain("delete", 1, 25, -1)}},
		{"find one and update", func(ctx context.Context, c *mongo.Collection) (any, error) {
			var doc bson.D
			err := c.FindOneAndUpdate(ctx, d("_id", 1), d("$inc", d("qty", 1)),
				options.FindOneAndUpdate().SetReturnDocument(options.After)).Decode(&doc)
			return doc, err
		}, []write{plain("findAndModify", 0, 1, -1)}},
		{"w: 1", with(writeconcern.W1(), 100), concern("w:1")},
		{"w: 1, j", with(&writeconcern.WriteConcern{W: 1, Journal: &yes}, 101), concern("w:1 j")},
		{"j", with(writeconcern.Journaled(), 102), concern("w:default j")},
		{"majority", with(writeconcern.Majority(), 103), concern("majority")},
		{"wtimeout", func(ctx context.Context, c *mongo.Collection) (any, error) {
			// The driver's options have no wtimeout any more; the server's do.
			return nil, c.Database().RunCommand(ctx, d("update", c.Name(),
				"updates", bson.A{d("q", d("_id", 104), "u", d("$set", d("seen", 104)))},
				"writeConcern", d("w", "majority", "j", true, "wtimeout", 1500))).Err()
		}, []write{{Operation: "update", Batch: 1, Concern: "majority j", WTimeout: 1500 * time.Millisecond, N: 1, NModified: 1}}},
	}
}

func lastSteps() []step {
	return []step{
		{"find in small batches", func(ctx context.Context, c *mongo.Collection) (any, error) {
			cursor, err := c.Find(ctx, d("_id", d("$lt", 400)), options.Find().SetBatchSize(50).SetSort(d("_id", 1)))
			if err != nil {
				return nil, err
			}
			var all []bson.D
			err = cursor.All(ctx, &all)
			return fmt.Sprint(len(all), all), err
		}, nil},
		{"aggregate", func(ctx context.Context, c *mongo.Collection) (any, error) {
			cursor, err := c.Aggregate(ctx, bson.A{d("$match", d("item", "pen")), d("$group", d("_id", nil, "n", d("$sum", 1)))})
			if err != nil {
				return nil, err
			}
			var all []bson.D
			err = cursor.All(ctx, &all)
			return all, err
		}, nil},
		{"count", func(ctx context.Context, c *mongo.Collection) (any, error) {
			return c.CountDocuments(ctx, d())
		}, nil},
		// Last: FerretDB reads a collection through for an update.
		{"15 MB", func(ctx context.Context, c *mongo.Collection) (any, error) {
			return c.InsertOne(ctx, d("_id", "big", "a", blob(1), "b", blob(2), "c", blob(3)))
		}, []write{plain("insert", 1, 1, -1)}},
		{"find 15 MB", func(ctx context.Context, c *mongo.Collection) (any, error) {
			raw, err := c.FindOne(ctx, d("_id", "big")).Raw()
			return fmt.Sprintf("%d bytes %x", len(raw), sha256.Sum256(raw)), err
		}, nil},
		{"no such command", func(ctx context.Context, c *mongo.Collection) (any, error) {
			return nil, c.Database().RunCommand(ctx, d("whatIsThis", 1)).Err()
		}, nil},
	}
}

// blob is 5 MB that no compressor and no mistake can shrink.
func blob(seed byte) []byte {
	b := make([]byte, 5_000_000)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}
