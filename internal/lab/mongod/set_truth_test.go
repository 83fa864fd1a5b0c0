package mongod_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/wirewait/wirewait/internal/lab/mongod"
)

// What the primary says of who met a concern follows from what it says of the
// positions that it has heard: nothing before was enough, and this one was.
func TestSet_TruthIsConsistent(t *testing.T) {
	set := startSet(t, mongod.SetOptions{})
	client := dial(t, set.URI())
	yes := true
	concerns := []*writeconcern.WriteConcern{writeconcern.Majority(), atLeast(2), atLeast(3), {W: 1, Journal: &yes}, writeconcern.W1()}
	const writers, each = 8, 25
	errs := make(chan error, writers)
	for w := range writers {
		go func() {
			rng := rand.New(rand.NewPCG(uint64(w), 1))
			var err error
			for range each {
				_, e := orders(client, concerns[rng.IntN(len(concerns))]).InsertOne(context.Background(), bson.D{})
				err = errors.Join(err, e)
			}
			errs <- err
		}()
	}
	for range writers {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	truth := set.Member("a").Truth()
	if len(truth.Releases) < writers*each/2 || len(truth.Positions) < 50 || len(truth.Durable) < 5 {
		t.Fatalf("%d releases, %d positions, %d syncs: too few to say anything", len(truth.Releases), len(truth.Positions), len(truth.Durable))
	}
	by := map[string]int{}
	for _, r := range truth.Releases {
		by[r.Concern+" "+r.By]++
		checkRelease(t, truth, r)
	}
	if by["1 j a"] == 0 || by["majority b"]+by["majority c"] == 0 || by["3 b"]+by["3 c"] == 0 {
		t.Errorf("released by %v: want the primary for its own journal, others for the rest", by)
	}
}

func checkRelease(t *testing.T, truth mongod.Truth, r mongod.Release) {
	t.Helper()
	// Who had reached the write by then, and when the n-th had.
	reached := map[string]time.Time{}
	note := func(member string, at time.Time) {
		if first, ok := reached[member]; !ok || at.Before(first) {
			reached[member] = at
		}
	}
	for _, p := range truth.Positions {
		progress := p.Durable
		if r.Concern != "majority" {
			progress = p.Applied
		}
		if !progress.Before(r.OpTime) {
			note(p.Member, p.At)
		}
	}
	for _, d := range truth.Durable {
		if !d.OpTime.Before(r.OpTime) && (r.Concern == "majority" || r.Concern == "1 j") {
			note("a", d.At)
		}
	}
	need := map[string]int{"majority": 2, "1 j": 1, "2": 2, "3": 3}[r.Concern]
	if r.Concern == "2" || r.Concern == "3" {
		note("a", r.Since)
	}
	if r.Concern == "1 j" {
		reached = map[string]time.Time{"a": reached["a"]}
	}
	var times []time.Time
	for _, at := range reached {
		times = append(times, at)
	}
	slices.SortFunc(times, time.Time.Compare)
	switch {
	case len(times) < need:
		t.Errorf("%+v: only %v had reached it", r, reached)
	case !times[need-1].Equal(r.At):
		t.Errorf("%+v: the %d. member reached it at %v, which is %v apart", r, need, times[need-1], times[need-1].Sub(r.At))
	case !reached[r.By].Equal(r.At):
		t.Errorf("%+v: that member reached it at %v", r, reached[r.By])
	}
}

// A lag on one member changes nothing for the others: no election, the same
// source, majority by the other one.
func TestSet_LagOfOneMember(t *testing.T) {
	set := startSet(t, mongod.SetOptions{NoChaining: true}) // a nearer member would be followed
	eventually(t, "both follow the primary", func() bool {
		return set.Member("b").Status().Source == "a" && set.Member("c").Status().Source == "a"
	})
	set.Member("b").SetWriteDelay(4 * time.Second)
	client := dial(t, set.URI())
	begin := time.Now()
	for time.Since(begin) < 3*time.Second {
		must[*mongo.InsertOneResult](t)(orders(client, writeconcern.Majority()).InsertOne(t.Context(), bson.D{}))
	}
	if st := set.Member("a").Status(); !st.Writable || st.Term != 1 {
		t.Errorf("the primary is %+v, want no election", st)
	}
	if source := set.Member("c").Status().Source; source != "a" {
		t.Errorf("c follows %q, want a", source)
	}
	for _, r := range releasesOf(set.Member("a"), "majority") {
		if r.By != "c" && r.By != "a" {
			t.Fatalf("majority was released by %q", r.By)
		}
	}
	if b, a := set.Member("b").Status().Written, set.Member("a").Status().Written; !b.Before(a) {
		t.Error("the lagging member is up to date")
	}
}

// A paused member's connections stay, and it goes on where it stopped.
func TestSet_PauseAndResume(t *testing.T) {
	set := startSet(t, mongod.SetOptions{NoChaining: true})
	client := dial(t, set.URI())
	set.Member("c").Pause()
	if problem := insertFor(t, client, 3, 50); problem.Code != 64 {
		t.Errorf("w: 3 with a paused member gave %+v, want 64", problem)
	}
	must[*mongo.InsertOneResult](t)(orders(client, writeconcern.Majority()).InsertOne(t.Context(), bson.D{}))
	set.Member("c").Resume()
	must[*mongo.InsertOneResult](t)(orders(client, atLeast(3)).InsertOne(t.Context(), bson.D{}))
	if st := set.Member("a").Status(); st.Term != 1 {
		t.Errorf("term %d, want no election", st.Term)
	}
}
