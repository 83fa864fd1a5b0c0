package mongod_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/wirewait/wirewait/internal/lab/mongod"
)

// heard collects the commands that reach a peer.
type heard struct {
	mu       sync.Mutex
	commands []mongod.Command
}

func (h *heard) delay(c mongod.Command) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.commands = append(h.commands, c)
	return 0
}

func (h *heard) named(name string) []mongod.Command {
	h.mu.Lock()
	defer h.mu.Unlock()
	var found []mongod.Command
	for _, c := range h.commands {
		if c.Name == name {
			found = append(found, c)
		}
	}
	return found
}

func startMongo(t *testing.T, o mongod.Options) *mongod.Server {
	t.Helper()
	m, err := mongod.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Stop)
	return m
}

func dial(t *testing.T, uri string) *mongo.Client {
	t.Helper()
	// A driver that is disconnected just as its monitor asks waits for the answer,
	// which comes after a heartbeat interval.
	client, err := mongo.Connect(options.Client().ApplyURI(uri).SetServerSelectionTimeout(30 * time.Second).
		SetHeartbeatInterval(500 * time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client
}

// eachKind runs a test against a standalone peer and a set's only member.
func eachKind(t *testing.T, test func(t *testing.T, c *mongo.Collection)) {
	for _, set := range []string{"", "rs0"} {
		t.Run("set="+set, func(t *testing.T) {
			m := startMongo(t, mongod.Options{SetName: set})
			test(t, dial(t, m.URI(m.Addr())).Database("shop").Collection("orders"))
		})
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestMongo_CRUD(t *testing.T) {
	eachKind(t, func(t *testing.T, c *mongo.Collection) {
		ctx := t.Context()
		if err := c.Database().Client().Ping(ctx, nil); err != nil {
			t.Fatal(err)
		}
		one := must[*mongo.InsertOneResult](t)(c.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}, {Key: "n", Value: 5}}))
		if one.InsertedID != int32(1) && one.InsertedID != 1 {
			t.Errorf("inserted id %v (%T)", one.InsertedID, one.InsertedID)
		}
		var docs []any
		for i := 2; i <= 10; i++ {
			docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i * 10}})
		}
		must[*mongo.InsertManyResult](t)(c.InsertMany(ctx, docs))

		up := must[*mongo.UpdateResult](t)(c.UpdateOne(ctx, bson.D{{Key: "_id", Value: 1}}, bson.D{
			{Key: "$inc", Value: bson.D{{Key: "n", Value: 2}}}, {Key: "$set", Value: bson.D{{Key: "s", Value: "x"}}}}))
		if up.MatchedCount != 1 || up.ModifiedCount != 1 {
			t.Errorf("update %+v", up)
		}
		up = must[*mongo.UpdateResult](t)(c.UpdateMany(ctx, bson.D{{Key: "n", Value: bson.D{{Key: "$gte", Value: 90}}}},
			bson.D{{Key: "$set", Value: bson.D{{Key: "big", Value: true}}}}))
		if up.MatchedCount != 2 || up.ModifiedCount != 2 {
			t.Errorf("update many %+v", up)
		}
		up = must[*mongo.UpdateResult](t)(c.UpdateOne(ctx, bson.D{{Key: "big", Value: true}, {Key: "_id", Value: 9}},
			bson.D{{Key: "$set", Value: bson.D{{Key: "big", Value: true}}}}))
		if up.MatchedCount != 1 || up.ModifiedCount != 0 {
			t.Errorf("no-op update %+v", up)
		}
		up = must[*mongo.UpdateResult](t)(c.UpdateOne(ctx, bson.D{{Key: "_id", Value: 77}},
			bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: 1}}}}, options.UpdateOne().SetUpsert(true)))
		if up.UpsertedCount != 1 || up.UpsertedID != int32(77) {
			t.Errorf("upsert %+v", up)
		}
		up = must[*mongo.UpdateResult](t)(c.ReplaceOne(ctx, bson.D{{Key: "_id", Value: 77}}, bson.D{{Key: "r", Value: 1}}))
		if up.ModifiedCount != 1 {
			t.Errorf("replace %+v", up)
		}
		var got bson.D
		if err := c.FindOne(ctx, bson.D{{Key: "_id", Value: 77}}).Decode(&got); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(bson.D{{Key: "_id", Value: int32(77)}, {Key: "r", Value: int32(1)}}) {
			t.Errorf("after replace %v", got)
		}
		err := c.FindOneAndUpdate(ctx, bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}},
			options.FindOneAndUpdate().SetReturnDocument(options.After)).Decode(&got)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(bson.D{{Key: "_id", Value: int32(1)}, {Key: "n", Value: int32(8)}, {Key: "s", Value: "x"}}) {
			t.Errorf("find and update %v, %v", got, err)
		}
		err = c.FindOneAndDelete(ctx, bson.D{}, options.FindOneAndDelete().SetSort(bson.D{{Key: "_id", Value: -1}})).Decode(&got)
		if err != nil || got[0].Value != int32(77) {
			t.Errorf("find and delete %v, %v, want the last by _id", got, err)
		}
		if err := c.FindOneAndDelete(ctx, bson.D{{Key: "_id", Value: 99}}).Err(); !errors.Is(err, mongo.ErrNoDocuments) {
			t.Errorf("find and delete of nothing: %v", err)
		}
		del := must[*mongo.DeleteResult](t)(c.DeleteMany(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: bson.A{2, 3, 1000}}}}}))
		if del.DeletedCount != 2 {
			t.Errorf("deleted %d, want 2", del.DeletedCount)
		}
		if n := must[int64](t)(c.CountDocuments(ctx, bson.D{{Key: "n", Value: bson.D{{Key: "$lt", Value: 60}}}})); n != 3 {
			t.Errorf("counted %d with n < 60, want 3 (1, 4, 5)", n)
		}
		if n := must[int64](t)(c.EstimatedDocumentCount(ctx)); n != 8 {
			t.Errorf("estimated %d, want 8", n)
		}
	})
}

