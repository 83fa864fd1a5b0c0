// Command journal-group-commit measures what j: true costs, and what it doesn't:
// all who wait for the journal at a time share its next sync.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/wirewait/wirewait/internal/chart"
	"github.com/wirewait/wirewait/internal/lab/mongod"
	"github.com/wirewait/wirewait/internal/study"
	"github.com/wirewait/wirewait/internal/study/cluster"
)

func main() {
	study.Experiment{
		Name: "journal-group-commit",
		About: "Inserts with w: 1 and with w: 1, j: true, by 1, 4, 16 and 64 clients at once: how many\n" +
			"writes a second, how long each takes, and how many share a sync of the journal.",
		URI: "connection `string` of a real server; its database " + cluster.Database + " is dropped (default: a model of mongod)",
		Do:  run,
	}.Main()
}

// setting is one of the things compared, with what its rounds found.
type setting struct {
	concern *writeconcern.WriteConcern
	name    string
	clients int

	rate, p50, p95, perSync, syncTime []float64
}

func settings() (all []*setting) {
	journalled := true
	for _, clients := range []int{1, 4, 16, 64} {
		all = append(all,
			&setting{concern: writeconcern.W1(), name: "w:1", clients: clients},
			&setting{concern: &writeconcern.WriteConcern{W: 1, Journal: &journalled}, name: "w:1 j:true", clients: clients})
	}
	return all
}

func run(ctx context.Context, r *study.Run) (err error) {
	rounds, length := 9, 2*time.Second
	if r.Quick {
		rounds, length = 2, 100*time.Millisecond
	}
	m, err := cluster.StartMongo(ctx, r, []mongod.MemberOptions{{Name: "a"}}, mongod.Engine{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	all := settings()
	// The collection is made, and every connection opened, before anything counts.
	if _, err := study.Load(ctx, 64, 200*time.Millisecond, insert(m.Writes(writeconcern.W1()))); err != nil {
		return err
	}
	r.Say("%d settings in each of %d rounds, %v each", len(all), rounds, length)
	err = study.Rounds(rounds, len(all), r.Chance("order"), func(_, i int) error {
		return all[i].measure(ctx, m, length)
	})
	if err != nil {
		return err
	}
	if err := r.Table("", table(all)); err != nil {
		return err
	}
	return r.SVG("", draw(all))
}

func insert(c *mongo.Collection) func(context.Context, int, int) error {
	return func(ctx context.Context, client, _ int) error {
		_, err := c.InsertOne(ctx, bson.D{{Key: "client", Value: client}, {Key: "text", Value: "a hundred bytes or so, as a small order or a line of a log would have them; no more than that"}})
		return err
	}
}

// measure writes for a while and adds what it found.
func (s *setting) measure(ctx context.Context, m *cluster.Mongo, length time.Duration) error {
	before, err := m.Status(ctx)
	if err != nil {
		return err
	}
	got, err := study.Load(ctx, s.clients, length, insert(m.Writes(s.concern)))
	if err != nil {
		return fmt.Errorf("insert with %s: %w", s.name, err)
	}
	after, err := m.Status(ctx)
	if err != nil {
		return err
	}
	s.rate = append(s.rate, got.Throughput())
	s.p50 = append(s.p50, got.Quantile(0.5).Seconds()*1e3)
	s.p95 = append(s.p95, got.Quantile(0.95).Seconds()*1e3)
	n, took, ok := cluster.JournalSyncs(before)
	n2, took2, _ := cluster.JournalSyncs(after)
	if syncs := n2 - n; ok && syncs > 0 {
		s.perSync = append(s.perSync, float64(len(got.Latencies))/float64(syncs))
		s.syncTime = append(s.syncTime, (took2-took).Seconds()*1e3/float64(syncs))
	}
	return nil
}

func table(all []*setting) *study.Table {
	t := &study.Table{
		Title:   "One document an insert; medians of the rounds",
		Columns: []string{"concern", "clients", "rounds", "writes/s", "low", "high", "p50 ms", "p95 ms", "writes/sync", "sync ms"},
		Left:    1,
		Note:    "low and high: the 95 % interval of writes/s (below six rounds the extremes).",
	}
	for _, s := range all {
		rate := study.SpreadOf(s.rate)
		t.Add(s.name, s.clients, rate.Rounds, rate.Median, rate.Low, rate.High, median(s.p50), median(s.p95), median(s.perSync), median(s.syncTime))
	}
	return t
}

// median is nil where nothing was measured.
func median(samples []float64) any {
	if s := study.SpreadOf(samples); s.Rounds > 0 {
		return s.Median
	}
	return nil
}

// draw has a panel for each figure, over the number of clients.
func draw(all []*setting) []byte {
	c := chart.Lines{Title: "What j: true costs, by how many wait at a time", Note: "dot: median of the rounds, bar: 95 % interval (below six rounds the extremes)"}
	for _, panel := range []struct {
		caption string
		of      func(*setting) []float64
		log     bool
	}{
		{"writes a second", func(s *setting) []float64 { return s.rate }, false},
		{"p50 of an insert, ms", func(s *setting) []float64 { return s.p50 }, true},
		{"writes that share a sync of the journal", func(s *setting) []float64 { return s.perSync }, true},
	} {
		p := chart.Panel{Caption: panel.caption, LogX: true, LogY: panel.log}
		for i, name := range []string{"w:1", "w:1 j:true"} {
			line := chart.Line{Name: name, Class: chart.Class(i)}
			for _, s := range all {
				if v := study.SpreadOf(panel.of(s)); s.name == name && v.Rounds > 0 {
					line.Points = append(line.Points, chart.Point{X: float64(s.clients), Y: v.Median, Low: v.Low, High: v.High})
					if i == 0 {
						p.Ticks = append(p.Ticks, float64(s.clients))
					}
				}
			}
			p.Lines = append(p.Lines, line)
		}
		c.Panels = append(c.Panels, p)
	}
	c.Panels[len(c.Panels)-1].XName = "clients"
	return c.SVG()
}
