// Command mongodb-checkpoint shows journalled writes at a steady rate while
// MongoDB's checkpoints come and go.
package main

import (
	"context"
	"errors"
	"flag"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/wirewait/wirewait/internal/lab/mongod"
	"github.com/wirewait/wirewait/internal/study"
	"github.com/wirewait/wirewait/internal/study/cluster"
)

func main() {
	var watch time.Duration
	study.Experiment{
		Name: "mongodb-checkpoint",
		About: "Inserts with w: 1, j: true at a steady rate: their latency over time with the checkpoints\n" +
			"marked, and what the journal does meanwhile.",
		URI: "connection `string` of a real server; its database " + cluster.Database + " is dropped (default: a model of mongod)",
		Flags: func(f *flag.FlagSet) {
			f.DurationVar(&watch, "for", 3*time.Minute, "how long to write to a real server, whose checkpoints come every minute")
		},
		Do: func(ctx context.Context, r *study.Run) error { return run(ctx, r, watch) },
	}.Main()
}

// checkpointStudy is one run.
type checkpointStudy struct {
	*study.Run
	rate   float64 // inserts a second
	length time.Duration
	every  time.Duration

	writes []study.Timed
	server *cluster.Watch
}

func run(ctx context.Context, r *study.Run, watch time.Duration) (err error) {
	s := &checkpointStudy{Run: r, rate: 200, length: 90 * time.Second, every: time.Second}
	engine := mongod.Engine{CheckpointEvery: 20 * time.Second, CheckpointLasts: 5 * time.Second, CheckpointSync: 10 * time.Millisecond}
	if r.Quick {
		s.length, s.every, watch = 3*time.Second, 100*time.Millisecond, time.Second
		engine = mongod.Engine{CheckpointEvery: 500 * time.Millisecond, CheckpointLasts: 500 * time.Millisecond, CheckpointSync: 10 * time.Millisecond}
	}
	m, err := cluster.StartMongo(ctx, r, []mongod.MemberOptions{{Name: "a"}}, engine)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	if m.Lab == nil {
		s.length = watch
	}
	journalled := true
	writes := m.Writes(&writeconcern.WriteConcern{W: 1, Journal: &journalled})
	insert := func(ctx context.Context, client, _ int) error {
		_, err := writes.InsertOne(ctx, bson.D{{Key: "client", Value: client}, {Key: "text", Value: "a line of a log, or a small order"}})
		return err
	}
	const clients = 8
	if _, err := study.Load(ctx, clients, 100*time.Millisecond, insert); err != nil { // connections are made
		return err
	}
	if s.server, err = m.Watch(ctx, s.Stderr, s.every); err != nil {
		return err
	}
	s.Say("%.0f inserts a second for %v", s.rate, s.length)
	s.writes, err = study.Paced(ctx, clients, s.rate, s.length, insert)
	if err = errors.Join(err, s.server.Stop()); err != nil {
		return err
	}
	return errors.Join(r.Table("", s.table()), r.CSV("timeline", s.timeline()), r.SVG("", s.draw()))
}