func TestMongo_BulkAndGetMore(t *testing.T) {
	eachKind(t, func(t *testing.T, c *mongo.Collection) {
		ctx := t.Context()
		var models []mongo.WriteModel
		for i := range 1000 {
			models = append(models, mongo.NewInsertOneModel().SetDocument(bson.D{{Key: "_id", Value: i}}))
		}
		models = append(models,
			mongo.NewUpdateOneModel().SetFilter(bson.D{{Key: "_id", Value: 3}}).SetUpdate(bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}),
			mongo.NewDeleteOneModel().SetFilter(bson.D{{Key: "_id", Value: 4}}))
		res := must[*mongo.BulkWriteResult](t)(c.BulkWrite(ctx, models))
		if res.InsertedCount != 1000 || res.ModifiedCount != 1 || res.DeletedCount != 1 {
			t.Errorf("bulk %+v", res)
		}
		for _, batch := range []int32{0, 7, 998, 5000} {
			find := options.Find().SetSort(bson.D{{Key: "_id", Value: 1}})
			if batch > 0 {
				find.SetBatchSize(batch)
			}
			var all []bson.D
			cursor := must[*mongo.Cursor](t)(c.Find(ctx, bson.D{}, find))
			if err := cursor.All(ctx, &all); err != nil {
				t.Fatal(err)
			}
			if len(all) != 999 || all[998][0].Value != int32(999) {
				t.Errorf("batch size %d: %d documents, want 999", batch, len(all))
			}
		}
		cursor := must[*mongo.Cursor](t)(c.Find(ctx, bson.D{}, options.Find().SetBatchSize(2)))
		if !cursor.Next(ctx) || cursor.ID() == 0 {
			t.Fatal("no cursor stays open")
		}
		if err := cursor.Close(ctx); err != nil {
			t.Error(err)
		}
		err := c.Database().RunCommand(ctx, bson.D{{Key: "getMore", Value: int64(12345)}, {Key: "collection", Value: "orders"}}).Err()
		wantCode(t, err, 43)
	})
}

func wantCode(t *testing.T, err error, code int) {
	t.Helper()
	var se mongo.ServerError
	if !errors.As(err, &se) || !se.HasErrorCode(code) {
		t.Errorf("error %v, want code %d", err, code)
	}
}

func TestMongo_BigDocumentsComeInSeveralBatches(t *testing.T) {
	m := startMongo(t, mongod.Options{})
	c := dial(t, m.URI(m.Addr())).Database("shop").Collection("big")
	big := strings.Repeat("x", 9<<20)
	for i := range 3 {
		must[*mongo.InsertOneResult](t)(c.InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}, {Key: "big", Value: big}}))
	}
	var all []bson.Raw
	if err := must[*mongo.Cursor](t)(c.Find(t.Context(), bson.D{})).All(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != 3 || len(all[2]) < 9<<20 {
		t.Errorf("%d documents, want 3", len(all))
	}
}

