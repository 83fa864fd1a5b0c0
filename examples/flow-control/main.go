// Command flow-control shows what a MongoDB primary does when a majority can't
// follow: it slows its writes down, so that the lag stays near its target.
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
		Name: "flow-control",
		About: "Inserts with w: 1 by a few clients, while both secondaries take fewer entries a second\n" +
			"than are written, and after: how many writes a second pass, how far the majority is\n" +
			"behind, and what flow control says of itself.",
		URI: "connection `string` of a real set, which is written to as it is; its database " + cluster.Database + " is dropped (default: a model of three members)",
		Flags: func(f *flag.FlagSet) {
			f.DurationVar(&watch, "for", 2*time.Minute, "how long to write to a real set; make its secondaries slow meanwhile")
		},
		Do: func(ctx context.Context, r *study.Run) error { return run(ctx, r, watch) },
	}.Main()
}

// phase is a stretch of time in which both secondaries take so many entries a
// second; 0: as many as come.
type phase struct {
	name     string
	rate     int
	length   time.Duration
	from, to time.Duration // since the start
}

// flowStudy is one run.
type flowStudy struct {
	*study.Run
	set     *cluster.Mongo
	clients int
	every   time.Duration
	target  time.Duration // flowControlTargetLagSeconds of the lab

	phases []*phase
	writes []study.Timed
	server *cluster.Watch
}

func run(ctx context.Context, r *study.Run, watch time.Duration) (err error) {
	s := &flowStudy{Run: r, clients: 8, every: time.Second, target: 4 * time.Second, phases: []*phase{
		{name: "before", length: 10 * time.Second},
		{name: "both take 250 a second", rate: 250, length: 50 * time.Second},
		{name: "after", length: 20 * time.Second},
	}}
	work := 15 * time.Millisecond
	if r.Quick {
		s.every, s.target, work, watch = 100*time.Millisecond, 200*time.Millisecond, 5*time.Millisecond, time.Second
		s.phases = []*phase{
			{name: "before", length: 500 * time.Millisecond},
			{name: "both take 20 a second", rate: 20, length: 3 * time.Second},
			{name: "after", length: 500 * time.Millisecond},
		}
	}
	members := []mongod.MemberOptions{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	s.set, err = cluster.StartMongo(ctx, r, members, mongod.Engine{FlowControlTarget: s.target, WriteWork: work})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.set.Close()) }()
	if s.set.Lab == nil {
		s.phases = []*phase{{name: "as it is", length: watch}}
	}
	if err := s.play(ctx); err != nil {
		return err
	}
	return errors.Join(r.Table("", s.table()), r.CSV("timeline", s.timeline()), r.SVG("", s.draw()))
}

// play writes through all phases and watches the server meanwhile.
func (s *flowStudy) play(ctx context.Context) (err error) {
	if s.server, err = s.set.Watch(ctx, s.Stderr, s.every); err != nil {
		return err
	}
	all := time.Duration(0)
	for _, p := range s.phases {
		p.from, p.to = all, all+p.length
		all = p.to
	}
	changed := make(chan error, 1)
	changing, stop := context.WithCancel(ctx)
	go func() { changed <- s.change(changing) }()
	writes := s.set.Writes(writeconcern.W1())
	s.writes, err = study.Loop(ctx, s.clients, all, func(ctx context.Context, client, _ int) error {
		_, err := writes.InsertOne(ctx, bson.D{{Key: "client", Value: client}})
		return err
	})
	if err != nil {
		stop() // else it has come to its end by itself
	}
	err = errors.Join(err, <-changed, s.server.Stop())
	stop()
	return err
}

// change makes the secondaries of the lab slow when it's time.
func (s *flowStudy) change(ctx context.Context) error {
	begin := time.Now()
	for _, p := range s.phases {
		if err := study.Pause(ctx, p.from-time.Since(begin)); err != nil {
			return err
		}
		s.Say("%s, for %v", p.name, p.length)
		if s.set.Lab != nil {
			s.set.Lab.Member("b").SetWriteRate(p.rate)
			s.set.Lab.Member("c").SetWriteRate(p.rate)
		}
	}
	return nil
}
