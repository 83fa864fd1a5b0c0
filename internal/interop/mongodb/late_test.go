package mongodb

import (
	"context"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/wire"
)

// The Go driver keeps the connection on which it gave up waiting, and reads the
// late reply before it uses it again, if that comes within 400 ms
// (x/mongo/driver/topology/pool.go, BGReadTimeout). So over the proxy the
// reply must still come, and before the next one.
//
// A machine that stands still for 200 ms in the wrong moment spoils a try, not
// the answers; ten such tries are no accident.
func TestLateReply_OnTheSameConnection(t *testing.T) {
	const patience, thinking = 400 * time.Millisecond, 600 * time.Millisecond
	m, err := lab.StartMongo(lab.MongoOptions{ServerDelay: func(c lab.MongoCommand) time.Duration {
		if c.Collection == "slow" {
			return thinking
		}
		return 0
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Stop)
	l := startLink(t, m.Addr())
	client, err := mongo.Connect(options.Client().ApplyURI(m.URI(l.Addr()) + "&maxPoolSize=1"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Disconnect(context.Background())
	db := client.Database("shop")
	if _, err := db.Collection("orders").InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	kept := false
	for range 10 {
		before := l.Proxy.Counters().ConnectionsTotal
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, err := db.Collection("slow").FindOne(ctx, bson.D{}).Raw()
		cancel()
		gaveUp := mongo.IsTimeout(err)
		if n, err := db.Collection("orders").CountDocuments(t.Context(), bson.D{}); n != 1 || err != nil {
			t.Fatalf("counted %d, %v; want 1", n, err)
		}
		if kept = gaveUp && l.Proxy.Counters().ConnectionsTotal == before; kept {
			break
		}
		t.Logf("the slow read: %v; connections: %d, then %d", err, before, l.Proxy.Counters().ConnectionsTotal)
	}
	if !kept {
		t.Error("the driver never kept its connection")
	}
	if err := client.Disconnect(context.Background()); err != nil {
		t.Error(err)
	}
	l.stop(t, plain)
	late := 0
	for i := range l.got.All {
		x := &l.got.All[i]
		if x.Collection == "slow" && x.Answered && x.Sides[wire.ToClient].LastIn.Sub(x.Sides[wire.ToServer].LastOut) >= thinking {
			late++
		}
	}
	if late == 0 {
		t.Error("the late reply was not seen")
	}
}