func TestMongo_Errors(t *testing.T) {
	eachKind(t, func(t *testing.T, c *mongo.Collection) {
		ctx := t.Context()
		must[*mongo.InsertOneResult](t)(c.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}}))
		_, err := c.InsertOne(ctx, bson.D{{Key: "_id", Value: 1.0}})
		if !mongo.IsDuplicateKeyError(err) {
			t.Errorf("%v, want a duplicate key", err)
		}
		wantCode(t, err, 11000)

		docs := []any{bson.D{{Key: "_id", Value: 2}}, bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "_id", Value: 3}}}
		_, err = c.InsertMany(ctx, docs)
		var bulk mongo.BulkWriteException
		if !errors.As(err, &bulk) || len(bulk.WriteErrors) != 1 || bulk.WriteErrors[0].Index != 1 {
			t.Errorf("ordered: %v, want one error at 1", err)
		}
		if n := must[int64](t)(c.CountDocuments(ctx, bson.D{})); n != 2 {
			t.Errorf("ordered: %d documents, want 2", n)
		}
		_, err = c.InsertMany(ctx, docs, options.InsertMany().SetOrdered(false))
		if !errors.As(err, &bulk) || len(bulk.WriteErrors) != 2 {
			t.Errorf("unordered: %v, want two errors", err)
		}
		if n := must[int64](t)(c.CountDocuments(ctx, bson.D{})); n != 3 {
			t.Errorf("unordered: %d documents, want 3", n)
		}
		set := func(v bson.D) bson.D { return bson.D{{Key: "$set", Value: v}} }
		one := bson.D{{Key: "_id", Value: 1}}
		_, err = c.UpdateOne(ctx, one, set(bson.D{{Key: "_id", Value: 9}}))
		wantCode(t, err, 66)
		_, err = c.UpdateOne(ctx, one, bson.D{{Key: "$bit", Value: one}})
		wantCode(t, err, 9)
		_, err = c.UpdateOne(ctx, one, set(bson.D{{Key: "a.$[]", Value: 1}}))
		wantCode(t, err, 238)
		must[*mongo.UpdateResult](t)(c.UpdateOne(ctx, one, set(bson.D{{Key: "s", Value: "text"}})))
		_, err = c.UpdateOne(ctx, one, bson.D{{Key: "$inc", Value: bson.D{{Key: "s", Value: 1}}}})
		wantCode(t, err, 14)
		wantCode(t, c.FindOne(ctx, bson.D{{Key: "$where", Value: "1"}}).Err(), 238)
		wantCode(t, c.FindOne(ctx, bson.D{}, options.FindOne().SetProjection(bson.D{{Key: "s", Value: "$x"}})).Err(), 238)
		wantCode(t, c.Database().RunCommand(ctx, bson.D{{Key: "whatIsThis", Value: 1}}).Err(), 59)
		_, err = c.Aggregate(ctx, bson.A{bson.D{{Key: "$lookup", Value: bson.D{}}}})
		wantCode(t, err, 40324)
	})
}

func TestMongo_TransactionsAreRefused(t *testing.T) {
	m := startMongo(t, mongod.Options{SetName: "rs0"})
	client := dial(t, m.URI(m.Addr()))
	session := must[*mongo.Session](t)(client.StartSession())
	defer session.EndSession(context.Background())
	if err := session.StartTransaction(); err != nil {
		t.Fatal(err)
	}
	_, err := client.Database("shop").Collection("orders").InsertOne(mongo.NewSessionContext(t.Context(), session), bson.D{})
	wantCode(t, err, 238)
}

func TestMongo_UnacknowledgedWritesGetNoReply(t *testing.T) {
	var h heard
	m := startMongo(t, mongod.Options{ServerDelay: h.delay})
	client := dial(t, m.URI(m.Addr())+"&maxPoolSize=1")
	db := client.Database("shop")
	silent := db.Collection("orders", options.Collection().SetWriteConcern(writeconcern.Unacknowledged()))
	for i := range 5 {
		res := must[*mongo.InsertOneResult](t)(silent.InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}}))
		if res.Acknowledged {
			t.Error("acknowledged, want not")
		}
	}
	// One connection, answered in order: a reply to a w: 0 write would be taken
	// for this one's.
	if n := must[int64](t)(db.Collection("orders").CountDocuments(t.Context(), bson.D{})); n != 5 {
		t.Errorf("%d documents, want 5", n)
	}
	inserts := h.named("insert")
	if len(inserts) != 5 {
		t.Fatalf("%d inserts reached the peer, want 5", len(inserts))
	}
	for _, c := range inserts {
		if !c.NoReply || c.WriteConcern.W != "0" || c.Database != "shop" || c.Collection != "orders" {
			t.Errorf("heard %+v", c)
		}
	}
}

