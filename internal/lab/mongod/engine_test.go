package mongod_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/wirewait/wirewait/internal/lab/mongod"
)

// status reads a number of serverStatus; 0: it isn't there.
func status(t *testing.T, c *mongo.Client, path ...string) float64 {
	t.Helper()
	raw, err := c.Database("admin").RunCommand(t.Context(), bson.D{{Key: "serverStatus", Value: 1}}).Raw()
	if err != nil {
		t.Fatal(err)
	}
	v := raw.Lookup(path...)
	if b, ok := v.BooleanOK(); ok && b {
		return 1
	}
	f, _ := v.AsFloat64OK()
	return f
}

// holding are finds that hold a ticket for as long as the script sleeps.
func holding(t *testing.T, c *mongo.Collection, clients, ms int) (took []time.Duration) {
	t.Helper()
	took = make([]time.Duration, clients)
	var wait sync.WaitGroup
	for i := range clients {
		wait.Go(func() {
			begun := time.Now()
			n, err := c.CountDocuments(context.Background(), bson.D{}) // one document, and a connection
			if err == nil && n == 1 {
				begun = time.Now()
				err = c.FindOne(context.Background(), bson.D{{Key: "$where", Value: fmt.Sprintf("sleep(%d)||true", ms)}}).Err()
			}
			if err != nil {
				t.Error(err)
			}
			took[i] = time.Since(begun)
		})
	}
	wait.Wait()
	return took
}

// TestEngine_TicketsAreHeldAndQueuedFor: eight reads of 100 ms on two tickets are
// four rounds; a ninth gives up in the queue when its time is over.
func TestEngine_TicketsAreHeldAndQueuedFor(t *testing.T) {
	m := startMongo(t, mongod.Options{Engine: mongod.Engine{Tickets: 2}})
	client := dial(t, m.URI(m.Addr()))
	c := client.Database("shop").Collection("orders")
	must[*mongo.InsertOneResult](t)(c.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}}))
	pool := func(field ...string) float64 {
		return status(t, client, append([]string{"queues", "execution", "read"}, field...)...)
	}
	seen, canceled := false, false
	eventually(t, "four at least queue while both tickets are out, and one gives up", func() bool {
		begun, done := time.Now(), make(chan []time.Duration, 1)
		go func() { done <- holding(t, c, 8, 100) }()
		for {
			seen = seen || pool("normalPriority", "queueLength") >= 4 && pool("available") == 0 && pool("out") == 2
			wantCode(t, c.Database().RunCommand(t.Context(), bson.D{
				{Key: "find", Value: "orders"}, {Key: "filter", Value: bson.D{{Key: "$where", Value: "sleep(60000) || true"}}}, {Key: "maxTimeMS", Value: 5},
			}).Err(), 50)
			canceled = canceled || pool("normalPriority", "canceled") > 0
			select {
			case took := <-done:
				if all := time.Since(begun); all < 400*time.Millisecond || slices.Min(took) < 100*time.Millisecond {
					t.Errorf("eight of 100 ms on two tickets took %v: %v", all, took)
				}
				return seen && canceled
			default:
			}
		}
	})
	if n := pool("normalPriority", "addedToQueue"); n < 7 || n != pool("normalPriority", "removedFromQueue") || pool("normalPriority", "totalTimeQueuedMicros") < 600_000 {
		t.Errorf("%v queued", n)
	}
	if pool("totalTickets") != 2 || pool("available") != 2 {
		t.Errorf("%v of %v tickets are there at the end", pool("available"), pool("totalTickets"))
	}
}

