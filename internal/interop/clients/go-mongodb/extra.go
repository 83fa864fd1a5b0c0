package main

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// extra are the parts of the scenario that only some servers can play.
var extra = map[string]func(*mongo.Collection){
	"w0": unacknowledged, "timeout": slow, "transaction": transactions, "tail": tail, "watch": watch,
	"stepdown": stepDown,
}

func unacknowledged(c *mongo.Collection) {
	silent := c.Database().Collection("silent", options.Collection().SetWriteConcern(writeconcern.Unacknowledged()))
	for i := range 20 {
		step("w: 0", func(ctx context.Context) (any, error) {
			res, err := silent.InsertOne(ctx, d("_id", i))
			return res.Acknowledged, err
		})
	}
	step("count of w: 0", func(ctx context.Context) (any, error) {
		return c.Database().Collection("silent").CountDocuments(ctx, d())
	})
}

func slow(c *mongo.Collection) {
	step("slow", func(ctx context.Context) (any, error) {
		ctx, cancel := context.WithTimeout(ctx, 600*time.Millisecond)
		defer cancel()
		return c.Database().Collection("slow").FindOne(ctx, d()).Raw()
	})
	step("after slow", func(ctx context.Context) (any, error) { return c.CountDocuments(ctx, d("_id", 1)) })
}

func transactions(c *mongo.Collection) {
	session, err := c.Database().Client().StartSession()
	if err != nil {
		step("session", func(context.Context) (any, error) { return nil, err })
		return
	}
	defer session.EndSession(context.Background())
	yes := true
	step("commit", func(ctx context.Context) (any, error) {
		ctx = mongo.NewSessionContext(ctx, session)
		err := session.StartTransaction(options.Transaction().SetWriteConcern(&writeconcern.WriteConcern{W: "majority", Journal: &yes}))
		if err == nil {
			_, err = c.InsertOne(ctx, d("_id", "t1"))
		}
		if err == nil {
			_, err = c.UpdateOne(ctx, d("_id", "t1"), d("$set", d("x", 1)))
		}
		if err == nil {
			err = session.CommitTransaction(ctx)
		}
		return nil, err
	})
	step("abort", func(ctx context.Context) (any, error) {
		ctx = mongo.NewSessionContext(ctx, session)
		err := session.StartTransaction()
		if err == nil {
			_, err = c.InsertOne(ctx, d("_id", "t2"))
		}
		if err == nil {
			err = session.AbortTransaction(ctx)
		}
		return nil, err
	})
	step("after transactions", func(ctx context.Context) (any, error) {
		return all(c.Find(ctx, d("_id", d("$in", bson.A{"t1", "t2"}))))
	})
}

func tail(c *mongo.Collection) {
	db := c.Database()
	capped := db.Collection("capped")
	step("create capped", func(ctx context.Context) (any, error) {
		return nil, db.CreateCollection(ctx, "capped", options.CreateCollection().SetCapped(true).SetSizeInBytes(100_000))
	})
	step("insert capped", func(ctx context.Context) (any, error) {
		return capped.InsertMany(ctx, bson.A{d("_id", 0), d("_id", 1), d("_id", 2)})
	})
	step("tail", func(ctx context.Context) (any, error) {
		cursor, err := capped.Find(ctx, d(), options.Find().SetBatchSize(2).SetCursorType(options.TailableAwait).SetMaxAwaitTime(time.Second))
		if err != nil {
			return nil, err
		}
		defer cursor.Close(ctx)
		var got bson.A
		for i := range int32(3) {
			if _, err := capped.InsertOne(ctx, d("_id", 3+i)); err != nil {
				return nil, err
			}
			for len(got) <= int(3+i) && cursor.Next(ctx) {
				got = append(got, cursor.Current.Lookup("_id").Int32())
			}
		}
		return got, cursor.Err()
	})
}

func watch(c *mongo.Collection) {
	step("watch", func(ctx context.Context) (any, error) {
		stream, err := c.Watch(ctx, mongo.Pipeline{}, options.ChangeStream().SetMaxAwaitTime(50*time.Millisecond))
		if err != nil {
			return nil, err
		}
		defer stream.Close(ctx)
		if _, err := c.InsertOne(ctx, d("_id", "w1")); err != nil {
			return nil, err
		}
		if _, err := c.DeleteOne(ctx, d("_id", "w1")); err != nil {
			return nil, err
		}
		var got bson.A
		for len(got) < 4 && stream.Next(ctx) {
			got = append(got, stream.Current.Lookup("operationType"), stream.Current.Lookup("documentKey"))
		}
		return got, stream.Err()
	})
}

// stepDown has the primary give up in the midst of writes, none of which may be lost
// or done twice.
func stepDown(c *mongo.Collection) {
	moving := c.Database().Collection("moving")
	write := func(from, to int) {
		step("writes", func(ctx context.Context) (any, error) {
			for i := from; i < to; i++ {
				if _, err := moving.InsertOne(ctx, d("_id", i)); err != nil {
					return i, err
				}
				if _, err := moving.UpdateOne(ctx, d("_id", i), d("$inc", d("n", 1))); err != nil {
					return i, err
				}
			}
			return to, nil
		})
	}
	write(0, 20)
	step("step down", func(ctx context.Context) (any, error) {
		return nil, c.Database().Client().Database("admin").RunCommand(ctx, d("replSetStepDown", 60)).Err()
	})
	write(20, 40)
	step("written once", func(ctx context.Context) (any, error) { return moving.CountDocuments(ctx, d("n", 1)) })
}
