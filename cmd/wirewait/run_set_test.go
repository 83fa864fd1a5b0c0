package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/wirewait/wirewait/internal/lab/mongod"
)

// TestRun_FileNamesWhoReleasedAWrite is what a person does with a replica set: a
// file, a configuration whose addresses are its links, and spans. The members
// stand in the file in another order than in the set, which is asked.
func TestRun_FileNamesWhoReleasedAWrite(t *testing.T) {
	ports, front := reserve(t), reserve(t)
	defer front.Close()
	file := filepath.Join(t.TempDir(), "wirewait.yaml")
	writeFile(t, file, fmt.Sprintf(`network:
  - {between: [app, sgp], rtt: 0}
  - {between: [fra, sgp], rtt: 160ms}
  - {between: [syd, sgp], rtt: 60ms}
  - {between: [fra, syd], rtt: 240ms}
clusters:
  rs0:
    protocol: mongodb
    observe: "mongodb://%[1]s/"
    members:
      c: {site: syd, upstream: "%[3]s"}
      b: {site: fra, upstream: "%[2]s"}
      a: {site: sgp, upstream: "%[1]s"}
links:
  - {from: app, to: rs0.a, listen: "127.0.0.1:0"}
  - {from: members, to: rs0.a, listen: "%[4]s"}
  - {from: members, to: rs0.b, listen: "%[5]s"}
  - {from: members, to: rs0.c, listen: "%[6]s"}
`, ports.Addr(0), ports.Addr(1), ports.Addr(2), front.Addr(0), front.Addr(1), front.Addr(2)))
	w := start(t, []string{"OTEL_TRACES_EXPORTER=console"}, file)
	app := w.line(`^link app-rs0\.a: (\S+) -> `)[1]

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	set, err := mongod.StartSet(ctx, mongod.SetOptions{Ports: ports, Members: []mongod.MemberOptions{
		{Host: front.Addr(0)}, {Host: front.Addr(1)}, {Host: front.Addr(2)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	w.line(`msg="asked a replica set" cluster=rs0 version=\d+ members=3 default_w=majority`)
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + app + "/?directConnection=true"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Disconnect(context.Background())
	insert := func(name string, wc *writeconcern.WriteConcern) {
		c := client.Database("shop").Collection(name, options.Collection().SetWriteConcern(wc))
		if _, err := c.InsertOne(t.Context(), bson.D{}); err != nil {
			t.Fatal(err)
		}
	}
	insert("before", &writeconcern.WriteConcern{W: 3}) // all follow
	insert("before", &writeconcern.WriteConcern{W: 3})
	time.Sleep(3 * time.Second) // a heartbeat interval: they say whom
	insert("most", nil)
	insert("all", &writeconcern.WriteConcern{W: 3})
	w.signal(syscall.SIGTERM)
	w.stopped()

	found := map[string]consoleSpan{}
	sources := map[any]int{}
	for dec := json.NewDecoder(&w.stdout); dec.More(); {
		var s consoleSpan
		if err := dec.Decode(&s); err != nil {
			t.Fatal(err)
		}
		found[s.Name] = s
		sources[s.attribute("mongodb.sync_source")]++
	}
	for name, want := range map[string]struct {
		by  string
		rtt float64
	}{"insert most": {"rs0.c", 60}, "insert all": {"rs0.b", 160}} {
		s := found[name]
		basis := s.attribute("wirewait.released_by.basis")
		if got := s.attribute("wirewait.released_by"); got != want.by || basis != "exact" && basis != "position_then_primary" {
			t.Errorf("%s: released by %v, %v; want %s", name, got, basis, want.by)
			continue
		}
		if ms, _ := s.attribute("wirewait.wait.replication_ms").(float64); ms < want.rtt || s.attribute("wirewait.dominant_wait") != "replication" {
			t.Errorf("%s: replication took %v ms, want %v at least", name, ms, want.rtt)
		}
	}
	if sources["rs0.a"] == 0 {
		t.Errorf("no replicate span says that its member follows rs0.a: %v", sources)
	}
}

func reserve(t *testing.T) *mongod.Ports {
	t.Helper()
	p, err := mongod.ReservePorts(3)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
