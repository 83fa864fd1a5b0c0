package observe_test

import (
	"log/slog"
	"net"
	osexec "os/exec"
	"strconv"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/internal/testenv"
	"github.com/wirewait/wirewait/proxy/observe"
	"github.com/wirewait/wirewait/trace"
)

// TestSampler_Mongod: the same of a real server, a set of one.
func TestSampler_Mongod(t *testing.T) {
	addr := startMongod(t, testenv.Mongod(t))
	client := connectMongo(t, "mongodb://"+addr+"/?directConnection=true")
	admin := client.Database("admin")
	w := watch(t, &observe.Sampler{Server: "rs0.a", URI: "mongodb://" + addr + "/", Every: 50 * time.Millisecond, Log: slog.New(slog.DiscardHandler)})
	w.until(t, "a sample", func() {}, func(*trace.Activity) bool { return true })
	initiate := bson.D{{Key: "replSetInitiate", Value: bson.D{{Key: "_id", Value: "rs0"}, {Key: "members", Value: bson.A{bson.D{{Key: "_id", Value: 0}, {Key: "host", Value: addr}}}}}}}
	if err := admin.RunCommand(t.Context(), initiate).Err(); err != nil {
		t.Fatal(err)
	}
	write := func() { _, _ = client.Database("shop").Collection("orders").InsertOne(t.Context(), bson.D{}) } // it becomes primary
	for _, m := range []trace.Measure{
		trace.JournalSyncs, trace.JournalTime, trace.JournalBytes, trace.Writes, trace.WriteTime,
		trace.Tickets, trace.TicketsAvailable, trace.ReadTickets, trace.FlowControlRate, trace.SampleCost,
	} {
		w.until(t, m.String(), write, above(m))
	}
	for _, m := range []trace.Measure{trace.TicketsQueued, trace.TicketsShort, trace.FlowControl, trace.MajorityLag, trace.WriteConflicts} {
		w.until(t, m.String(), write, func(a *trace.Activity) bool { _, ok := a.Get(m); return ok })
	}
	for _, m := range []trace.Measure{trace.Checkpoint, trace.CheckpointTime} {
		w.until(t, m.String(), func() {
			write()
			if err := admin.RunCommand(t.Context(), bson.D{{Key: "fsync", Value: 1}}).Err(); err != nil { // makes a checkpoint
				t.Fatal(err)
			}
		}, above(m))
	}
}

// startMongod starts one and says where it listens.
func startMongod(t *testing.T, program string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr = l.Addr().String()
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	c := osexec.Command(program, "--dbpath", t.TempDir(), "--port", strconv.Itoa(port), "--bind_ip", "127.0.0.1", "--replSet", "rs0")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return addr
}
