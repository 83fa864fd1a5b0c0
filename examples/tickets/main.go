// Command tickets shows what MongoDB's execution tickets do: with more
// operations than tickets, all wait in turn.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/wirewait/wirewait/internal/lab/mongod"
	"github.com/wirewait/wirewait/internal/study"
	"github.com/wirewait/wirewait/internal/study/cluster"
	"github.com/wirewait/wirewait/trace"
)

func main() {
	study.Experiment{
		Name: "tickets",
		About: "Reads that hold a ticket each for a while, by more and more clients: how long they take\n" +
			"against clients / tickets × hold; what maxTimeMS does to the queue; and updates of one\n" +
			"document against updates of many.",
		URI: "connection `string` of a real server, whose number of tickets stays as it is; its database " + cluster.Database + " is dropped (default: a model of mongod with 32)",
		Do:  run,
	}.Main()
}

// ticketStudy is one run.
type ticketStudy struct {
	*study.Run
	set     *cluster.Mongo
	tickets int           // for reads; 0: the server doesn't say
	hold    time.Duration // of each read
	length  time.Duration // of each measurement
	clients []int
	limited int // how many clients have maxTimeMS
	writers int

	queues    []*queued
	limits    []*limit
	documents []*document
}

func run(ctx context.Context, r *study.Run) (err error) {
	s := &ticketStudy{Run: r, hold: 50 * time.Millisecond, length: 10 * time.Second, clients: []int{8, 32, 128, 500}, limited: 128, writers: 32}
	engine := mongod.Engine{Tickets: 32, WriteWork: 5 * time.Millisecond}
	if r.Quick {
		s.length, s.hold, s.clients, s.limited = 250*time.Millisecond, 20*time.Millisecond, []int{4, 16, 64}, 64
		engine.Tickets = 8
	}
	if s.set, err = cluster.StartMongo(ctx, r, []mongod.MemberOptions{{Name: "a"}}, engine); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.set.Close()) }()
	if err := s.begin(ctx); err != nil {
		return err
	}
	for _, part := range []func(context.Context) error{s.measureQueues, s.measureLimits, s.measureDocuments} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return errors.Join(r.Table("", s.queueTable()), r.Table("limit", s.limitTable()), r.Table("document", s.documentTable()), r.SVG("", s.draw()))
}

// held is the document that reads find, one each time.
const held = "held"

// begin makes the documents, opens connections for all, and asks for tickets.
func (s *ticketStudy) begin(ctx context.Context) error {
	documents := []any{bson.D{{Key: "_id", Value: held}}}
	for i := range s.writers {
		documents = append(documents, bson.D{{Key: "_id", Value: i}})
	}
	if _, err := s.writes().InsertMany(ctx, documents); err != nil {
		return err
	}
	most := s.clients[len(s.clients)-1]
	if _, err := study.Load(ctx, most, s.length/10, func(ctx context.Context, _, _ int) error { return s.read(ctx, 0) }); err != nil {
		return err
	}
	w, err := s.set.Watch(ctx, s.Stderr, s.every())
	if err != nil {
		return err
	}
	err = errors.Join(study.Pause(ctx, 3*s.every()), w.Stop())
	n, _ := w.Most(trace.ReadTickets)
	s.tickets = int(n)
	s.Say("%d tickets for reads, held for %v each", s.tickets, s.hold)
	return err
}

// every is how often the server is asked what it does.
func (s *ticketStudy) every() time.Duration { return max(s.length/20, 50*time.Millisecond) }

func (s *ticketStudy) writes() *mongo.Collection { return s.set.Writes(writeconcern.W1()) }

// maxTimeExpired is MaxTimeMSExpired.
const maxTimeExpired = 50

// read holds a ticket for the time of s.hold. With a limit it may fail with
// maxTimeExpired. It's a plain command, as the driver's own limit would be of the
// client's patience, too.
func (s *ticketStudy) read(ctx context.Context, limit time.Duration) error {
	find := bson.D{
		{Key: "find", Value: cluster.Collection},
		{Key: "filter", Value: bson.D{{Key: "_id", Value: held}, {Key: "$where", Value: fmt.Sprintf("sleep(%d) || true", s.hold.Milliseconds())}}},
	}
	if limit > 0 {
		find = append(find, bson.E{Key: "maxTimeMS", Value: limit.Milliseconds()})
	}
	return s.set.Client.Database(cluster.Database).RunCommand(ctx, find).Err()
}

// watched does something while the server is asked what it does.
func (s *ticketStudy) watched(ctx context.Context, do func() error) (*cluster.Watch, error) {
	w, err := s.set.Watch(ctx, s.Stderr, s.every())
	if err != nil {
		return nil, err
	}
	err = do()
	return w, errors.Join(err, w.Stop())
}
