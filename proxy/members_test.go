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

	"github.com/wirewait/wirewait/internal/lab/mongod"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/wire"
)

// fronted is a replica set in a proxy's back: an application's link to each
// member.
type fronted struct {
	*mongod.Set
	proxy *proxy.Proxy
	links []string // addresses
}

func newFronted(t *testing.T, driver string, o mongod.SetOptions) *fronted {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	set, err := mongod.StartSet(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	f := &fronted{Set: set}
	var links []proxy.LinkConfig
	for _, m := range set.Members() {
		links = append(links, proxy.LinkConfig{
			Name: "app-rs0." + m.Name(), From: "app", To: "rs0." + m.Name(), Set: "rs0",
			Listen: "127.0.0.1:0", Upstream: m.Addr(), Protocol: wire.MongoDB,
		})
	}
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
		f := newFronted(t, driver, mongod.SetOptions{HeartbeatInterval: 100 * time.Millisecond, ElectionTimeout: time.Second})
		client, dialled := dialledBy(t, f.URI(f.links[1])+"&retryWrites=true&heartbeatFrequencyMS=500")
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		coll := client.Database("shop").Collection("orders", options.Collection().SetWriteConcern(writeconcern.Majority()))
		insert := func(from, to int) {
			t.Helper()
			for i := from; i < to; i++ {
				if _, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: i}}); err != nil {
					t.Fatalf("insert %d: %v", i, err)
				}
			}
		}
		insert(0, 10)
		before := f.Primary()
		if err := client.Database("admin").RunCommand(ctx, bson.D{{Key: "replSetStepDown", Value: 60}}).Err(); err != nil {
			t.Fatal(err)
		}
		insert(10, 20)
		primary, err := f.AwaitPrimary(ctx)
		if err != nil || primary == before {
			t.Fatalf("%v stepped down, and %v is primary: %v", before, primary, err)
		}
		if err := primary.Kill(); err != nil {
			t.Fatal(err)
		}
		insert(20, 30)
		n, err := coll.CountDocuments(ctx, bson.D{})
		if err != nil || n != 30 {
			t.Errorf("%d documents of 30, %v", n, err)
		}
		got := dialled()
		slices.Sort(got)
		want := slices.Sorted(slices.Values(f.links))
		if got = slices.Compact(got); !slices.Equal(got, want) {
			t.Errorf("the driver knows %v, and the links are %v", got, want)
		}
	})
}

// What members are called need not be where they are reached: they are asked.
func TestMembers_NamesThatAreNoAddresses(t *testing.T) {
	o := mongod.SetOptions{Members: []mongod.MemberOptions{{Host: "mongo-a.internal:27017"}}}
	f := newFronted(t, "", o)
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
