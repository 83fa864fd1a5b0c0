package orders

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
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// rig is the service, connected through a proxy whose rules the test sets, and
// what only the test sees: the collection past the proxy, and the waits.
type rig struct {
	*Service
	proxy  *proxy.Proxy
	waits  *trace.Summary
	direct *mongo.Collection
}

func start(t *testing.T) *rig {
	t.Helper()
	// Here a server of wirewait's own; yours is an address like any other.
	server, err := lab.StartMongo(lab.MongoOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	r := &rig{waits: &trace.Summary{}}
	tracer := trace.New(1024, r.waits)
	t.Cleanup(tracer.Close)
	// The proxy ends with the test's context, whatever waits in it.
	r.proxy, err = proxy.Start(t.Context(), proxy.Config{Tracer: tracer, Links: []proxy.LinkConfig{{
		Name: "db", Listen: "127.0.0.1:0", Upstream: server.Addr(), Protocol: wire.MongoDB,
		Delay: inject.Symmetric(4*time.Millisecond, 0),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	through := server.URI(r.proxy.Link("db").Addr().String()) + "&retryWrites=false"
	r.Service = &Service{Orders: collection(t, through), Attempts: 3, Patience: 5 * time.Second}
	r.direct = collection(t, server.URI(server.Addr()))
	return r
}

func collection(t *testing.T, uri string) *mongo.Collection {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(uri).SetHeartbeatInterval(500 * time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client.Database("shop").Collection("orders")
}

// inserts is a rule about the service's inserts.
func inserts(name string, e inject.Effect, with inject.With, limit inject.Limit) inject.Rule {
	return inject.Rule{Name: name, When: inject.When{Command: []string{"insert"}}, Effect: e, With: with, Limit: limit}
}

func (r *rig) rules(t *testing.T, rules ...inject.Rule) {
	t.Helper()
	if err := r.proxy.SetRules(rules); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) wantStored(t *testing.T, n int64) {
	t.Helper()
	got, err := r.direct.CountDocuments(t.Context(), bson.D{})
	if err != nil || got != n {
		t.Errorf("%d orders are stored, %v; want %d", got, err, n)
	}
}

// The order was stored and the acknowledgement lost: it's there once, and the
// service says that it's placed.
func TestPlace_AcknowledgementLost(t *testing.T) {
	r := start(t)
	r.rules(t, inserts("lost-ack", inject.EffectLoseReply, inject.With{}, inject.Limit{First: 1}))
	if err := r.Place(t.Context(), 1, "a kettle"); err != nil {
		t.Error(err)
	}
	r.wantStored(t, 1)
	if hits := r.proxy.Rules()[0].Links[0].Hits; hits != 1 {
		t.Errorf("%d acknowledgements were lost, want 1", hits)
	}
}

// A primary that steps down refuses twice, with the label that it would have.
func TestPlace_RefusedWhilePrimariesChange(t *testing.T) {
	r := start(t)
	r.rules(t, inserts("stepping-down", inject.EffectRefuse, inject.With{Code: "189"}, inject.Limit{First: 2}))
	if err := r.Place(t.Context(), 1, "a kettle"); err != nil {
		t.Error(err)
	}
	r.wantStored(t, 1)
}

// An error that trying again can't help is the caller's at once.
func TestPlace_RefusedForGood(t *testing.T) {
	r := start(t)
	r.rules(t, inserts("forbidden", inject.EffectRefuse, inject.With{Code: "13"}, inject.Limit{}))
	err := r.Place(t.Context(), 1, "a kettle")
	var command mongo.CommandError
	if !errors.As(err, &command) || command.Code != 13 || errors.Is(err, ErrUnavailable) {
		t.Errorf("%v, want Unauthorized (13)", err)
	}
	if hits := r.proxy.Rules()[0].Links[0].Hits; hits != 1 {
		t.Errorf("it was tried %d times, want 1", hits)
	}
	r.wantStored(t, 0)
}

// A partition: the service gives up within its patience and says that it doesn't
// know; once the partition heals the same number is placed once.
func TestPlace_Partition(t *testing.T) {
	r := start(t)
	if err := r.Place(t.Context(), 1, "a kettle"); err != nil {
		t.Fatal(err)
	}
	r.Attempts, r.Patience = 2, 300*time.Millisecond
	r.rules(t, inject.Rule{Name: "partition", When: inject.When{Monitors: true}, Effect: inject.EffectHold})
	if err := r.Place(t.Context(), 2, "a teapot"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("%v, want that it can't be reached", err)
	}
	r.rules(t) // none: the wire is whole again, and what it held arrives
	r.Attempts, r.Patience = 5, 10*time.Second
	if err := r.Place(t.Context(), 2, "a teapot"); err != nil {
		t.Error(err)
	}
	r.wantStored(t, 2)
}

// What the service's writes wait for is there to be asserted on.
func TestPlace_WaitsForTheWire(t *testing.T) {
	r := start(t)
	for number := range 20 {
		if err := r.Place(t.Context(), number, "a cup"); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.Now().Add(30 * time.Second) // the tracer is a moment behind
	for r.writes() < 20 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	for _, row := range r.waits.Rows() {
		if row.Operation == "insert" && (row.Count != 20 || row.Request.Mean < 2*time.Millisecond || row.Reply.Mean < 2*time.Millisecond) {
			t.Errorf("%+v, want 20 inserts with 2 ms of wire each way", row)
		}
	}
	if n := r.writes(); n != 20 {
		t.Errorf("%d writes were seen, want 20", n)
	}
}

func (r *rig) writes() (n uint64) {
	for _, row := range r.waits.Rows() {
		if row.Write {
			n += row.Count
		}
	}
	return n
}
