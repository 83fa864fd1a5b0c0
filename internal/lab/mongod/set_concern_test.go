package mongod_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/wirewait/wirewait/internal/lab/mongod"
)

// releasesOf are the primary's records of waits for a concern.
func releasesOf(m *mongod.Member, concern string) []mongod.Release {
	var found []mongod.Release
	for _, r := range m.Truth().Releases {
		if r.Concern == concern {
			found = append(found, r)
		}
	}
	return found
}

// Who is slow decides who releases what: majority has the fastest secondary,
// w: 3 the slowest, w: 1 none.
func TestSet_ConcernsWaitForWhomTheySay(t *testing.T) {
	set := startSet(t, mongod.SetOptions{NoChaining: true})
	slow := set.Member("b")
	slow.SetWriteDelay(300 * time.Millisecond)
	client := dial(t, set.URI())
	insert := func(wc *writeconcern.WriteConcern) time.Duration {
		start := time.Now()
		must[*mongo.InsertOneResult](t)(orders(client, wc).InsertOne(t.Context(), bson.D{}))
		return time.Since(start)
	}
	for range 5 {
		insert(writeconcern.Majority())
		if took := insert(atLeast(3)); took < 300*time.Millisecond {
			t.Errorf("w: 3 took %v, want the slow member's 300 ms", took)
		}
	}
	for _, r := range releasesOf(set.Member("a"), "majority") {
		if r.By == "b" {
			t.Errorf("majority was released by the slow member: %+v", r)
		}
	}
	threes := releasesOf(set.Member("a"), "3")
	if len(threes) != 5 {
		t.Fatalf("%d releases of w: 3, want 5", len(threes))
	}
	for _, r := range threes {
		if r.By != "b" || r.At.Sub(r.Since) < 200*time.Millisecond {
			t.Errorf("w: 3 was released by %s after %v, want b after about 300 ms", r.By, r.At.Sub(r.Since))
		}
	}
	// It recovers at once, what it has fetched already included.
	insert(writeconcern.W1())
	slow.SetWriteDelay(0)
	if took := insert(atLeast(3)); took > 250*time.Millisecond {
		t.Logf("w: 3 after the delay's end took %v", took)
	}
}

// w: N counts what shows in the data, majority what is on disk (since 8.0).
func TestSet_ApplyDelayHoldsUpNumbersOnly(t *testing.T) {
	set := startSet(t, mongod.SetOptions{NoChaining: true})
	for _, name := range []string{"b", "c"} {
		set.Member(name).SetApplyDelay(time.Hour)
	}
	client := dial(t, set.URI())
	must[*mongo.InsertOneResult](t)(orders(client, writeconcern.Majority()).InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}}))
	if problem := insertFor(t, client, 2, 50); problem.Code != 64 {
		t.Errorf("w: 2 gave %+v, want 64: nobody applies anything", problem)
	}
	n := must[int64](t)(orders(dial(t, set.Member("b").URI()), nil).CountDocuments(t.Context(), bson.D{}))
	if n != 0 {
		t.Errorf("a member that applies nothing shows %d documents", n)
	}
}

// writeConcernError as a server writes it.
type writeConcernError struct {
	Code    int
	Errmsg  string
	ErrInfo struct{ Wtimeout bool } `bson:"errInfo"`
}

// insertFor inserts with a wtimeout in milliseconds, for which the driver has no
// option any more, and returns the reply's writeConcernError.
func insertFor(t *testing.T, client *mongo.Client, w any, wtimeout int) writeConcernError {
	t.Helper()
	raw, err := client.Database("shop").RunCommand(t.Context(), bson.D{
		{Key: "insert", Value: "orders"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: bson.NewObjectID()}}}},
		{Key: "writeConcern", Value: bson.D{{Key: "w", Value: w}, {Key: "wtimeout", Value: wtimeout}}},
	}).Raw()
	if raw == nil {
		t.Fatal(err)
	}
	var reply struct {
		N       int
		Problem writeConcernError `bson:"writeConcernError"`
	}
	if err := bson.Unmarshal(raw, &reply); err != nil || reply.N != 1 {
		t.Fatalf("reply %v, %v: want n: 1", raw, err)
	}
	return reply.Problem
}

func TestSet_WTimeoutKeepsTheWrite(t *testing.T) {
	set := startSet(t, mongod.SetOptions{})
	for _, name := range []string{"b", "c"} {
		set.Member(name).Pause()
	}
	client := dial(t, set.URI())
	for _, w := range []any{"majority", 3} {
		problem := insertFor(t, client, w, 50)
		if problem.Code != 64 || problem.Errmsg != "waiting for replication timed out" || !problem.ErrInfo.Wtimeout {
			t.Errorf("w: %v gave %+v, want 64 with wtimeout", w, problem)
		}
	}
	if n := must[int64](t)(orders(client, nil).CountDocuments(t.Context(), bson.D{})); n != 2 {
		t.Errorf("%d documents, want 2: a time-out undoes nothing", n)
	}
	_, err := orders(client, atLeast(4)).InsertOne(t.Context(), bson.D{})
	wantCode(t, err, 100)
}

