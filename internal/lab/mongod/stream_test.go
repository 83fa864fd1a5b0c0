package mongod

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// The driver's monitor says whether an answer came in a stream, and a heartbeat
// that failed would say that the stream isn't as it should be.
func TestMongo_StreamsHello(t *testing.T) {
	m := start(t, Options{StreamHello: true, SetName: "rs0"})
	var failed, asked atomic.Int32
	streamed := make(chan struct{}, 100)
	client, err := mongo.Connect(options.Client().ApplyURI(m.URI(m.Addr())).SetHeartbeatInterval(500 * time.Millisecond).
		SetServerMonitor(&event.ServerMonitor{
			ServerHeartbeatSucceeded: func(e *event.ServerHeartbeatSucceededEvent) {
				if e.Awaited {
					streamed <- struct{}{}
				} else {
					asked.Add(1)
				}
			},
			ServerHeartbeatFailed: func(e *event.ServerHeartbeatFailedEvent) { failed.Add(1) },
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Disconnect(context.Background())
	if _, err := client.Database("d").Collection("c").InsertOne(t.Context(), bson.D{{Key: "a", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		select {
		case <-streamed:
		case <-time.After(time.Minute):
			t.Fatal("no streamed hello")
		}
	}
	if failed.Load() > 0 || asked.Load() > 1 {
		t.Errorf("%d heartbeats failed, %d were asked for; want a stream after the first", failed.Load(), asked.Load())
	}
}
