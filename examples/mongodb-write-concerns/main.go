// Command mongodb-write-concerns inserts one document per write concern and
// says how long each took.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "mongodb-write-concerns:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	// directConnection: else the driver finds the set's real members and leaves
	// the proxy.
	uri := "mongodb://127.0.0.1:27117/?directConnection=true"
	if len(os.Args) > 1 {
		uri = os.Args[1]
	}
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		return err
	}
	defer client.Disconnect(ctx)
	if err := client.Ping(ctx, nil); err != nil {
		return fmt.Errorf("connect through wirewait: %w", err)
	}
	journaled := true
	for _, concern := range []*writeconcern.WriteConcern{
		{W: 0}, {W: 1}, {W: 1, Journal: &journaled}, {W: "majority"},
	} {
		orders := client.Database("shop").Collection("orders", options.Collection().SetWriteConcern(concern))
		begin := time.Now()
		_, err := orders.InsertOne(ctx, bson.D{{Key: "total", Value: 42}})
		took := time.Since(begin).Round(100 * time.Microsecond)
		if err != nil && concern.Acknowledged() {
			return err
		}
		fmt.Printf("w: %-8v j: %-5v %v\n", concern.W, concern.Journal != nil, took)
	}
	return nil
}