// TestEngine_MaxTimeCutsASleep: also while the operation runs.
func TestEngine_MaxTimeCutsASleep(t *testing.T) {
	m := startMongo(t, mongod.Options{})
	c := dial(t, m.URI(m.Addr())).Database("shop").Collection("orders")
	must[*mongo.InsertOneResult](t)(c.InsertOne(t.Context(), bson.D{}))
	for _, where := range []any{"sleep(60000) || true", bson.JavaScript("sleep(60000)||true;"), "return sleep(60000)||true"} {
		err := c.Database().RunCommand(t.Context(), bson.D{{Key: "find", Value: "orders"}, {Key: "filter", Value: bson.D{{Key: "$where", Value: where}}}, {Key: "maxTimeMS", Value: 10}}).Err()
		wantCode(t, err, 50)
	}
	err := c.Database().RunCommand(t.Context(), bson.D{{Key: "find", Value: "orders"}, {Key: "filter", Value: bson.D{{Key: "$where", Value: "while(1);"}}}}).Err()
	wantCode(t, err, 238)
}

// TestEngine_WritesOnOneDocumentConflict: those on different documents don't.
func TestEngine_WritesOnOneDocumentConflict(t *testing.T) {
	const work = 20 * time.Millisecond
	m := startMongo(t, mongod.Options{Engine: mongod.Engine{WriteWork: work}})
	client := dial(t, m.URI(m.Addr()))
	c := client.Database("shop").Collection("orders")
	update := func(same bool) time.Duration {
		begun := time.Now()
		var wait sync.WaitGroup
		for i := range 6 {
			wait.Go(func() {
				id := i
				if same {
					id = 0
				}
				if _, err := c.UpdateByID(t.Context(), id, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		return time.Since(begun)
	}
	for i := range 6 {
		must[*mongo.InsertOneResult](t)(c.InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}}))
	}
	update(false)
	if n := status(t, client, "metrics", "operation", "writeConflicts"); n != 0 {
		t.Errorf("%v conflicts on different documents", n)
	}
	if d := update(true); d < 6*work {
		t.Errorf("six on one document took %v, one after the other at least %v", d, 6*work)
	}
	if n := status(t, client, "metrics", "operation", "writeConflicts"); n < 1 {
		t.Error("no conflict on one document")
	}
	var doc struct{ N int }
	if err := c.FindOne(t.Context(), bson.D{{Key: "_id", Value: 0}}).Decode(&doc); err != nil || doc.N != 7 {
		t.Errorf("n is %d (%v), want 7: none was lost", doc.N, err)
	}
}

// TestEngine_StatusByVersion: each number is where its version has it, and only
// there.
func TestEngine_StatusByVersion(t *testing.T) {
	for _, c := range []struct {
		of, version        string
		tickets, elsewhere []string
		queue              bool
	}{
		{"6.0", "6.0.0", []string{"wiredTiger", "concurrentTransactions", "write"}, []string{"queues"}, false},
		{"7.0", "7.0.0", []string{"wiredTiger", "concurrentTransactions", "write"}, []string{"queues"}, true},
		{"", "8.0.0", []string{"queues", "execution", "write"}, []string{"wiredTiger", "concurrentTransactions"}, true},
	} {
		m := startMongo(t, mongod.Options{Engine: mongod.Engine{StatusOf: c.of, Tickets: 7}})
		raw, err := dial(t, m.URI(m.Addr())).Database("admin").RunCommand(t.Context(), bson.D{{Key: "serverStatus", Value: 1}}).Raw()
		if err != nil {
			t.Fatal(err)
		}
		pool := raw.Lookup(c.tickets...).Document()
		total, _ := pool.Lookup("totalTickets").AsInt64OK()
		_, noQueue := pool.LookupErr("normalPriority")
		_, nowhere := raw.LookupErr(c.elsewhere...)
		if raw.Lookup("version").StringValue() != c.version || total != 7 || (noQueue == nil) != c.queue || nowhere == nil {
			t.Errorf("%q: %s", c.of, raw)
		}
	}
}

// TestEngine_Checkpoints: they come, take their time, and make syncs slower
// meanwhile.
func TestEngine_Checkpoints(t *testing.T) {
	set := startSet(t, mongod.SetOptions{Members: make([]mongod.MemberOptions, 1), Engine: mongod.Engine{
		CheckpointEvery: 100 * time.Millisecond, CheckpointLasts: 100 * time.Millisecond, CheckpointSync: 30 * time.Millisecond,
	}})
	client := dial(t, set.URI())
	yes := true
	c := orders(client, &writeconcern.WriteConcern{W: 1, Journal: &yes})
	slow, running := 0, 0
	eventually(t, "three checkpoints, one seen while it ran, and a sync that took longer for it", func() bool {
		begun := time.Now()
		if _, err := c.InsertOne(t.Context(), bson.D{}); err != nil {
			t.Fatal(err)
		}
		if time.Since(begun) >= 30*time.Millisecond {
			slow++
		}
		if status(t, client, "wiredTiger", "checkpoint", "progress state") != 0 {
			running++
		}
		return status(t, client, "wiredTiger", "checkpoint", "total succeed number of checkpoints") >= 3 && running > 0 && slow > 0
	})
	if ms := status(t, client, "wiredTiger", "checkpoint", "most recent time (msecs)"); ms < 100 {
		t.Errorf("the last took %v ms, want 100 at least", ms)
	}
}

// TestEngine_FlowControl: while no majority follows, writes are slowed down; once
// one does, no more.
func TestEngine_FlowControl(t *testing.T) {
	set := startSet(t, mongod.SetOptions{Engine: mongod.Engine{FlowControlTarget: 400 * time.Millisecond}})
	primary := set.Primary()
	client := dial(t, primary.URI())
	c := orders(client, atLeast(1))
	write := func() {
		for range 20 {
			if _, err := c.InsertOne(t.Context(), bson.D{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	flow := func(field string) float64 { return status(t, client, "flowControl", field) }
	write()
	eventually(t, "nothing lags at the start", func() bool { return flow("isLagged") == 0 && flow("targetRateLimit") == 1e9 })
	for _, m := range set.Members() {
		if m != primary {
			m.SetWriteDelay(time.Second)
		}
	}
	eventually(t, "the set lags, and writes wait for it", func() bool {
		write()
		return flow("isLagged") == 1 && flow("targetRateLimit") < 1e9 && flow("timeAcquiringMicros") > 0
	})
	err := client.Database("shop").RunCommand(t.Context(), bson.D{{Key: "ping", Value: 1}}).Err()
	if err != nil {
		t.Errorf("a ping waits with writes: %v", err)
	}
	for _, m := range set.Members() {
		m.SetWriteDelay(0)
	}
	eventually(t, "it no longer lags", func() bool { return flow("isLagged") == 0 })
	if n := flow("isLaggedCount"); n < 1 {
		t.Errorf("it was lagged %v times", n)
	}
}

// TestEngine_SlowSecondary: one that takes so many entries a second and no more.
func TestEngine_SlowSecondary(t *testing.T) {
	set := startSet(t, mongod.SetOptions{Members: make([]mongod.MemberOptions, 2)})
	client := dial(t, set.Primary().URI())
	c := orders(client, atLeast(2))
	must[*mongo.InsertOneResult](t)(c.InsertOne(t.Context(), bson.D{})) // it follows
	set.Member("b").SetWriteRate(200)
	var docs []any
	for range 100 {
		docs = append(docs, bson.D{})
	}
	begun := time.Now()
	must[*mongo.InsertManyResult](t)(c.InsertMany(t.Context(), docs))
	// The last batch of the hundred needn't be waited for after it.
	if d := time.Since(begun); d < 400*time.Millisecond {
		t.Errorf("100 entries at 200 a second took %v", d)
	}
	set.Member("b").SetWriteRate(0)
	if n := must[int64](t)(dial(t, set.Member("b").URI()).Database("shop").Collection("orders").EstimatedDocumentCount(t.Context())); n != 101 {
		t.Errorf("it has %d documents, want 101", n)
	}
}
