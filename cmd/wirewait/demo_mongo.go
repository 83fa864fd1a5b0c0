package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	mongooptions "go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/wirewait/wirewait/internal/lab/mongod"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// How much the MongoDB client does: reads in all, writes for each concern.
const (
	mongoReads  = 10
	mongoWrites = 10
)

// mongoConcerns in the order in which the client uses them.
func mongoConcerns() []*writeconcern.WriteConcern {
	journalled := true
	return []*writeconcern.WriteConcern{
		writeconcern.Unacknowledged(),
		writeconcern.W1(),
		{W: 1, Journal: &journalled},
		writeconcern.Majority(),
	}
}

// mongoBehind is by how much the secondaries are behind, as ones that are far away
// would be: majority waits for it, and for their journals.
const mongoBehind = 12 * time.Millisecond

func startDemoMongo(ctx context.Context) (*demoServer, error) {
	set, err := mongod.StartSet(ctx, mongod.SetOptions{Name: "demo", NoChaining: true})
	if err != nil {
		return nil, err
	}
	primary := set.Primary()
	for _, m := range set.Members() {
		m.SetWriteDelay(mongoBehind)
	}
	return &demoServer{
		protocol: wire.MongoDB,
		addr:     primary.Addr(),
		about: fmt.Sprintf("a MongoDB replica set of three in this process, its primary on %s, its secondaries %v behind",
			primary.Addr(), mongoBehind),
		workload: fmt.Sprintf("the official Go driver: %d inserts each with w:0, w:1, w:1 j:true, majority, and %d reads", mongoWrites, mongoReads),
		work: func(ctx context.Context, addr string) error {
			return workMongo(ctx, "mongodb://"+addr+"/?directConnection=true")
		},
		show: func(f *trace.Finished) bool { return f.Concern() == "majority" },
		stop: set.Close,
	}, nil
}

func workMongo(ctx context.Context, uri string) (err error) {
	client, err := mongo.Connect(mongooptions.Client().ApplyURI(uri).SetAppName("wirewait demo"))
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), demoGrace)
		defer cancel()
		err = errors.Join(err, client.Disconnect(end))
	}()
	db := client.Database("shop")
	for n, concern := range mongoConcerns() {
		orders := db.Collection("orders", mongooptions.Collection().SetWriteConcern(concern))
		for i := range mongoWrites {
			order := bson.D{{Key: "_id", Value: n*mongoWrites + i}, {Key: "item", Value: "book"}}
			if _, err := orders.InsertOne(ctx, order); err != nil {
				return fmt.Errorf("insert: %w", err)
			}
		}
	}
	for i := range mongoReads {
		if err := db.Collection("orders").FindOne(ctx, bson.D{{Key: "_id", Value: i}}).Err(); err != nil {
			return fmt.Errorf("find: %w", err)
		}
	}
	return nil
}
