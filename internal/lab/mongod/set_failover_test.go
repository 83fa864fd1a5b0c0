package mongod_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/wirewait/wirewait/internal/lab/mongod"
)

// writeThrough inserts with majority while disturb happens, and fails the test
// if one of them is lost or there twice. Every document counts up a counter too,
// which a retry that is done again would show.
func writeThrough(t *testing.T, set *mongod.Set, disturb func()) {
	t.Helper()
	client := dial(t, set.URI())
	c := orders(client, writeconcern.Majority())
	const writers = 4
	var wg sync.WaitGroup
	var mu sync.Mutex
	done, stop := 0, make(chan struct{})
	for w := range writers {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				id := fmt.Sprintf("%d-%d", w, i)
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				_, err := c.InsertOne(ctx, bson.D{{Key: "_id", Value: id}})
				if err == nil {
					_, err = c.UpdateOne(ctx, bson.D{{Key: "_id", Value: id}}, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}})
				}
				cancel()
				if err != nil {
					t.Errorf("write %s: %v", id, err)
					return
				}
				mu.Lock()
				done++
				mu.Unlock()
			}
		})
	}
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return done
	}
	eventually(t, "writes before", func() bool { return count() > 20 || t.Failed() })
	disturb()
	reached := count()
	eventually(t, "writes after", func() bool { return count() > reached+20 || t.Failed() })
	close(stop)
	wg.Wait()
	if n := must[int64](t)(c.CountDocuments(t.Context(), bson.D{{Key: "n", Value: 1}})); n != int64(count()) {
		t.Errorf("%d documents changed once, want %d: one was lost, or changed twice", n, count())
	}
}

func TestSet_StepDownLosesNothing(t *testing.T) {
	set := startSet(t, mongod.SetOptions{})
	writeThrough(t, set, func() {
		before := set.Primary()
		err := dial(t, before.URI()).Database("admin").RunCommand(t.Context(), bson.D{{Key: "replSetStepDown", Value: 60}}).Err()
		if err != nil {
			t.Errorf("step down: %v", err)
		}
		eventually(t, "another primary", func() bool { p := set.Primary(); return p != nil && p != before })
	})
	if p := set.Primary(); p == nil || p.Status().Term != 2 {
		t.Errorf("primary %+v, want one in term 2: the one that was told to stand", p)
	}
}

// Who may not be primary is still good to catch up from: without that nobody would
// be.
func TestSet_CatchesUpFromOneWithoutASource(t *testing.T) {
	set := startSet(t, mongod.SetOptions{})
	c := set.Member("c")
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	client := dial(t, set.URI())
	must[*mongo.InsertOneResult](t)(orders(client, writeconcern.Majority()).InsertOne(t.Context(), bson.D{}))
	if err := dial(t, set.Member("a").URI()).Database("admin").RunCommand(t.Context(), bson.D{{Key: "replSetStepDown", Value: 3600}}).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "b is primary", func() bool { return set.Primary() == set.Member("b") })
	must[*mongo.InsertOneResult](t)(orders(client, writeconcern.Majority()).InsertOne(t.Context(), bson.D{}))
	if err := set.Member("b").Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "c is primary", func() bool { return set.Primary() == c })
	if n := must[int64](t)(orders(dial(t, c.URI()), nil).CountDocuments(t.Context(), bson.D{})); n != 2 {
		t.Errorf("c has %d documents of 2", n)
	}
}

func TestSet_StoppedPrimaryLosesNothing(t *testing.T) {
	for _, end := range []func(*mongod.Member) error{(*mongod.Member).Stop, (*mongod.Member).Kill} {
		set := startSet(t, mongod.SetOptions{})
		writeThrough(t, set, func() {
			if err := end(set.Primary()); err != nil {
				t.Error(err)
			}
		})
		// It comes back and has everything, the others' writes too.
		if err := set.Member("a").Start(); err != nil {
			t.Fatal(err)
		}
		primary := set.Primary()
		if primary == nil || primary.Name() == "a" {
			t.Fatal("no other primary")
		}
		client := dial(t, set.URI())
		must[*mongo.InsertOneResult](t)(orders(client, atLeast(3)).InsertOne(t.Context(), bson.D{}))
		want := must[int64](t)(orders(client, nil).CountDocuments(t.Context(), bson.D{}))
		if n := must[int64](t)(orders(dial(t, set.Member("a").URI()), nil).CountDocuments(t.Context(), bson.D{})); n != want {
			t.Errorf("the member that came back has %d documents, the primary %d", n, want)
		}
	}
}

