package mongod_test

import (
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/wirewait/wirewait/internal/lab/mongod"
)

// What drivers and mongosh ask is answered, and what isn't there is refused.
func TestSet_SmallCommands(t *testing.T) {
	set := startSet(t, mongod.SetOptions{})
	client := dial(t, set.URI())
	admin := client.Database("admin")
	for command, field := range map[string]string{
		`{"ping":1}`: "ok", `{"buildInfo":1}`: "versionArray", `{"getCmdLineOpts":1}`: "argv", `{"getLog":"startupWarnings"}`: "log",
		`{"getParameter":1,"featureCompatibilityVersion":1}`: "featureCompatibilityVersion", `{"connectionStatus":1}`: "authInfo",
		`{"listDatabases":1}`: "databases", `{"serverStatus":1}`: "wiredTiger", `{"replSetGetStatus":1}`: "members",
		`{"replSetGetConfig":1}`: "config", `{"getDefaultRWConcern":1}`: "defaultWriteConcern", `{"hostInfo":1}`: "system", `{"hello":1}`: "electionId",
	} {
		raw, err := admin.RunCommand(t.Context(), extended(t, command)).Raw()
		if err != nil {
			t.Errorf("%s: %v", command, err)
		} else if _, err := raw.LookupErr(field); err != nil {
			t.Errorf("%s gave no %s: %v", command, field, raw)
		}
	}
	for _, command := range []string{`{"replSetInitiate":{}}`, `{"atlasVersion":1}`, `{"replSetReconfig":{}}`, `{"distinct":"c","key":"a"}`, `{"commitTransaction":1}`} {
		wantCode(t, admin.RunCommand(t.Context(), extended(t, command)).Err(), 59)
	}
	var status struct {
		Members []struct {
			StateStr string
			Optime   struct{ T int64 }
		}
	}
	eventually(t, "all members known", func() bool {
		if err := admin.RunCommand(t.Context(), extended(t, `{"replSetGetStatus":1}`)).Decode(&status); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, m := range status.Members {
			if m.StateStr == "SECONDARY" {
				n++
			}
		}
		return n == 2 && len(status.Members) == 3
	})
}

func TestSet_CollectionsAndIndexes(t *testing.T) {
	set := startSet(t, mongod.SetOptions{})
	client := dial(t, set.URI())
	db := client.Database("shop")
	for _, command := range []string{
		`{"create":"made","writeConcern":{"w":3}}`,
		`{"createIndexes":"indexed","indexes":[{"key":{"n":1},"name":"n_1"}],"writeConcern":{"w":3}}`,
	} {
		if err := db.RunCommand(t.Context(), extended(t, command)).Err(); err != nil {
			t.Fatalf("%s: %v", command, err)
		}
	}
	for _, m := range set.Members() {
		there := dial(t, m.URI()).Database("shop")
		names, err := there.ListCollectionNames(t.Context(), bson.D{})
		if err != nil || len(names) != 2 || names[0] != "indexed" || names[1] != "made" {
			t.Errorf("member %s has %q, %v", m.Name(), names, err)
		}
		specs, err := there.Collection("indexed").Indexes().ListSpecifications(t.Context())
		if err != nil || len(specs) != 2 || specs[1].Name != "n_1" {
			t.Errorf("member %s has indexes %+v, %v", m.Name(), specs, err)
		}
	}
	err := db.RunCommand(t.Context(), extended(t, `{"createIndexes":"indexed","indexes":[{"key":{"m":1},"name":"m_1","unique":true}]}`)).Err()
	wantCode(t, err, 238)
	if err := db.Collection("made").Drop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := db.Drop(t.Context()); err != nil {
		t.Error(err)
	}
	if names, err := db.ListCollectionNames(t.Context(), bson.D{}); err != nil || len(names) != 0 {
		t.Errorf("after dropDatabase: %q, %v", names, err)
	}
}

