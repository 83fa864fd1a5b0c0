package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// Secondary is a member that isn't primary, and a client that asks it alone:
// past all links.
type Secondary struct {
	Name   string // the lab's, or host:port
	Client *mongo.Client
}

// Has reports whether the member shows a document of Writes.
func (s *Secondary) Has(ctx context.Context, id any) (bool, error) {
	n, err := s.Client.Database(Database).Collection(Collection).CountDocuments(ctx, bson.D{{Key: "_id", Value: id}})
	if err != nil {
		return false, fmt.Errorf("read from %s: %w", s.Name, err)
	}
	return n > 0, nil
}

// hello is what the primary says of its set; all is empty if it's in none.
type hello struct {
	Me    string   `bson:"me"`
	Hosts []string `bson:"hosts"`
	// Passives are those that never become primary.
	Passives []string `bson:"passives"`
}

func (m *Mongo) hello(ctx context.Context) (*hello, error) {
	var h hello
	if err := m.Client.Database("admin").RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&h); err != nil {
		return nil, fmt.Errorf("ask the primary for its set: %w", err)
	}
	return &h, nil
}

// Secondaries connects to each of them, as the primary's hello names them.
func (m *Mongo) Secondaries(ctx context.Context) (all []*Secondary, err error) {
	hello, err := m.hello(ctx)
	if err != nil {
		return nil, err
	}
	for _, host := range append(hello.Hosts, hello.Passives...) {
		if host == hello.Me {
			continue
		}
		o := options.Client().ApplyURI(m.uri).SetHosts([]string{host}).SetDirect(true).SetAppName("wirewait example")
		o.ReplicaSet = nil
		client, err := mongo.Connect(o)
		if err != nil {
			return nil, fmt.Errorf("connect to %s: %w", host, err)
		}
		m.more = append(m.more, client)
		all = append(all, &Secondary{Name: m.name(host), Client: client})
	}
	return all, nil
}

// name is the lab's for a host.
func (m *Mongo) name(host string) string {
	if m.Lab != nil {
		for _, member := range m.Lab.Members() {
			if member.Host() == host {
				return member.Name()
			}
		}
	}
	return host
}

// Voters are the members whose word counts for majority.
type Voters struct {
	// Votes of all members, whether they are there or not.
	Votes int
	// Delays are the secondaryDelaySecs of the secondaries that vote, hold data and
	// are there, by name.
	Delays map[string]time.Duration
}

// Majority is how long a write with w: majority waits for the members' delays
// alone. Not ok: it waits for ever, since too few are there.
func (v *Voters) Majority() (d time.Duration, ok bool) {
	waits := slices.Sorted(maps.Values(v.Delays))
	others := v.Votes/2 + 1 - 1 // the primary is one of the majority
	switch {
	case others == 0:
		return 0, true
	case others > len(waits):
		return 0, false
	}
	return waits[others-1], true
}

// Voters asks the primary for them.
func (m *Mongo) Voters(ctx context.Context) (*Voters, error) {
	admin := m.Client.Database("admin")
	var reply struct {
		Config struct {
			Members []struct {
				Host    string `bson:"host"`
				Votes   int    `bson:"votes"`
				Arbiter bool   `bson:"arbiterOnly"`
				Delay   int64  `bson:"secondaryDelaySecs"`
				Older   int64  `bson:"slaveDelay"` // before 5.0
			} `bson:"members"`
		} `bson:"config"`
	}
	if err := admin.RunCommand(ctx, bson.D{{Key: "replSetGetConfig", Value: 1}}).Decode(&reply); err != nil {
		return nil, fmt.Errorf("ask for the set's configuration (it takes the role clusterMonitor): %w", err)
	}
	var status struct {
		Members []struct {
			Name  string `bson:"name"`
			State int    `bson:"state"`
		} `bson:"members"`
	}
	if err := admin.RunCommand(ctx, bson.D{{Key: "replSetGetStatus", Value: 1}}).Decode(&status); err != nil {
		return nil, fmt.Errorf("ask for the members' states: %w", err)
	}
	const secondary = 2
	states := map[string]int{}
	for _, s := range status.Members {
		states[s.Name] = s.State
	}
	v := &Voters{Delays: map[string]time.Duration{}}
	for _, c := range reply.Config.Members {
		v.Votes += c.Votes
		if c.Votes > 0 && !c.Arbiter && states[c.Host] == secondary {
			v.Delays[m.name(c.Host)] = time.Duration(c.Delay+c.Older) * time.Second
		}
	}
	return v, nil
}