// What no majority had got is undone when its member comes back.
func TestSet_RollbackUndoesWhatNoMajorityHad(t *testing.T) {
	set := startSet(t, mongod.SetOptions{})
	client := dial(t, set.URI())
	must[*mongo.InsertOneResult](t)(orders(client, atLeast(3)).InsertOne(t.Context(), bson.D{{Key: "_id", Value: "kept"}}))
	a := set.Member("a")
	for _, name := range []string{"b", "c"} {
		if err := set.Member(name).Stop(); err != nil {
			t.Fatal(err)
		}
	}
	yes := true
	alone := orders(dial(t, a.URI()), &writeconcern.WriteConcern{W: 1, Journal: &yes})
	must[*mongo.InsertOneResult](t)(alone.InsertOne(t.Context(), bson.D{{Key: "_id", Value: "undone"}}))
	must[*mongo.UpdateResult](t)(alone.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: "kept"}}, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}))
	if err := a.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b", "c"} {
		if err := set.Member(name).Start(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must[*mongod.Member](t)(set.AwaitPrimary(ctx))
	must[*mongo.InsertOneResult](t)(orders(client, atLeast(2)).InsertOne(ctx, bson.D{{Key: "_id", Value: "new"}}))
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	must[*mongo.InsertOneResult](t)(orders(client, atLeast(3)).InsertOne(ctx, bson.D{{Key: "_id", Value: "newer"}}))
	var got []bson.D
	cursor := must[*mongo.Cursor](t)(orders(dial(t, a.URI()), nil).Find(ctx, bson.D{}, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}})))
	if err := cursor.All(ctx, &got); err != nil {
		t.Fatal(err)
	}
	want := []bson.D{{{Key: "_id", Value: "kept"}}, {{Key: "_id", Value: "new"}}, {{Key: "_id", Value: "newer"}}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("after the rollback %v, want %v", got, want)
	}
}

// A set that is stopped as a whole goes on from its files.
func TestSet_GoesOnFromItsFiles(t *testing.T) {
	dir := t.TempDir()
	o := mongod.SetOptions{Dir: dir}
	first := startSet(t, o)
	client := dial(t, first.URI())
	must[*mongo.InsertOneResult](t)(orders(client, atLeast(3)).InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}}))
	if err := client.Disconnect(t.Context()); err != nil {
		t.Error(err)
	}
	for _, m := range first.Members() {
		if err := m.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := startSet(t, o)
	if p := second.Primary(); p == nil || p.Status().Term < 2 {
		t.Errorf("primary %v, want one of a new term", p)
	}
	client = dial(t, second.URI())
	if n := must[int64](t)(orders(client, nil).CountDocuments(t.Context(), bson.D{})); n != 1 {
		t.Errorf("%d documents, want the one of before", n)
	}
	must[*mongo.InsertOneResult](t)(orders(client, atLeast(3)).InsertOne(t.Context(), bson.D{{Key: "_id", Value: 2}}))
}

// A primary that hears no majority steps down, and its writers are told.
func TestSet_PrimaryWithoutMajorityStepsDown(t *testing.T) {
	set := startSet(t, mongod.SetOptions{})
	client := dial(t, set.Member("a").URI())
	failed := make(chan error, 1)
	for _, name := range []string{"b", "c"} {
		set.Member(name).Pause()
	}
	go func() {
		_, err := orders(client, writeconcern.Majority()).InsertOne(context.Background(), bson.D{})
		failed <- err
	}()
	select {
	case err := <-failed:
		var se mongo.ServerError
		if !errors.As(err, &se) || !se.HasErrorCode(189) && !se.HasErrorCode(10107) {
			t.Errorf("%v, want 189: the primary stepped down", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the write still waits")
	}
	for _, name := range []string{"b", "c"} {
		set.Member(name).Resume()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must[*mongod.Member](t)(set.AwaitPrimary(ctx))
}

// Priority decides who is primary at the start, and who takes over.
func TestSet_PriorityTakesOver(t *testing.T) {
	set := startSet(t, mongod.SetOptions{
		ElectionTimeout: time.Second,
		Members:         []mongod.MemberOptions{{Priority: -1}, {Priority: 1}, {Priority: 2}},
	})
	if p := set.Primary(); p.Name() != "c" {
		t.Fatalf("primary %s, want c", p.Name())
	}
	if err := set.Member("c").Stop(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "b is primary", func() bool { p := set.Primary(); return p != nil && p.Name() == "b" })
	if err := set.Member("c").Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "c is primary again", func() bool { p := set.Primary(); return p != nil && p.Name() == "c" })
}
