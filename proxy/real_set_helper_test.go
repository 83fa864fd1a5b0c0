//go:build unix

package proxy_test

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/internal/lab/mongod"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// setRig is a replica set of which the application and the members reach each
// member through links: a in the application's place, c nearer to it than b.
//
//	app, a --- 92 ms --- c
//	  |                  |
//	  160 ms             240 ms
//	  |                  |
//	  b -----------------+
type setRig struct {
	set    *mongod.Set // nil: real ones
	proxy  *proxy.Proxy
	tracer *trace.Tracer

	gathered[judgedWrite]
	measured map[mongod.OpTime]time.Duration // by the client; guarded by mu
}

var setRTTs = map[string]time.Duration{
	"ab": 160 * time.Millisecond, "ac": 92 * time.Millisecond, "bc": 240 * time.Millisecond,
}

const setMembers = "abc"

// setOptions say how members are told apart: by what they call themselves in
// their first message, by the address that they dial from, or by a listener for
// each pair.
type setOptions struct {
	noHostInfo, pairs bool
	jitter            time.Duration
	mongod            string // a program: members are real
	driver            string // of the proxy; empty: the system's best
	discovered        bool   // applications find the other links by hello
	election          time.Duration
}

// judgedWrite is what was said of one write.
type judgedWrite struct {
	at           mongod.OpTime
	concern      string
	by, basis    string
	replication  time.Duration // as divided
	seen         time.Duration // began to released
	total, parts time.Duration
	journal      time.Duration
	released     time.Time
	began        time.Time
	late         time.Duration // the reply, after the release
	acknowledged []trace.MemberWait
	behind       []string
}

// Consume implements trace.Consumer.
func (r *setRig) Consume(f *trace.Finished) {
	if !f.Write || f.Conn.From != "app" || f.Collection != "orders" {
		return
	}
	o, p, w := f.Mongo.OpTime, &f.Replication, &f.Waits
	r.add(judgedWrite{
		at:      mongod.OpTime{TS: bson.Timestamp{T: uint32(o.TS >> 32), I: uint32(o.TS)}, T: o.T},
		concern: f.Concern(), by: p.ReleasedBy, basis: p.Basis, replication: w.Replication, seen: p.Released.Sub(p.Began),
		total: w.Total, parts: w.Receive + w.Request + w.Server + w.Replication + w.Reply, journal: p.Journal,
		began: f.Conn.Time(p.Began), released: f.Conn.Time(p.Released), late: f.Sides[wire.ToClient].LastIn.Sub(p.Released),
		acknowledged: slices.Clone(p.Acknowledged), behind: slices.Clone(p.Behind),
	})
}

// releases are the primary's own records of the waits that have ended, by write.
func (r *setRig) releases() map[mongod.OpTime]mongod.Release {
	truth := map[mongod.OpTime]mongod.Release{}
	for _, rel := range r.set.Member("a").Truth().Releases {
		truth[rel.OpTime] = rel
	}
	return truth
}

func setDelay(a, b byte, jitter time.Duration) (s inject.Settings) {
	if a == b {
		return s
	}
	for dir := range s.Delay {
		s.Delay[dir] = inject.Delay{Base: setRTTs[string([]byte{min(a, b), max(a, b)})] / 2, Jitter: jitter}
	}
	return s
}

func memberName(m byte) string { return "rs0." + string(m) }

func newSetRig(t *testing.T, o setOptions) *setRig {
	t.Helper()
	r := &setRig{}
	r.tracer = trace.New(1<<16, r)
	t.Cleanup(r.tracer.Close)
	upstream, err := mongod.ReservePorts(len(setMembers))
	if err != nil {
		t.Fatal(err)
	}
	front, err := mongod.ReservePorts(len(setMembers))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(front.Close)
	config := proxy.Config{Tracer: r.tracer, Seed: 7, Driver: o.driver}
	labOptions := mongod.SetOptions{Ports: upstream, NoHostInfo: o.noHostInfo, Record: true, ElectionTimeout: cmp.Or(o.election, 5*time.Minute)}
	set := ""
	if o.discovered {
		set = "rs0"
	}
	labOptions.Modes = map[string]map[string]int{"bothSides": {"side": 2}}
	rules := &trace.ReplicaSet{Modes: labOptions.Modes}
	for i, m := range []byte(setMembers) {
		to := proxy.LinkConfig{Name: "members-" + string(m), To: memberName(m), Listen: front.Addr(i), Upstream: upstream.Addr(i), Protocol: wire.MongoDB}
		to.Sources = setSources(m, front, o)
		config.Links = append(config.Links, to, proxy.LinkConfig{
			Name: "app-" + string(m), From: "app", To: memberName(m), Listen: "127.0.0.1:0", Upstream: upstream.Addr(i), Protocol: wire.MongoDB,
			Delay: setDelay('a', m, 0), Set: set, Hosts: []string{front.Addr(i)},
		})
		for j, from := range []byte(setMembers) {
			if o.pairs && j != i {
				config.Links = append(config.Links, proxy.LinkConfig{
					Name: string([]byte{from, m}), From: memberName(from), To: memberName(m), Listen: "127.0.0.1:0", Upstream: upstream.Addr(i),
					Protocol: wire.MongoDB, Delay: setDelay(from, m, o.jitter),
				})
			}
		}
		side := map[string]string{"side": map[byte]string{'a': "east", 'b': "west", 'c': "east"}[m]}
		member := mongod.MemberOptions{Host: front.Addr(i), Tags: side}
		if o.noHostInfo && !o.pairs {
			member.From = fmt.Sprintf("127.0.0.%d", 2+i)
		}
		labOptions.Members = append(labOptions.Members, member)
		rules.Members = append(rules.Members, trace.SetMember{Name: memberName(m), ID: i, Votes: 1, Tags: side})
	}
	for _, m := range rules.Members {
		r.tracer.SetRule(m.Name, rules.From(m.Name))
	}
	if r.proxy, err = proxy.Start(context.Background(), config); err != nil {
		t.Fatal(err)
	}
	if o.pairs {
		labOptions.DialPair = func(from, to int) string { return r.addr(string([]byte{setMembers[from], setMembers[to]})) }
	}
	t.Cleanup(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		_ = r.proxy.Shutdown(now)
	})
	r.set, _ = startMembers(t, o.mongod, labOptions).(*mongod.Set)
	r.settle(t)
	return r
}

