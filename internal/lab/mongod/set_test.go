package mongod_test

import (
	"context"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/wirewait/wirewait/internal/lab/mongod"
)

// startSet starts a set whose elections don't take as long as real ones.
func startSet(t *testing.T, o mongod.SetOptions) *mongod.Set {
	t.Helper()
	if o.HeartbeatInterval == 0 {
		o.HeartbeatInterval = 100 * time.Millisecond
	}
	if o.ElectionTimeout == 0 {
		o.ElectionTimeout = 2 * time.Second
	}
	o.Record = true
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	set, err := mongod.StartSet(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	return set
}

func orders(c *mongo.Client, wc *writeconcern.WriteConcern) *mongo.Collection {
	return c.Database("shop").Collection("orders", options.Collection().SetWriteConcern(wc))
}

func atLeast(n int) *writeconcern.WriteConcern { return &writeconcern.WriteConcern{W: n} }

// eventually fails the test if something isn't so within a minute.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !so() {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func TestSet_WritesReachAllMembers(t *testing.T) {
	set := startSet(t, mongod.SetOptions{})
	client := dial(t, set.URI())
	for i, wc := range []*writeconcern.WriteConcern{writeconcern.W1(), writeconcern.Majority(), atLeast(2), atLeast(3)} {
		must[*mongo.InsertOneResult](t)(orders(client, wc).InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}}))
	}
	for _, m := range set.Members() {
		n := must[int64](t)(orders(dial(t, m.URI()), nil).CountDocuments(t.Context(), bson.D{}))
		if n != 4 {
			t.Errorf("member %s has %d documents, want 4: the last write was acknowledged by all", m.Name(), n)
		}
	}
}
