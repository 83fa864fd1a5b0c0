package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/internal/lab/mongod"
	"github.com/wirewait/wirewait/internal/study"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// Mongo is a replica set and a client that writes to its primary.
type Mongo struct {
	// Client of the primary: through the application's link on the lab.
	Client *mongo.Client
	// Lab is the set in this process; nil: the set is a real one, and there are
	// no links.
	Lab *mongod.Set

	uri   string
	begun bool // something may have been written
	links links
	more  []*mongo.Client
}

// set is the lab's name for its set.
const set = "rs0"

// StartMongo connects to the set of r.URI, or starts a lab of members with these
// options and links between them. Close ends it.
func StartMongo(ctx context.Context, r *study.Run, members []mongod.MemberOptions, engine mongod.Engine) (_ *Mongo, err error) {
	m := &Mongo{uri: r.URI}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.Close())
		}
	}()
	if m.uri == "" {
		if err := m.startLab(ctx, r, members, engine); err != nil {
			return nil, err
		}
	}
	if m.Client, err = mongo.Connect(options.Client().ApplyURI(m.uri).SetAppName("wirewait example").SetMaxPoolSize(0).SetMaxConnecting(16)); err != nil { // which may quote the URI
		return nil, errors.New("--uri can't be used: write mongodb://USER:PASSWORD@HOST:PORT,.../?replicaSet=NAME")
	}
	// What an earlier run left, if it was killed, would be in the way.
	if err := m.Client.Database(Database).Drop(ctx); err != nil {
		return nil, fmt.Errorf("begin with an empty database %s: %w", Database, err)
	}
	m.begun = true
	return m, nil
}

// startLab opens a link for each pair and one for the application, then the set.
func (m *Mongo) startLab(ctx context.Context, r *study.Run, members []mongod.MemberOptions, engine mongod.Engine) error {
	ports, err := mongod.ReservePorts(len(members))
	if err != nil {
		return err
	}
	rules := &trace.ReplicaSet{}
	link := func(from, to string, i int) proxy.LinkConfig {
		return proxy.LinkConfig{Name: linkName(from, to), From: from, To: full(to), Listen: "127.0.0.1:0", Upstream: ports.Addr(i), Protocol: wire.MongoDB}
	}
	list := []proxy.LinkConfig{link(app, members[0].Name, 0)}
	for i, to := range members {
		rules.Members = append(rules.Members, trace.SetMember{Name: full(to.Name), ID: i, Votes: 1})
		for _, from := range members {
			if from.Name != to.Name {
				pair := link(from.Name, to.Name, i)
				pair.From = full(from.Name)
				list = append(list, pair)
			}
		}
	}
	if err := m.links.open(list, r.Seed); err != nil {
		ports.Close()
		return err
	}
	primary := members[0].Name
	m.links.tracer.SetRule(full(primary), rules.From(full(primary)))
	m.Lab, err = mongod.StartSet(ctx, mongod.SetOptions{
		Name: set, Members: members, Ports: ports, NoChaining: true, Engine: engine,
		DialPair: func(from, to int) string { return m.links.addr(linkName(members[from].Name, members[to].Name)) },
	})
	m.uri = "mongodb://" + m.links.addr(linkName(app, primary)) + "/?directConnection=true"
	return err
}

func full(member string) string { return set + "." + member }

// Close drops what was written, where that is not the lab's, and ends
// everything: the set first, then the links.
func (m *Mongo) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	var errs []error
	for _, c := range m.more {
		errs = append(errs, c.Disconnect(ctx))
	}
	if m.Client != nil {
		if m.Lab == nil && m.begun {
			errs = append(errs, m.Client.Database(Database).Drop(ctx))
		}
		errs = append(errs, m.Client.Disconnect(ctx))
	}
	if m.Lab != nil {
		errs = append(errs, m.Lab.Close())
	}
	return errors.Join(append(errs, m.links.close())...)
}

// Writes is the collection to write to, with a write concern.
func (m *Mongo) Writes(w *writeconcern.WriteConcern) *mongo.Collection {
	return m.Client.Database(Database).Collection(Collection, options.Collection().SetWriteConcern(w))
}

// Far puts a member of the lab so far away from all others, by round trip.
func (m *Mongo) Far(member string, rtt time.Duration) error { return m.links.far(full(member), rtt) }

// Lag puts members of the lab behind by so much of the primary's log, and by
// nothing else: a rule of wirewait's (see docs/rules.md). It's reached, and left,
// at a second a second.
func (m *Mongo) Lag(members map[string]time.Duration) error {
	var rules []inject.Rule
	for name, d := range members {
		if d > 0 {
			rules = append(rules, inject.Rule{
				Name: name + "-lags", When: inject.When{From: []string{full(name)}}, Effect: inject.EffectLag,
				With: inject.With{Delay: d, Ramp: 1},
			})
		}
	}
	return m.links.proxy.SetRules(rules)
}

// Released waits until the last n writes have been judged and says who released
// them, by write concern ("1", "majority", "3"). Nil on a real set.
func (m *Mongo) Released(ctx context.Context, n int) (map[string]Released, error) {
	if m.Lab == nil {
		return nil, nil
	}
	return m.links.judge.take(ctx, n)
}

// Status is the primary's serverStatus.
func (m *Mongo) Status(ctx context.Context) (bson.Raw, error) {
	raw, err := m.Client.Database("admin").RunCommand(ctx, bson.D{{Key: "serverStatus", Value: 1}}).Raw()
	if err != nil {
		return nil, fmt.Errorf("ask for serverStatus (it takes the role clusterMonitor): %w", err)
	}
	return raw, nil
}

// number reads a number of any type; 0 where there is none.
func number(raw bson.Raw, path ...string) int64 {
	v, err := raw.LookupErr(path...)
	if err != nil {
		return 0
	}
	n, _ := v.AsInt64OK()
	return n
}

// JournalSyncs are a server's syncs of its journal so far, and the time that
// they took. Not ok: it doesn't say.
func JournalSyncs(status bson.Raw) (n int64, took time.Duration, ok bool) {
	const syncs = "log sync operations"
	if _, err := status.LookupErr("wiredTiger", "log", syncs); err != nil {
		return 0, 0, false
	}
	return number(status, "wiredTiger", "log", syncs),
		time.Duration(number(status, "wiredTiger", "log", "log sync time duration (usecs)")) * time.Microsecond, true
}
