//go:build unix

package proxy_test

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/proxy"
)

// The write was done, and its acknowledgement was lost: what does the client say,
// and what does the server have?
func ExampleProxy_SetRules() {
	server, err := lab.StartMongo(lab.MongoOptions{})
	if err != nil {
		panic(err)
	}
	defer server.Stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p, err := proxy.Start(ctx, proxy.Config{
		Links: []proxy.LinkConfig{{Name: "db", Listen: "127.0.0.1:0", Upstream: server.Addr()}},
	})
	if err != nil {
		panic(err)
	}
	err = p.SetRules([]inject.Rule{{
		Name:   "lost-ack",
		When:   inject.When{Command: []string{"insert"}, Collection: []string{"orders"}},
		Effect: inject.EffectLoseReply,
		Limit:  inject.Limit{First: 1},
	}})
	if err != nil {
		panic(err)
	}

	uri := server.URI(p.Link("db").Addr().String()) + "&retryWrites=false"
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		panic(err)
	}
	defer client.Disconnect(ctx)
	orders := client.Database("shop").Collection("orders")
	_, err = orders.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
	fmt.Println("network error:", mongo.IsNetworkError(err))
	n, err := orders.CountDocuments(ctx, bson.D{})
	fmt.Println("stored:", n, err)
	fmt.Println("hits:", p.Rules()[0].Links[0].Hits)
	// Output:
	// network error: true
	// stored: 1 <nil>
	// hits: 1
}
