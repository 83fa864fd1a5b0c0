// Command majority-lag shows whom a write concern follows: majority the fastest
// secondary, w: 3 the slowest, w: 1 none.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/wirewait/wirewait/internal/lab/mongod"
	"github.com/wirewait/wirewait/internal/study"
	"github.com/wirewait/wirewait/internal/study/cluster"
)

func main() {
	var watch time.Duration
	study.Experiment{
		Name: "majority-lag",
		About: "Writes with w: 1, majority and w: all, while one secondary lags, the other, and both, by\n" +
			"the network, by the stream of the log and by their disks: how long each write takes, who released it, and whether\n" +
			"a secondary shows it once it's acknowledged.",
		URI: "connection `string` of a real set, which is written to as it is; its database " + cluster.Database + " is dropped (default: a model of three members)",
		Flags: func(f *flag.FlagSet) {
			f.DurationVar(&watch, "for", time.Minute, "how long to write to a real set; make its members lag meanwhile")
		},
		Do: func(ctx context.Context, r *study.Run) error { return run(ctx, r, watch) },
	}.Main()
}

// Ways in which a member can be behind: by the distance to all others, by the
// stream of the log alone (wirewait's lag), and by the time from fetching a write
// until its journal has it.
var kinds = []string{"network", "stream", "disk"}

// phase is a stretch of time in which the lags stay as they are.
type phase struct {
	name, kind string
	b, c       time.Duration
	// from and to are since the start.
	from, to time.Duration
}

// phases for a lag of b and one of c: each kind of lag comes, alone and with the
// other's, and goes.
func phases(b, c time.Duration) []*phase {
	all := []*phase{{name: "none"}}
	for _, kind := range kinds {
		all = append(all,
			&phase{name: "b, " + kind, kind: kind, b: b},
			&phase{name: "c, " + kind, kind: kind, c: c},
			&phase{name: "both, " + kind, kind: kind, b: b, c: c},
			&phase{name: "none after " + kind})
	}
	return all
}

// settle is how long it takes until a write is everywhere and everybody has been
// told, the report behind the one that is under way included.
func (p *phase) settle() time.Duration {
	return 5*time.Millisecond + 2*max(p.b, p.c)
}

// write is what became of one.
type write struct {
	phase, concern int
	at, took       time.Duration // at is since the start
	stale          []bool        // by secondary
}

// lagStudy is one run.
type lagStudy struct {
	*study.Run
	set         *cluster.Mongo
	secondaries []*cluster.Secondary
	concerns    []string
	collections []*mongo.Collection
	begin       time.Time

	phases   []*phase
	writes   []write
	released []map[string]cluster.Released // by phase
}

func run(ctx context.Context, r *study.Run, watch time.Duration) (err error) {
	s := &lagStudy{Run: r}
	if s.set, err = cluster.StartMongo(ctx, r, []mongod.MemberOptions{{Name: "a"}, {Name: "b"}, {Name: "c"}}, mongod.Engine{}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.set.Close()) }()
	if s.secondaries, err = s.set.Secondaries(ctx); err != nil {
		return err
	}
	everybody := len(s.secondaries) + 1
	s.concerns = []string{"1", "majority", fmt.Sprint(everybody)}
	for _, w := range []any{1, "majority", everybody} {
		s.collections = append(s.collections, s.set.Writes(&writeconcern.WriteConcern{W: w}))
	}
	s.begin = time.Now()
	if s.set.Lab == nil {
		err = s.watch(ctx, watch)
	} else {
		err = s.play(ctx)
	}
	if err != nil {
		return err
	}
	if err := r.Table("", s.table()); err != nil {
		return err
	}
	return errors.Join(r.SVG("", s.overTime()), r.SVG("theory", s.againstTheory()))
}

// play goes through the phases on the lab.
func (s *lagStudy) play(ctx context.Context) error {
	rounds, b, c, least := 12, 60*time.Millisecond, 150*time.Millisecond, 100*time.Millisecond
	if s.Quick {
		rounds, b, c, least = 2, 10*time.Millisecond, 25*time.Millisecond, 0
	}
	s.phases = phases(b, c)
	for i, p := range s.phases {
		s.Say("lag: %s", p.name)
		if err := s.apply(p); err != nil {
			return err
		}
		// What was on its way before the change is over when everybody has this.
		if err := s.write(ctx, i, len(s.concerns)-1, false); err != nil {
			return err
		}
		if _, err := s.set.Released(ctx, 1); err != nil {
			return err
		}
		// The stream's lag comes and goes bit by bit, beginning with that write.
		if err := study.Pause(ctx, c+p.settle()); err != nil {
			return err
		}
		p.from = time.Since(s.begin)
		err := study.Rounds(rounds, len(s.concerns), s.Chance(p.name), func(_, concern int) error {
			return errors.Join(s.write(ctx, i, concern, true), study.Pause(ctx, max(least, p.settle())))
		})
		if err != nil {
			return err
		}
		p.to = time.Since(s.begin)
		released, err := s.set.Released(ctx, rounds*len(s.concerns))
		if err != nil {
			return err
		}
		s.released = append(s.released, released)
	}
	return nil
}

// apply makes the members lag as the phase has it, and no longer as the one
// before it had.
func (s *lagStudy) apply(p *phase) error {
	of := func(kind string, d time.Duration) time.Duration {
		if kind == p.kind {
			return d
		}
		return 0
	}
	for name, d := range map[string]time.Duration{"b": p.b, "c": p.c} {
		if err := s.set.Far(name, of("network", d)); err != nil {
			return err
		}
		s.set.Lab.Member(name).SetWriteDelay(of("disk", d))
	}
	return s.set.Lag(map[string]time.Duration{"b": of("stream", p.b), "c": of("stream", p.c)})
}

// watch writes to a real set, whose lags are somebody else's doing.
func (s *lagStudy) watch(ctx context.Context, d time.Duration) error {
	s.phases = []*phase{{name: "as it is"}}
	if s.Quick {
		d = time.Second
	}
	s.Say("writing for %v", d)
	for chance := s.Chance("order"); time.Since(s.begin) < d; {
		err := study.Rounds(1, len(s.concerns), chance, func(_, concern int) error { return s.write(ctx, 0, concern, true) })
		if err != nil {
			return err
		}
	}
	s.phases[0].to = time.Since(s.begin)
	return nil
}

// write makes one, and asks every secondary for it once it's acknowledged.
func (s *lagStudy) write(ctx context.Context, phase, concern int, counts bool) error {
	w := write{phase: phase, concern: concern, at: time.Since(s.begin)}
	start := time.Now()
	id := bson.NewObjectID()
	if _, err := s.collections[concern].InsertOne(ctx, bson.D{{Key: "_id", Value: id}}); err != nil {
		return fmt.Errorf("insert with w: %s: %w", s.concerns[concern], err)
	}
	w.took = time.Since(start)
	for _, m := range s.secondaries {
		has, err := m.Has(ctx, id)
		if err != nil {
			return err
		}
		w.stale = append(w.stale, !has)
	}
	if counts {
		s.writes = append(s.writes, w)
	}
	return nil
}
