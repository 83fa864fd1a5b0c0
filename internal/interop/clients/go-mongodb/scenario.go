package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

func inserts(c *mongo.Collection) {
	step("insert one", func(ctx context.Context) (any, error) {
		return c.InsertOne(ctx, d("_id", 1, "item", "pencil", "qty", 5))
	})
	step("insert many", func(ctx context.Context) (any, error) {
		docs := make([]any, 250)
		for i := range docs {
			docs[i] = d("_id", 100+i, "item", "pen", "qty", i%10)
		}
		res, err := c.InsertMany(ctx, docs)
		return len(res.InsertedIDs), err
	})
	step("duplicate key", func(ctx context.Context) (any, error) { return c.InsertOne(ctx, d("_id", 1)) })
	step("bulk", func(ctx context.Context) (any, error) {
		return c.BulkWrite(ctx, []mongo.WriteModel{
			mongo.NewInsertOneModel().SetDocument(d("_id", 2, "qty", 1)),
			mongo.NewInsertOneModel().SetDocument(d("_id", 3, "qty", 2)),
			mongo.NewUpdateOneModel().SetFilter(d("_id", 2)).SetUpdate(d("$inc", d("qty", 10))),
			mongo.NewReplaceOneModel().SetFilter(d("_id", 3)).SetReplacement(d("item", "ink")),
			mongo.NewUpdateManyModel().SetFilter(d("qty", d("$lt", 3))).SetUpdate(d("$set", d("low", true))),
			mongo.NewDeleteOneModel().SetFilter(d("_id", 3)),
		})
	})
	step("bulk with errors", func(ctx context.Context) (any, error) {
		var all []mongo.WriteModel
		for _, id := range []int{1, 5, 2} {
			all = append(all, mongo.NewInsertOneModel().SetDocument(d("_id", id)))
		}
		return c.BulkWrite(ctx, all, options.BulkWrite().SetOrdered(false))
	})
}

func changes(c *mongo.Collection) {
	set := func(k string, v any) bson.D { return d("$set", d(k, v)) }
	step("update", func(ctx context.Context) (any, error) { return c.UpdateMany(ctx, d("qty", 7), set("lucky", true)) })
	step("update nothing", func(ctx context.Context) (any, error) { return c.UpdateOne(ctx, d("_id", -1), set("x", 1)) })
	step("upsert", func(ctx context.Context) (any, error) {
		return c.UpdateOne(ctx, d("_id", 4), set("x", 1), options.UpdateOne().SetUpsert(true))
	})
	step("delete", func(ctx context.Context) (any, error) { return c.DeleteMany(ctx, d("qty", 9)) })
	step("find one and update", func(ctx context.Context) (any, error) {
		return c.FindOneAndUpdate(ctx, d("_id", 1), d("$inc", d("qty", 1)),
			options.FindOneAndUpdate().SetReturnDocument(options.After)).Raw()
	})
	yes := true
	for i, wc := range []*writeconcern.WriteConcern{{W: 1}, {W: 1, Journal: &yes}, {Journal: &yes}, {W: "majority"}} {
		own := c.Clone(options.Collection().SetWriteConcern(wc))
		step(fmt.Sprint("concern ", i), func(ctx context.Context) (any, error) {
			return own.UpdateOne(ctx, d("_id", 100+i), set("seen", i))
		})
	}
	// The driver's options have no wtimeout any more; the server's do.
	for i, wc := range []bson.D{d("w", "majority", "wtimeout", 1500), d("w", 2, "wtimeout", 100)} {
		step(fmt.Sprint("concern ", 4+i), func(ctx context.Context) (any, error) {
			raw, err := c.Database().RunCommand(ctx, d("update", c.Name(),
				"updates", bson.A{d("q", d("_id", 104+i), "u", set("seen", 4+i))}, "writeConcern", wc)).Raw()
			return raw.Lookup("nModified").AsInt64(), err
		})
	}
}

func reads(c *mongo.Collection) {
	step("find in batches", func(ctx context.Context) (any, error) {
		return all(c.Find(ctx, d("_id", d("$lt", 400)), options.Find().SetBatchSize(50).SetSort(d("_id", 1))))
	})
	step("aggregate", func(ctx context.Context) (any, error) {
		return all(c.Aggregate(ctx, bson.A{d("$match", d("item", "pen")), d("$group", d("_id", nil, "n", d("$sum", 1)))}))
	})
	step("count", func(ctx context.Context) (any, error) { return c.CountDocuments(ctx, d()) })
	step("estimated count", func(ctx context.Context) (any, error) { return c.EstimatedDocumentCount(ctx) })
	step("distinct", func(ctx context.Context) (any, error) {
		res := c.Distinct(ctx, "qty", d())
		if err := res.Err(); err != nil {
			return nil, err
		}
		var values bson.A
		err := res.Decode(&values)
		return values, err
	})
	step("no such command", func(ctx context.Context) (any, error) {
		return nil, c.Database().RunCommand(ctx, d("whatIsThis", 1)).Err()
	})
}

func all(cursor *mongo.Cursor, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	var docs []bson.D
	err = cursor.All(context.Background(), &docs)
	return docs, err
}

// noise is 5 MB that no compressor and no mistake can shrink.
func noise(seed byte) []byte {
	b := make([]byte, 5_000_000)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

func big(c *mongo.Collection) {
	step("15 MB", func(ctx context.Context) (any, error) {
		return c.InsertOne(ctx, d("_id", "big", "a", noise(1), "b", noise(2), "c", noise(3)))
	})
	step("15 MB back", func(ctx context.Context) (any, error) {
		raw, err := c.FindOne(ctx, d("_id", "big")).Raw()
		if err != nil {
			return nil, err
		}
		_, b, _ := raw.Lookup("b").BinaryOK()
		return []any{bytes.Equal(b, noise(2)), fmt.Sprintf("%x", sha256.Sum256(raw))}, nil
	})
}

func schema(c *mongo.Collection) {
	step("create index", func(ctx context.Context) (any, error) {
		return c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: d("item", 1)})
	})
	step("indexes", func(ctx context.Context) (any, error) { return all(c.Indexes().List(ctx)) })
	step("drop", func(ctx context.Context) (any, error) { return nil, c.Drop(ctx) })
	step("count after drop", func(ctx context.Context) (any, error) { return c.CountDocuments(ctx, d()) })
}