// startMembers starts a set in this process, or the same of real servers if there
// is a program for it.
func startMembers(t *testing.T, program string, o mongod.SetOptions) lab.MongoMembers {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var set lab.MongoMembers
	var err error
	if program == "" {
		set, err = mongod.StartSet(ctx, o)
	} else {
		real := lab.MongodSetOptions{Program: program, Ports: o.Ports, Modes: o.Modes}
		if real.Ports == nil {
			if real.Ports, err = mongod.ReservePorts(len(setMembers)); err != nil {
				t.Fatal(err)
			}
		}
		for _, m := range o.Members {
			real.Hosts, real.Tags = append(real.Hosts, m.Host), append(real.Tags, m.Tags)
		}
		set, err = lab.StartMongodSet(ctx, real)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	return set
}

// setSources are the members that dial one of them by its only address.
func setSources(to byte, front *mongod.Ports, o setOptions) (list []proxy.Source) {
	for i, from := range []byte(setMembers) {
		s := proxy.Source{Name: memberName(from), Delay: setDelay(from, to, o.jitter), Names: []string{front.Addr(i)}}
		if o.noHostInfo {
			s.Addresses = []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("127.0.0.%d/32", 2+i))}
		}
		list = append(list, s)
	}
	return list
}

func (r *setRig) addr(link string) string { return r.proxy.Link(link).Addr().String() }

// settle waits until both secondaries follow the primary and all know who is who.
func (r *setRig) settle(t *testing.T) {
	t.Helper()
	orders := r.orders(t, 1)[0]
	three := &writeconcern.WriteConcern{W: 3}
	if _, err := orders(three).InsertOne(t.Context(), bson.D{}); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		if _, err := orders(three).InsertOne(t.Context(), bson.D{}); err != nil {
			t.Fatal(err)
		}
		r.mu.Lock()
		known := len(r.seen) > 0 && r.seen[len(r.seen)-1].by != ""
		r.mu.Unlock()
		if known {
			time.Sleep(300 * time.Millisecond) // what is still to be judged
			r.mu.Lock()
			r.seen = nil
			r.mu.Unlock()
			return
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t.Fatalf("no write was attributed within a minute: %+v", r.seen)
}

// measure keeps how long a write took its client.
func (r *setRig) measure(_ context.Context, e *event.CommandSucceededEvent) {
	var at mongod.OpTime
	if e.CommandName != "insert" || e.Reply.Lookup("opTime").Unmarshal(&at) != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.measured == nil {
		r.measured = map[mongod.OpTime]time.Duration{}
	}
	r.measured[at] = e.Duration
}

type ordersOf func(*writeconcern.WriteConcern) *mongo.Collection

// orders are n clients' collection, by the application's link to a.
func (r *setRig) orders(t *testing.T, n int) (list []ordersOf) {
	t.Helper()
	for range n {
		client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + r.addr("app-a") + "/?directConnection=true&heartbeatFrequencyMS=500").
			SetServerSelectionTimeout(30 * time.Second).SetMonitor(&event.CommandMonitor{Succeeded: r.measure}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
		list = append(list, func(wc *writeconcern.WriteConcern) *mongo.Collection {
			return client.Database("shop").Collection("orders", options.Collection().SetWriteConcern(wc))
		})
	}
	return list
}

// write has each client make writes, one after the other, of concerns in turn.
func (r *setRig) write(t *testing.T, clients []ordersOf, each int, concerns ...*writeconcern.WriteConcern) {
	t.Helper()
	errs := make(chan error, len(clients))
	for n, orders := range clients {
		go func() {
			for i := range each {
				if _, err := orders(concerns[(n+i)%len(concerns)]).InsertOne(t.Context(), bson.D{{Key: "n", Value: i}}); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range clients {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
}
