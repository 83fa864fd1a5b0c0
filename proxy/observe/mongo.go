// Package observe asks servers what their clients' bytes don't say. It has
// connections of its own, beside the proxy's, and changes nothing. The roles
// clusterMonitor of MongoDB and pg_monitor of PostgreSQL are enough.
//
//	replica set  <--- every few seconds -----  Set.Watch      --- who is in it --------->  the tracer
//	primary      <--- while commits pass ----  Primary.Watch  --- for whom they wait --->  the tracer
//	each server  <--- every second ----------  Sampler.Watch  --- what it does --------->  the tracer
package observe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/wirewait/wirewait/trace"
)

// Set is a MongoDB replica set to be asked.
type Set struct {
	// Name is the cluster's, for logs and for members that the file doesn't have.
	Name string
	// URI of one member, which may hold a password. Only that one is dialled: the
	// set's own addresses may lead through the proxy.
	URI string
	// Members are the file's, to find the configuration's by their addresses, or
	// else by their ids.
	Members []Member
	// Every is the time between questions; 0: 5 s.
	Every time.Duration
	Log   *slog.Logger
}

// Member is one that the file has.
type Member struct {
	Name  string   // as links call it ("rs0.a")
	ID    int      // that it has, as far as the file knows
	Hosts []string // by which the set may know it
}

const askTimeout = 10 * time.Second

// Watch asks until ctx ends, and calls found with the first answer and with each
// that differs from the one before. It logs when a member can't be asked, once
// until it can again. The error is for a URI that is none.
func (s *Set) Watch(ctx context.Context, found func(*trace.ReplicaSet)) error {
	client, err := connectMongo("cluster "+s.Name, s.URI, "")
	if err != nil {
		return err
	}
	defer disconnect(client)
	every := s.Every
	if every <= 0 {
		every = 5 * time.Second
	}
	next := time.NewTicker(every)
	defer next.Stop()
	last, failing := "", false
	for {
		set, err := s.ask(ctx, client)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			if failing = false; fmt.Sprint(*set) != last {
				last = fmt.Sprint(*set)
				found(set)
			}
		case !failing:
			failing = true
			s.Log.Warn("can't ask a replica set: what was last known of it stays", "cluster", s.Name, "error", err)
		}
		select {
		case <-next.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// configReply is replSetGetConfig's
// (https://www.mongodb.com/docs/manual/reference/replica-configuration/).
type configReply struct {
	Config struct {
		Version int64          `bson:"version"`
		Members []configMember `bson:"members"`
		// Missing before 3.4, and then as if false.
		MajorityJournal *bool `bson:"writeConcernMajorityJournalDefault"`
		Settings        struct {
			Modes map[string]map[string]int `bson:"getLastErrorModes"`
		} `bson:"settings"`
	} `bson:"config"`
}

type configMember struct {
	ID      int               `bson:"_id"`
	Host    string            `bson:"host"`
	Arbiter bool              `bson:"arbiterOnly"`
	Votes   *int              `bson:"votes"`
	Tags    map[string]string `bson:"tags"`
}

// defaultsReply is getDefaultRWConcern's. Without a default that somebody set the
// server has the implicit one, and says which.
type defaultsReply struct {
	Write struct {
		W any   `bson:"w"`
		J *bool `bson:"j"`
	} `bson:"defaultWriteConcern"`
}

func (s *Set) ask(ctx context.Context, client *mongo.Client) (*trace.ReplicaSet, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	admin := client.Database("admin")
	var config configReply
	if err := admin.RunCommand(ctx, bson.D{{Key: "replSetGetConfig", Value: 1}}).Decode(&config); err != nil {
		return nil, fmt.Errorf("replSetGetConfig: %w", err)
	}
	if len(config.Config.Members) == 0 {
		return nil, errors.New("replSetGetConfig: the set has no members")
	}
	set := &trace.ReplicaSet{
		Observed: true, Version: config.Config.Version,
		Modes:           config.Config.Settings.Modes,
		MajorityWritten: config.Config.MajorityJournal != nil && !*config.Config.MajorityJournal,
	}
	for _, m := range config.Config.Members {
		set.Members = append(set.Members, s.member(m))
	}
	var defaults defaultsReply
	err := admin.RunCommand(ctx, bson.D{{Key: "getDefaultRWConcern", Value: 1}}).Decode(&defaults)
	_, refused := refusal(err)
	switch {
	case err == nil:
		set.DefaultW, set.DefaultJ = concern(defaults.Write.W), boolean(defaults.Write.J)
	case refused: // before 4.4, or not allowed: the implicit one, then
		set.Observed = false
	default:
		return nil, fmt.Errorf("getDefaultRWConcern: %w", err)
	}
	return set, nil
}

// concern is a default's w. A set that has none, neither one that somebody set nor
// majority by itself, has w: 1 (src/mongo/db/read_write_concern_defaults.cpp).
func concern(w any) string {
	switch w := w.(type) {
	case nil:
		return "1"
	case string:
		return w
	case int32:
		return strconv.Itoa(int(w))
	case int64:
		return strconv.FormatInt(w, 10)
	case float64:
		return strconv.Itoa(int(w))
	}
	return "{...}" // of tags
}

func boolean(b *bool) string {
	if b == nil {
		return ""
	}
	return strconv.FormatBool(*b)
}

// member is one of the configuration, by the name that the file has for it.
func (s *Set) member(m configMember) trace.SetMember {
	found := trace.SetMember{ID: m.ID, Votes: 1, Arbiter: m.Arbiter, Tags: m.Tags, Name: s.nameOf(m, s.Name+"."+strconv.Itoa(m.ID))}
	if m.Votes != nil {
		found.Votes = *m.Votes
	}
	return found
}

// nameOf is the name that the file has for one of the configuration's members,
// by its address, or else by its id; otherwise if it has none.
func (s *Set) nameOf(m configMember, otherwise string) string {
	for _, known := range s.Members {
		for _, h := range known.Hosts {
			if strings.EqualFold(h, m.Host) {
				return known.Name
			}
		}
	}
	for _, known := range s.Members {
		if known.ID == m.ID {
			return known.Name
		}
	}
	return otherwise
}
