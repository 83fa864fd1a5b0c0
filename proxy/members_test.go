//go:build unix

package proxy_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/internal/lab/mongod"
	"github.com/wirewait/wirewait/internal/testenv"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/wire"
)

// fronted is a replica set in a proxy's back: an application's link to each
// member.
type fronted struct {
	lab.MongoMembers
	proxy *proxy.Proxy
	links []string // addresses
}

func newFronted(t *testing.T, driver, program string, o mongod.SetOptions) *fronted {
	t.Helper()
	f := &fronted{MongoMembers: startMembers(t, program, o)}
	var links []proxy.LinkConfig
	for i, addr := range f.Addrs() {
		to := memberName(byte('a' + i))
		links = append(links, proxy.LinkConfig{
			Name: "app-" + to, From: "app", To: to, Set: "rs0",
			Listen: "127.0.0.1:0", Upstream: addr, Protocol: wire.MongoDB,
		})
	}
	var err error
	f.proxy, err = proxy.Start(context.Background(), proxy.Config{Links: links, Driver: driver})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		_ = f.proxy.Shutdown(now)
	})
	for _, l := range f.proxy.Links() {
		f.links = append(f.links, l.Addr().String())
	}
	return f
}

// primary is the place of the member that takes writes, by its own word.
func (f *fronted) primary(t *testing.T) int {
	t.Helper()
	for t.Context().Err() == nil {
		for i, addr := range f.Addrs() {
			client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + addr + "/?directConnection=true").SetServerSelectionTimeout(time.Second))
			if err != nil {
				t.Fatal(err)
			}
			var hello struct {
				IsWritablePrimary bool `bson:"isWritablePrimary"`
			}
			err = client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "hello", Value: 1}}).Decode(&hello)
			_ = client.Disconnect(context.Background())
			if err == nil && hello.IsWritablePrimary {
				return i
			}
		}
	}
	t.Fatal("no member became primary")
	return -1
}

// dialledBy is a client and the addresses that its pools were opened to.
func dialledBy(t *testing.T, uri string) (*mongo.Client, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var seen []string
	client, err := mongo.Connect(options.Client().ApplyURI(uri).SetServerMonitor(&event.ServerMonitor{
		ServerOpening: func(e *event.ServerOpeningEvent) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, string(e.Address))
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}

// A driver that is given one link finds the others by hello, and never learns of
// an address that isn't a link's: through an election, and without the primary.
func TestMembers_DriversStayOnTheProxy(t *testing.T) {
	onDrivers(t, func(t *testing.T, driver string) {
		staysOnTheProxy(t, newFronted(t, driver, "", mongod.SetOptions{HeartbeatInterval: 100 * time.Millisecond, ElectionTimeout: time.Second}))
	})
}

// The same of three servers that are MongoDB's own.
func TestMembers_Mongod(t *testing.T) {
	staysOnTheProxy(t, newFronted(t, "", testenv.Mongod(t), mongod.SetOptions{}))
}

func staysOnTheProxy(t *testing.T, f *fronted) {
	client, dialled := dialledBy(t, f.URI(f.links[1])+"&retryWrites=true&heartbeatFrequencyMS=500")
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	coll := client.Database("shop").Collection("orders", options.Collection().SetWriteConcern(writeconcern.Majority()))
	insert := func(from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			id := bson.D{{Key: "_id", Value: i}}
			_, err := coll.InsertOne(ctx, id)
			if err == nil {
				_, err = coll.UpdateOne(ctx, id, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}})
			}
			if err != nil {
				t.Fatalf("write %d: %v", i, err)
			}
		}
	}
	insert(0, 10)
	before := f.primary(t)
	if err := client.Database("admin").RunCommand(ctx, bson.D{{Key: "replSetStepDown", Value: 60}}).Err(); err != nil {
		t.Fatal(err)
	}
	insert(10, 20)
	primary := f.primary(t)
	if primary == before {
		t.Fatalf("member %d stepped down, and is primary", before)
	}
	if err := f.Kill(primary); err != nil {
		t.Fatal(err)
	}
	insert(20, 30)
	n, err := coll.CountDocuments(ctx, bson.D{{Key: "n", Value: 1}})
	if err != nil || n != 30 {
		t.Errorf("%d documents of 30 were changed once, %v", n, err)
	}
	got := dialled()
	slices.Sort(got)
	want := slices.Sorted(slices.Values(f.links))
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("the driver knows %v, and the links are %v", got, want)
	}
}

// What members are called need not be where they are reached: they are asked.
func TestMembers_NamesThatAreNoAddresses(t *testing.T) {
	o := mongod.SetOptions{Members: []mongod.MemberOptions{{Host: "mongo-a.internal:27017"}}}
	f := newFronted(t, "", "", o)
	client, dialled := dialledBy(t, f.URI(f.links[0]))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := client.Ping(ctx, readpref.Primary()); err != nil {
		t.Fatal(err)
	}
	if got := dialled(); len(got) != 1 || got[0] != f.links[0] {
		t.Errorf("the driver knows %v, and the link is %v", got, f.links)
	}
}

// One link in front of a set: the first hello says what will happen.
func TestMembers_OneLinkSaysThatDriversWillLeave(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	set, err := mongod.StartSet(ctx, mongod.SetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	r := newRig(t, proxy.LinkConfig{Upstream: set.Members()[0].Addr()})
	client, _ := dialledBy(t, "mongodb://"+r.addr()+"/?directConnection=true")
	if err := client.Ping(ctx, readpref.Primary()); err != nil {
		t.Fatal(err)
	}
	soon(t, "the warning", func() bool {
		return strings.Contains(r.log.String(), "drivers will bypass this proxy: use directConnection=true or --upstream mongodb://...?replicaSet=rs0")
	})
}
