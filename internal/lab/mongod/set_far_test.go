package mongod

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// farMember starts a set whose member c reaches the primary through a tap that
// takes 20 ms each way. insert writes with w members' acknowledgement.
func farMember(t *testing.T, o SetOptions) (set *Set, far *tap, insert func(w int)) {
	t.Helper()
	ports, err := ReservePorts(3)
	if err != nil {
		t.Fatal(err)
	}
	far = newTap(t, ports.Addr(0), 20*time.Millisecond)
	t.Cleanup(far.close)
	o.Ports, o.HeartbeatInterval, o.Record = ports, 50*time.Millisecond, true
	o.DialPair = func(from, to int) string {
		if from == 2 && to == 0 {
			return far.Addr().String()
		}
		return ports.Addr(to)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	if set, err = StartSet(ctx, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	client, err := mongo.Connect(options.Client().ApplyURI(set.URI()).SetHeartbeatInterval(500 * time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return set, far, func(w int) {
		t.Helper()
		err := client.Database("d").RunCommand(ctx, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{}}},
			{Key: "writeConcern", Value: bson.D{{Key: "w", Value: w}}}}).Err()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// With chaining a member moves to another that is nearer, whose reports then
// speak of both.
func TestSet_ChainedMembersPositionsReachThePrimary(t *testing.T) {
	set, _, insert := farMember(t, SetOptions{})
	for set.Member("c").Status().Source != "b" {
		insert(1)
	}
	for range 10 {
		insert(3)
	}
	chained := 0
	for _, r := range set.Member("a").Truth().Releases {
		if r.Concern == "3" && r.By == "c" && r.Via == viaReport {
			chained++
		}
	}
	if source := set.Member("c").Status().Source; source != "b" || chained < 5 {
		t.Errorf("c follows %q and released %d of 10 writes by reports, want b, and most", source, chained)
	}
}

// reportsIn counts the connections that report through a tap, and what they sent.
func reportsIn(t *testing.T, p *tap) (connections, reports int) {
	t.Helper()
	p.mu.Lock()
	talks := slices.Clone(p.talks)
	p.mu.Unlock()
	for _, k := range talks {
		requests := k.messages(t, &k.toServer)
		if len(requests) == 0 {
			continue
		}
		if driver, _ := requests[0].body.Lookup("client", "driver", "name").StringValueOK(); driver == driverReports {
			connections++
			reports += len(requests) - 1
		}
	}
	return connections, reports
}

// A report waits for the one that is under way, and then speaks of all that has
// come meanwhile; only news of the journal has a second connection.
func TestSet_ReportsDoNotPileUp(t *testing.T) {
	_, far, insert := farMember(t, SetOptions{NoChaining: true})
	var connections, before int
	for connections < 2 || before < 10 {
		insert(3)
		connections, before = reportsIn(t, far)
	}
	begin := time.Now()
	const writes = 1000
	for range writes {
		insert(1)
	}
	insert(3)
	connections, after := reportsIn(t, far)
	// Each takes a round trip of 40 ms, and there are two connections.
	atMost := 2 * (int(time.Since(begin)/(40*time.Millisecond)) + 1)
	if connections != 2 || after == before || after-before > atMost {
		t.Errorf("%d reports on %d connections for %d writes, want some, and at most %d on two", after-before, connections, writes, atMost)
	}
}