// Tags are waited for by a name or as they stand, whoever has them first.
func TestSet_ModesAskForTags(t *testing.T) {
	tags := func(dc string) mongod.MemberOptions { return mongod.MemberOptions{Tags: map[string]string{"dc": dc}} }
	set := startSet(t, mongod.SetOptions{
		NoChaining: true, Members: []mongod.MemberOptions{tags("east"), tags("east"), tags("west")},
		Modes: map[string]map[string]int{"everywhere": {"dc": 2}, "here": {"dc": 1}},
	})
	set.Member("c").SetWriteDelay(100 * time.Millisecond)
	client := dial(t, set.URI())
	for _, w := range []any{"everywhere", "here", bson.D{{Key: "dc", Value: 2}}} {
		if problem := insertFor(t, client, w, 0); problem.Code != 0 {
			t.Errorf("w: %v gave %+v", w, problem)
		}
	}
	a := set.Member("a")
	for _, concern := range []string{"everywhere", "tags"} {
		if r := releasesOf(a, concern); len(r) != 1 || r[0].By != "c" {
			t.Errorf("releases of %s: %+v, want one by c, the only one in the west", concern, r)
		}
	}
	if r := releasesOf(a, "here"); len(r) != 1 || r[0].By != "" {
		t.Errorf("releases of a mode that the primary has met: %+v", r)
	}
	for code, w := range map[int]any{79: "nowhere", 100: bson.D{{Key: "dc", Value: 3}}} {
		if problem := insertFor(t, client, w, 0); problem.Code != code {
			t.Errorf("w: %v gave %+v, want %d", w, problem, code)
		}
	}
	var config struct {
		Config struct {
			Settings struct {
				Modes map[string]map[string]int `bson:"getLastErrorModes"`
			}
		}
	}
	if err := client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "replSetGetConfig", Value: 1}}).Decode(&config); err != nil {
		t.Fatal(err)
	}
	if m := config.Config.Settings.Modes; m["everywhere"]["dc"] != 2 || len(m) != 2 {
		t.Errorf("the configuration has the modes %v", m)
	}
}

// A command's default is majority, and j: true waits for the primary's journal.
func TestSet_DefaultAndJournal(t *testing.T) {
	set := startSet(t, mongod.SetOptions{})
	client := dial(t, set.URI())
	yes := true
	before := set.Member("a").JournalStats()
	must[*mongo.InsertOneResult](t)(orders(client, nil).InsertOne(t.Context(), bson.D{}))
	must[*mongo.InsertOneResult](t)(orders(client, &writeconcern.WriteConcern{W: 1, Journal: &yes}).InsertOne(t.Context(), bson.D{}))
	a := set.Member("a")
	if len(releasesOf(a, "majority")) != 1 {
		t.Errorf("releases %+v, want one of majority", a.Truth().Releases)
	}
	if r := releasesOf(a, "1 j"); len(r) != 1 || r[0].By != "a" {
		t.Fatalf("releases of w: 1, j: true: %+v, want one by the primary", r)
	}
	last := releasesOf(a, "1 j")[0]
	durable := a.Truth().Durable
	if !slices.ContainsFunc(durable, func(d mongod.Durability) bool { return !d.OpTime.Before(last.OpTime) && !d.At.After(time.Now()) }) {
		t.Error("the journal has no record of having reached the write")
	}
	after := a.JournalStats()
	if after.Syncs <= before.Syncs || after.Entries < before.Entries+2 || after.Bytes <= before.Bytes {
		t.Errorf("journal before %+v, after %+v: want more of all", before, after)
	}
}

// By default a delayed member has nothing before its time; the other reading is
// that it's durable at once and only applied late.
func TestSet_DelayedMember(t *testing.T) {
	for _, durable := range []bool{false, true} {
		set := startSet(t, mongod.SetOptions{
			DelayedIsDurable: durable, NoChaining: true,
			Members: []mongod.MemberOptions{{}, {}, {Delay: time.Second}},
		})
		if err := set.Member("b").Stop(); err != nil {
			t.Fatal(err)
		}
		client := dial(t, set.URI())
		start := time.Now()
		must[*mongo.InsertOneResult](t)(orders(client, writeconcern.Majority()).InsertOne(t.Context(), bson.D{}))
		took := time.Since(start)
		if !durable && took < 900*time.Millisecond {
			t.Errorf("majority with the delayed member took %v, want its second", took)
		}
		if durable {
			if r := releasesOf(set.Member("a"), "majority"); len(r) != 1 || r[0].At.Sub(r[0].Since) > 900*time.Millisecond {
				t.Errorf("releases %+v, want one before the delay is over", r)
			}
		}
		var hello struct{ Hosts []string }
		if err := client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "hello", Value: 1}}).Decode(&hello); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(hello.Hosts, set.Member("c").Host()) {
			t.Error("hello names the delayed member")
		}
	}
}

// Many writers share a sync; a lone one has each to itself.
func TestSet_JournalCommitsInGroups(t *testing.T) {
	set := startSet(t, mongod.SetOptions{})
	client := dial(t, set.URI())
	yes := true
	c := orders(client, &writeconcern.WriteConcern{W: 1, Journal: &yes})
	const writers, each = 16, 20
	before := set.Member("a").JournalStats()
	errs := make(chan error, writers)
	for range writers {
		go func() {
			var err error
			for range each {
				_, e := c.InsertOne(context.Background(), bson.D{})
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
	after := set.Member("a").JournalStats()
	entries, syncs := after.Entries-before.Entries, after.Syncs-before.Syncs
	if entries < writers*each || syncs*10 > entries*9 {
		t.Errorf("%d syncs for %d entries, want that some shared one", syncs, entries)
	}
}
