package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	mongooptions "go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/wirewait/wirewait/internal/lab/mongod"
	"github.com/wirewait/wirewait/trace"
)

func (w *mongoWAN) key() string { return "write_concern" }

// concerns are what the demo writes with, from the weakest, each with its name in
// the table.
func (w *mongoWAN) concerns() (names []string, concerns []*writeconcern.WriteConcern) {
	journalled := true
	return []string{"1", "1 j", "majority", "3"}, []*writeconcern.WriteConcern{
		writeconcern.W1(), {W: 1, Journal: &journalled}, writeconcern.Majority(), {W: 3},
	}
}

func (w *mongoWAN) levels() []string {
	names, _ := w.concerns()
	return names
}

func (w *mongoWAN) setup(*cli.Context) error { return nil }

func (w *mongoWAN) shown(f *trace.Finished) bool {
	return f.Concern() == "majority" && f.Operation == "insert"
}

// work starts links and set, runs the client, and ends the set.
func (w *mongoWAN) work(ctx context.Context, d *demo) (err error) {
	set, err := w.start(ctx, mongod.SetOptions{}, func() *trace.Tracer { return d.tracer }, d.open(ctx))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopSet(set)) }()
	if err := everybodyFollows(ctx, set); err != nil {
		return err
	}
	names, concerns := w.concerns()
	fmt.Fprintf(d.progress, "server  a model of MongoDB 8.0, in this process\nclient  the official Go driver: %d inserts with each of", d.writes)
	for _, n := range names {
		fmt.Fprintf(d.progress, " w:%s", n)
	}
	fmt.Fprintln(d.progress)
	client, err := mongo.Connect(mongooptions.Client().ApplyURI(w.uri(d.proxy)).SetAppName("wirewait demo"))
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), demoGrace)
		defer cancel()
		err = errors.Join(err, client.Disconnect(end))
	}()
	for i, concern := range concerns {
		fmt.Fprintf(d.progress, "        w:%s\n", names[i])
		orders := client.Database("shop").Collection("orders", mongooptions.Collection().SetWriteConcern(concern))
		for n := range d.writes {
			if _, err := orders.InsertOne(ctx, bson.D{{Key: "_id", Value: i*d.writes + n}, {Key: "item", Value: "book"}}); err != nil {
				return fmt.Errorf("insert with w:%s: %w", names[i], err)
			}
		}
	}
	fmt.Fprintln(d.progress)
	return nil
}

// everybodyFollows returns once all members have a write, which goes past the
// proxy: the first that waited for others would else wait for them to find whom to
// follow, a few round trips.
func everybodyFollows(ctx context.Context, set *mongod.Set) (err error) {
	client, err := mongo.Connect(mongooptions.Client().ApplyURI(set.Primary().URI()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Disconnect(context.WithoutCancel(ctx))) }()
	all := &writeconcern.WriteConcern{W: len(set.Members())}
	_, err = client.Database("shop").Collection("openings", mongooptions.Collection().SetWriteConcern(all)).InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
	return err
}
