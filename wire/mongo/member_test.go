package mongo

import (
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/wire"
)

// TestRequest_MembersSayWhoTheyAre: in their hello and in heartbeats, and nobody
// else in anything else.
func TestRequest_MembersSayWhoTheyAre(t *testing.T) {
	command := func(id int, d bson.D) []byte {
		return msg(id, 0, 0, kind0(doc(t, append(d, bson.E{Key: "$db", Value: "admin"}))))
	}
	messages := [][]byte{
		command(1, bson.D{{Key: "find", Value: "c"}, {Key: "hostInfo", Value: "x:1"}, {Key: "from", Value: "x:2"}}),
		command(2, bson.D{{Key: "hello", Value: 1}, {Key: "from", Value: "x:3"}, {Key: "hostInfo", Value: "b.internal:27017"}}),
		command(3, bson.D{{Key: "hello", Value: 1}, {Key: "hostInfo", Value: 5}}),
		command(4, bson.D{{Key: "replSetHeartbeat", Value: "rs0"}, {Key: "from", Value: ""}}), // has no configuration yet
		command(5, bson.D{{Key: "replSetHeartbeat", Value: "rs0"}, {Key: "from", Value: "proxy:27202"}, {Key: "fromId", Value: 1}}),
	}
	var got []string
	for _, o := range []wire.Options{{}, {Member: func(name, basis string) { got = append(got, name+" "+basis) }}} {
		h := newHarness(t, o)
		for _, m := range messages {
			h.feed(wire.ToServer, m)
		}
		h.end()
	}
	if want := []string{"b.internal:27017 host_info", "proxy:27202 heartbeat"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
