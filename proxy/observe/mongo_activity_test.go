package observe_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/wirewait/wirewait/internal/lab/mongod"
	"github.com/wirewait/wirewait/proxy/observe"
	"github.com/wirewait/wirewait/trace"
)

func connectMongo(t *testing.T, uri string) *mongo.Client {
	t.Helper()
	c, err := mongo.Connect(options.Client().ApplyURI(uri).SetHeartbeatInterval(500 * time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Disconnect(context.Background()) })
	return c
}

// TestSampler_Mongo: what a primary counts shows in the samples, wherever its
// version has it.
func TestSampler_Mongo(t *testing.T) {
	for _, version := range []string{"6.0", "7.0", "8.0"} {
		t.Run(version, func(t *testing.T) {
			set := startSet(t, mongod.SetOptions{Engine: mongod.Engine{
				Tickets: 2, CheckpointEvery: 50 * time.Millisecond, CheckpointLasts: 20 * time.Millisecond, StatusOf: version,
			}})
			s := &observe.Sampler{Server: "rs0.a", URI: set.Member("a").URI(), Every: 10 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
				Members: []observe.Member{{Name: "rs0.bee", ID: 1}}}
			w := watch(t, s)
			c := connectMongo(t, set.Member("a").URI()).Database("shop").Collection("orders")
			write := func() {
				if _, err := c.InsertOne(t.Context(), bson.D{}); err != nil {
					t.Fatal(err)
				}
			}
			for _, m := range []trace.Measure{
				trace.JournalSyncs, trace.JournalTime, trace.JournalBytes, trace.Checkpoint, trace.CheckpointTime,
				trace.Writes, trace.WriteTime, trace.FlowControlRate, trace.SampleCost,
			} {
				w.until(t, m.String(), write, above(m))
			}
			w.until(t, "lags", write, func(a *trace.Activity) bool {
				_, ok := a.Get(trace.MajorityLag)
				return ok && len(a.Lags) == 2 && a.Lags[0].Member == "rs0.bee" && a.Lags[0].Applied != trace.NoLag
			})
			shortOfTickets(t, w, c, version)
		})
	}
}

// shortOfTickets has more reads than tickets.
func shortOfTickets(t *testing.T, w *watched, c *mongo.Collection, version string) {
	t.Helper()
	if _, err := c.DeleteMany(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.InsertOne(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			for ctx.Err() == nil {
				_ = c.FindOne(ctx, bson.D{{Key: "$where", Value: "sleep(30) || true"}}).Err()
			}
		})
	}
	w.until(t, "that tickets are short", func() {}, func(a *trace.Activity) bool {
		short, _ := a.Get(trace.TicketsShort)
		free, ok := a.Get(trace.ReadTicketsAvailable)
		queued, shown := a.Get(trace.ReadTicketsQueued)
		if shown != (version != "6.0") {
			t.Fatalf("%s shows a queue: %v", version, shown)
		}
		if strings.HasPrefix(a.TicketRule, "before 7.0") == shown {
			t.Fatalf("%s is read by %q", version, a.TicketRule)
		}
		return short == 1 && ok && (free == 0 || queued > 2)
	})
	if version != "6.0" {
		w.until(t, "how long reads queue", func() {}, above(trace.ReadTicketWait))
	}
	cancel()
	readers.Wait()
}

// TestSampler_MongoAlone: a server that is in no set is asked no more for one, and
// nobody complains.
func TestSampler_MongoAlone(t *testing.T) {
	m, err := mongod.Start(mongod.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Stop()
	var log locked
	w := watch(t, &observe.Sampler{Server: "db", URI: m.URI(m.Addr()), Every: time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil))})
	n := 0
	w.until(t, "ten samples", func() {}, func(a *trace.Activity) bool { n++; return n >= 10 })
	if log.String() != "" {
		t.Error(log.String())
	}
}

// TestSampler_MongoThatComesBack: nobody to be asked is said once, and so is that
// somebody is there again.
func TestSampler_MongoThatComesBack(t *testing.T) {
	set := startSet(t, mongod.SetOptions{})
	b := set.Member("b")
	var log locked
	w := watch(t, &observe.Sampler{Server: "rs0.b", URI: b.URI(), Every: 10 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil))})
	one := func(*trace.Activity) bool { return true }
	w.until(t, "a sample", func() {}, one)
	if err := b.Kill(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); !strings.Contains(log.String(), "can't ask"); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("nobody complains of a server that has gone: %s", log.String())
		}
	}
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	w.until(t, "that it answers again", func() {}, func(*trace.Activity) bool { return strings.Contains(log.String(), "answers again") })
	text := log.String()
	if n := strings.Count(text, "can't ask"); n == 0 || n != strings.Count(text, "answers again") || strings.Contains(text, "doesn't say all") {
		t.Errorf("each once, and what it doesn't say is another matter:\n%s", text)
	}
}
