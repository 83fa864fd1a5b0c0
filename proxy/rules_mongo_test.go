//go:build unix

package proxy_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/wire"
)

// mongoRig is a lab server behind a proxy with rules, a client through it and one
// beside it.
type mongoRig struct {
	*ruledRig
	orders *mongo.Collection // through the proxy
	direct *mongo.Collection
}

func newMongoRig(t *testing.T, driver, params string, rules ...inject.Rule) *mongoRig {
	t.Helper()
	m, err := lab.StartMongo(lab.MongoOptions{SetName: "rs0", Compressors: []string{"snappy", "zlib", "zstd"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Stop)
	r := &mongoRig{ruledRig: newRuledRig(t, driver, proxy.LinkConfig{Upstream: m.Addr()}, rules...)}
	r.orders = dialCollection(t, m.URI(r.addr())+params)
	r.direct = dialCollection(t, m.URI(m.Addr()))
	return r
}

func dialCollection(t *testing.T, uri string) *mongo.Collection {
	t.Helper()
	c, err := mongo.Connect(options.Client().ApplyURI(uri).SetTimeout(30 * time.Second).SetAppName("shop"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Disconnect(context.Background()) })
	return c.Database("shop").Collection("orders")
}

// stored is how many documents have that _id.
func (r *mongoRig) stored(t *testing.T, id any) int64 {
	t.Helper()
	n, err := r.direct.CountDocuments(t.Context(), bson.D{{Key: "_id", Value: id}})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (r *mongoRig) insert(t *testing.T, id any) error {
	t.Helper()
	_, err := r.orders.InsertOne(t.Context(), bson.D{{Key: "_id", Value: id}})
	return err
}

func when(command string) inject.When {
	return inject.When{Command: []string{command}, Collection: []string{"orders"}}
}

const noRetry = "&retryWrites=false"

func TestRules_MongoRefuse(t *testing.T) {
	for _, params := range []string{noRetry, noRetry + "&compressors=snappy", noRetry + "&compressors=zlib", noRetry + "&compressors=zstd"} {
		t.Run(params, func(t *testing.T) {
			onDrivers(t, func(t *testing.T, driver string) {
				r := newMongoRig(t, driver, params, inject.Rule{
					Name: "full", When: when("insert"), Effect: inject.EffectRefuse, With: inject.With{Code: "10107"}, Limit: inject.Limit{First: 1},
				})
				var ce mongo.CommandError
				err := r.insert(t, 1)
				if !errors.As(err, &ce) || ce.Code != 10107 || ce.Name != "NotWritablePrimary" {
					t.Fatalf("the client got %v, want an error 10107", err)
				}
				if ce.HasErrorLabel("RetryableWriteError") {
					t.Error("a write without a txnNumber may not be called retryable")
				}
				if n := r.stored(t, 1); n != 0 {
					t.Errorf("the server has %d documents, want none", n)
				}
				if err := r.insert(t, 2); err != nil || r.stored(t, 2) != 1 {
					t.Errorf("the next one: %v", err)
				}
				r.wantHits("full", 1)
				r.wantFault(wire.Fault{Rule: "full", Effect: "refuse", Draw: "42:full:1", Code: "10107"})
			})
		})
	}
}

// A driver tries again what it's told may be tried again, and only then.
func TestRules_MongoRefusedWritesAreRetried(t *testing.T) {
	onDrivers(t, func(t *testing.T, driver string) {
		r := newMongoRig(t, driver, "", inject.Rule{
			Name: "step-down", When: when("insert"), Effect: inject.EffectRefuse, With: inject.With{Code: "189"}, Limit: inject.Limit{First: 1},
		})
		if err := r.insert(t, 1); err != nil {
			t.Fatalf("the retry should have succeeded: %v", err)
		}
		if c := r.counts("step-down"); c.Hits != 1 || c.Matches != 2 || r.stored(t, 1) != 1 {
			t.Errorf("%+v, and %d documents; want one hit of two matches, and one", c, r.stored(t, 1))
		}
	})
}

func TestRules_MongoLoseReply(t *testing.T) {
	onDrivers(t, func(t *testing.T, driver string) {
		r := newMongoRig(t, driver, noRetry, inject.Rule{
			Name: "lost", When: when("insert"), Effect: inject.EffectLoseReply, Limit: inject.Limit{Nth: 1},
		})
		err := r.insert(t, 1)
		if err == nil || !mongo.IsNetworkError(err) {
			t.Fatalf("the client got %v, want a network error", err)
		}
		if n := r.stored(t, 1); n != 1 {
			t.Errorf("the server has %d documents, want the one", n)
		}
		// What the server itself refuses has no acknowledgement to lose.
		r.wantHits("lost", 1)
		if err := r.SetRules([]inject.Rule{{Name: "again", When: when("insert"), Effect: inject.EffectLoseReply}}); err != nil {
			t.Fatal(err)
		}
		if err := r.insert(t, 1); !mongo.IsDuplicateKeyError(err) {
			t.Errorf("the client got %v, want the server's duplicate key", err)
		}
		if c := r.counts("again"); c.Hits != 0 || c.NotApplicable["reply_failed"] != 1 {
			t.Errorf("%+v: want one match that did not apply", c)
		}
		r.wantFault(wire.Fault{Rule: "lost", Effect: "lose_reply", Draw: "42:lost:1"})
	})
}

// A retryable write whose acknowledgement was lost is sent again by the driver,
// and is there once.
func TestRules_MongoLostReplyIsRetried(t *testing.T) {
	onDrivers(t, func(t *testing.T, driver string) {
		r := newMongoRig(t, driver, "", inject.Rule{
			Name: "lost", When: when("insert"), Effect: inject.EffectLoseReply, Limit: inject.Limit{First: 1},
		})
		if err := r.insert(t, 1); err != nil {
			t.Fatalf("the retry should have succeeded: %v", err)
		}
		if n := r.stored(t, 1); n != 1 {
			t.Errorf("the server has %d documents, want one", n)
		}
		r.wantHits("lost", 1)
	})
}

func TestRules_MongoFailReply(t *testing.T) {
	for _, params := range []string{noRetry, noRetry + "&compressors=zlib"} {
		t.Run(params, func(t *testing.T) {
			onDrivers(t, func(t *testing.T, driver string) {
				concern := when("insert")
				concern.WriteConcern = []inject.Concern{{W: "majority"}}
				r := newMongoRig(t, driver, params+"&w=majority",
					inject.Rule{Name: "slow-set", When: concern, Effect: inject.EffectFailReply, With: inject.With{Code: "64", WriteConcernError: true}, Limit: inject.Limit{Nth: 1}},
					inject.Rule{Name: "conflict", When: when("insert"), Effect: inject.EffectFailReply, With: inject.With{Code: "112", Message: "try later"}, Limit: inject.Limit{Nth: 1}})
				var we mongo.WriteException
				err := r.insert(t, 1)
				if !errors.As(err, &we) || we.WriteConcernError == nil || we.WriteConcernError.Code != 64 {
					t.Fatalf("the client got %v, want a writeConcernError 64", err)
				}
				var ce mongo.CommandError
				if err := r.insert(t, 2); !errors.As(err, &ce) || ce.Code != 112 || ce.Message != "try later" {
					t.Fatalf("the client got %v, want an error 112", err)
				}
				if err := r.insert(t, 3); err != nil {
					t.Fatal(err)
				}
				for id := 1; id <= 3; id++ {
					if n := r.stored(t, id); n != 1 {
						t.Errorf("document %d: the server has %d, want one", id, n)
					}
				}
			})
		})
	}
}

// A write without acknowledgement has no reply that could be lost.
func TestRules_MongoUnacknowledged(t *testing.T) {
	onDrivers(t, func(t *testing.T, driver string) {
		r := newMongoRig(t, driver, "&w=0", inject.Rule{Name: "lost", When: when("insert"), Effect: inject.EffectLoseReply})
		if err := r.insert(t, 1); err != nil {
			t.Fatal(err)
		}
		soon(t, "the document is there", func() bool { return r.stored(t, 1) == 1 })
		if c := r.counts("lost"); c.Matches != 0 || len(c.NotApplicable) != 0 {
			t.Errorf("%+v: want no match", c)
		}
	})
}

func TestRules_MongoLatency(t *testing.T) {
	const late = 150 * time.Millisecond
	onDrivers(t, func(t *testing.T, driver string) {
		w := when("insert")
		w.Direction = inject.OnlyToClient
		r := newMongoRig(t, driver, "", inject.Rule{Name: "slow", When: w, Effect: inject.EffectLatency, With: inject.With{Delay: late}})
		if _, err := r.orders.CountDocuments(t.Context(), bson.D{}); err != nil { // connects
			t.Fatal(err)
		}
		began := time.Now()
		if err := r.insert(t, 1); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < late {
			t.Errorf("the insert took %v, want at least %v", took, late)
		}
		began = time.Now()
		if err := r.orders.FindOne(t.Context(), bson.D{{Key: "_id", Value: 1}}).Err(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took >= late {
			t.Logf("a find took %v, though no rule delays it: the machine is slow", took)
		}
		r.wantHits("slow", 1)
		r.wantFault(wire.Fault{Rule: "slow", Effect: "latency", Draw: "42:slow:1"})
	})
}

// A partition: what was asked for waits, and comes when the rule is gone.
func TestRules_MongoHold(t *testing.T) {
	onDrivers(t, func(t *testing.T, driver string) {
		r := newMongoRig(t, driver, noRetry, inject.Rule{Name: "cut-off", When: when("insert"), Effect: inject.EffectHold})
		done := make(chan error, 1)
		go func() { done <- r.insert(t, 1) }()
		soon(t, "the insert is held", func() bool { return r.counts("cut-off").Hits == 1 })
		if n := r.stored(t, 1); n != 0 {
			t.Errorf("the server has %d documents while the request is held", n)
		}
		select {
		case err := <-done:
			t.Fatalf("the insert came back: %v", err)
		default:
		}
		if err := r.SetRules(nil); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("after the partition: %v", err)
		}
		if n := r.stored(t, 1); n != 1 {
			t.Errorf("the server has %d documents, want one", n)
		}
	})
}

// Monitors are spared, unless they are asked for: the driver's pool connections
// fail, and the server stays known.
func TestRules_MongoSparesMonitors(t *testing.T) {
	onDrivers(t, func(t *testing.T, driver string) {
		r := newMongoRig(t, driver, noRetry, inject.Rule{Name: "reset", Effect: inject.EffectResetPeer})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, err := r.orders.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
		if err == nil || !mongo.IsNetworkError(err) || mongo.IsTimeout(err) {
			t.Fatalf("the client got %v, want a connection reset", err)
		}
		if r.counts("reset").Hits == 0 || r.stored(t, 1) != 0 {
			t.Errorf("%+v, %d documents", r.counts("reset"), r.stored(t, 1))
		}
	})
}

// wantFault is the rig's, once the client has left: it would look for its server.
func (r *mongoRig) wantFault(f wire.Fault) {
	r.t.Helper()
	_ = r.orders.Database().Client().Disconnect(context.Background())
	r.ruledRig.wantFault(f)
}