func TestMongo_Compressors(t *testing.T) {
	for _, name := range []string{"snappy", "zlib", "zstd"} {
		t.Run(name, func(t *testing.T) {
			var h heard
			m := startMongo(t, mongod.Options{Compressors: []string{"zstd", "snappy", "zlib"}, ServerDelay: h.delay, SetName: "rs0"})
			c := dial(t, m.URI(m.Addr())+"&compressors="+name).Database("shop").Collection("orders")
			text := strings.Repeat("compress me ", 10_000)
			must[*mongo.InsertOneResult](t)(c.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}, {Key: "s", Value: text}}))
			var got struct{ S string }
			if err := c.FindOne(t.Context(), bson.D{}).Decode(&got); err != nil || got.S != text {
				t.Errorf("read %d bytes, want %d; %v", len(got.S), len(text), err)
			}
			for _, command := range []string{"insert", "find"} {
				for _, c := range h.named(command) {
					if c.Compressor != name {
						t.Errorf("%s came with compressor %q", command, c.Compressor)
					}
				}
				if len(h.named(command)) == 0 {
					t.Errorf("no %s reached the peer", command)
				}
			}
		})
	}
	if _, err := mongod.Start(mongod.Options{Compressors: []string{"lz4"}}); err == nil {
		t.Error("an unknown compressor was accepted")
	}
}

func TestMongo_CompressorIsNegotiated(t *testing.T) {
	var h heard
	m := startMongo(t, mongod.Options{Compressors: []string{"zlib"}, ServerDelay: h.delay})
	c := dial(t, m.URI(m.Addr())+"&compressors=snappy").Database("shop").Collection("orders")
	must[*mongo.InsertOneResult](t)(c.InsertOne(t.Context(), bson.D{}))
	if got := h.named("insert"); len(got) != 1 || got[0].Compressor != "" {
		t.Errorf("heard %+v, want one that isn't compressed", got)
	}
}

func TestMongo_WriteConcerns(t *testing.T) {
	var h heard
	m := startMongo(t, mongod.Options{SetName: "rs0", ServerDelay: h.delay})
	db := dial(t, m.URI(m.Addr())).Database("shop")
	yes := true
	var labels []string
	for _, wc := range []*writeconcern.WriteConcern{nil, writeconcern.W1(), {W: 1, Journal: &yes}, writeconcern.Majority()} {
		c := db.Collection("orders", options.Collection().SetWriteConcern(wc))
		must[*mongo.InsertOneResult](t)(c.InsertOne(t.Context(), bson.D{}))
	}
	for _, c := range h.named("insert") {
		labels = append(labels, c.WriteConcern.Label())
	}
	if want := []string{"default", "w:1", "w:1 j", "majority"}; !slices.Equal(labels, want) {
		t.Errorf("heard %q, want %q", labels, want)
	}
	two := db.Collection("orders", options.Collection().SetWriteConcern(&writeconcern.WriteConcern{W: 2}))
	_, err := two.InsertOne(t.Context(), bson.D{{Key: "_id", Value: "kept"}})
	wantCode(t, err, 100)
	if n := must[int64](t)(db.Collection("orders").CountDocuments(t.Context(), bson.D{{Key: "_id", Value: "kept"}})); n != 1 {
		t.Error("a write whose concern can't be met isn't there")
	}
}

func TestMongo_ServerDelayIsTaken(t *testing.T) {
	const think = 30 * time.Millisecond
	m := startMongo(t, mongod.Options{ServerDelay: func(c mongod.Command) time.Duration {
		if c.Name == "insert" {
			return think
		}
		return 0
	}})
	c := dial(t, m.URI(m.Addr())).Database("shop").Collection("orders")
	start := time.Now()
	must[*mongo.InsertOneResult](t)(c.InsertOne(t.Context(), bson.D{}))
	if took := time.Since(start); took < think {
		t.Errorf("insert took %v, want at least %v", took, think)
	}
}