func TestSet_BulkWrite(t *testing.T) {
	set := startSet(t, mongod.SetOptions{})
	client := dial(t, set.URI())
	one := func(id int) bson.D { return bson.D{{Key: "_id", Value: id}} }
	change := bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}
	upsert := true
	res, err := client.BulkWrite(t.Context(), []mongo.ClientBulkWrite{
		{Database: "d", Collection: "a", Model: mongo.NewClientInsertOneModel().SetDocument(one(1))},
		{Database: "d", Collection: "b", Model: mongo.NewClientInsertOneModel().SetDocument(one(1))},
		{Database: "d", Collection: "a", Model: mongo.NewClientUpdateOneModel().SetFilter(one(1)).SetUpdate(change)},
		{Database: "d", Collection: "a", Model: &mongo.ClientUpdateOneModel{Filter: one(7), Update: change, Upsert: &upsert}},
		{Database: "d", Collection: "b", Model: mongo.NewClientDeleteOneModel().SetFilter(one(1))},
	}, options.ClientBulkWrite().SetVerboseResults(true))
	if err != nil {
		t.Fatal(err)
	}
	if res.InsertedCount != 2 || res.MatchedCount != 1 || res.ModifiedCount != 1 || res.UpsertedCount != 1 || res.DeletedCount != 1 {
		t.Errorf("bulkWrite did %+v", res)
	}
	_, err = client.BulkWrite(t.Context(), []mongo.ClientBulkWrite{
		{Database: "d", Collection: "a", Model: mongo.NewClientInsertOneModel().SetDocument(one(1))}})
	if err == nil {
		t.Error("a duplicate was taken")
	}
}

// Drivers are told of a step-down by the hello that they have waiting.
func TestSet_StreamedHelloTellsOfAStepDown(t *testing.T) {
	set := startSet(t, mongod.SetOptions{})
	var primary atomic.Value
	primary.Store("")
	client, err := mongo.Connect(options.Client().ApplyURI(set.URI()).SetHeartbeatInterval(10 * time.Minute).SetServerSelectionTimeout(time.Second).
		SetServerMonitor(&event.ServerMonitor{TopologyDescriptionChanged: func(e *event.TopologyDescriptionChangedEvent) {
			for _, s := range e.NewDescription.Servers {
				if s.Kind == "RSPrimary" {
					primary.Store(s.Addr.String())
				}
			}
		}}))
	if err != nil {
		t.Fatal(err)
	}
	is := func(name string) func() bool {
		return func() bool { return primary.Load() == set.Member(name).Host() }
	}
	eventually(t, "the driver knows the primary", is("a"))
	direct := dial(t, set.Member("a").URI())
	if err := direct.Database("admin").RunCommand(t.Context(), bson.D{{Key: "replSetStepDown", Value: 60}}).Err(); err != nil {
		t.Fatal(err)
	}
	_ = direct.Disconnect(t.Context())
	eventually(t, "the driver knows the next primary", func() bool { return is("b")() || is("c")() })
	if err := set.Close(); err != nil { // so that the driver's monitors end
		t.Error(err)
	}
	_ = client.Disconnect(t.Context())
}

// A findAndModify that is sent again to the next primary has the answer that it
// had from the last one, and isn't done again.
func TestSet_RetryAfterAnElection(t *testing.T) {
	set := startSet(t, mongod.SetOptions{})
	lsid := bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: []byte("sixteen bytes id")}}}
	send := func(m *mongod.Member, command bson.D, number int64) bson.Raw {
		t.Helper()
		command = append(command, bson.E{Key: "lsid", Value: lsid}, bson.E{Key: "txnNumber", Value: number},
			bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 3}}})
		raw, err := dial(t, m.URI()).Database("d").RunCommand(t.Context(), command).Raw()
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	find := bson.D{{Key: "findAndModify", Value: "c"}, {Key: "query", Value: bson.D{{Key: "_id", Value: 1}}},
		{Key: "update", Value: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}}, {Key: "new", Value: true}, {Key: "upsert", Value: true}}
	deletes := bson.D{{Key: "delete", Value: "c"}, {Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: bson.D{}}, {Key: "limit", Value: 1}}}}}
	a := set.Member("a")
	send(a, find, 1)
	second := send(a, find, 2)
	if err := a.Stop(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another primary", func() bool { return set.Primary() != nil })
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	next := set.Primary()
	again := send(next, find, 2)
	if !again.Lookup("value").Equal(second.Lookup("value")) || again.Lookup("retriedStmtIds", "0").Int32() != 0 {
		t.Errorf("again %v, first %v", again, second)
	}
	first, repeated := send(next, deletes, 3), send(next, deletes, 3)
	if first.Lookup("n").Int32() != 1 || repeated.Lookup("n").Int32() != 1 {
		t.Errorf("delete said %v, then %v, want n: 1 both times", first, repeated)
	}
}
