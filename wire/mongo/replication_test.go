package mongo

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/wire"
)

func oplogRead(t testing.TB, id int, command, collection, db string) []byte {
	d := bson.D{{Key: "find", Value: collection}, {Key: "tailable", Value: true}, {Key: "$db", Value: db}}
	if command == "getMore" {
		d = bson.D{{Key: "getMore", Value: int64(7)}, {Key: "collection", Value: collection}, {Key: "$db", Value: db}}
	}
	return msg(id, 0, 0, kind0(doc(t, d)))
}

// Only a member's stream of the oplog, and the reports of where it is, are
// replication.
func TestReplication_IsAMembersAlone(t *testing.T) {
	for name, tt := range map[string]struct {
		member   bool
		requests [][]byte
		want     wire.Replication
	}{
		"the stream":         {true, [][]byte{oplogRead(t, 3, "find", "oplog.rs", "local"), oplogRead(t, 5, "getMore", "oplog.rs", "local")}, wire.Replication{Log: true}},
		"looking for one":    {true, [][]byte{oplogRead(t, 3, "find", "oplog.rs", "local")}, wire.Replication{}},
		"another collection": {true, [][]byte{oplogRead(t, 3, "getMore", "orders", "shop")}, wire.Replication{}},
		"reports":            {true, [][]byte{updatePosition(t, 3)}, wire.Replication{Progress: true}},
		"heartbeats":         {true, [][]byte{msg(3, 0, 0, kind0(doc(t, bson.D{{Key: "replSetHeartbeat", Value: "rs0"}, {Key: "$db", Value: "admin"}})))}, wire.Replication{}},
		"an application":     {false, [][]byte{oplogRead(t, 3, "getMore", "oplog.rs", "local"), updatePosition(t, 5)}, wire.Replication{}},
	} {
		h := newHarness(t, wire.Options{})
		if tt.member {
			h.feed(wire.ToServer, internalHello(t, 1))
			h.feed(wire.ToClient, okReply(t, 2, 1))
		}
		for i, b := range tt.requests {
			h.feed(wire.ToServer, b)
			h.feed(wire.ToClient, okReply(t, 10+i, 3+2*i))
		}
		got := h.s.(wire.Replicator).Replication()
		if got.Peer != nil && got.Peer.Application != "OplogFetcher" {
			t.Errorf("%s: it's %+v's", name, got.Peer)
		}
		if got.Peer = nil; got != tt.want {
			t.Errorf("%s: it's %+v, want %+v", name, got, tt.want)
		}
	}
}
