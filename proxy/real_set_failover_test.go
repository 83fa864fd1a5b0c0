//go:build unix

package proxy_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/internal/lab/mongod"
)

// dialled is a dialer that keeps whom it dialled.
type dialled struct {
	mu   sync.Mutex
	list []string
}

func (d *dialled) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	d.mu.Lock()
	d.list = append(d.list, addr)
	d.mu.Unlock()
	return (&net.Dialer{}).DialContext(ctx, network, addr)
}

// others are the addresses that aren't among those given.
func (d *dialled) others(known []string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(d.list), func(a string) bool { return slices.Contains(known, a) })
}

// discover is a client that is told one link of the set.
func (r *setRig) discover(t *testing.T, link string) (*mongo.Client, *dialled) {
	t.Helper()
	d := &dialled{}
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + r.addr(link) + "/?replicaSet=rs0&retryWrites=true&heartbeatFrequencyMS=500").
		SetServerSelectionTimeout(time.Minute).SetDialer(d))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client, d
}

// takeAtLeast waits for so many writes to be judged and takes all.
func (r *setRig) takeAtLeast(t *testing.T, n int) (seen []judgedWrite) {
	t.Helper()
	soon(t, "so many writes are judged", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.seen) >= n {
			seen, r.seen = r.seen, nil
		}
		return seen != nil
	})
	return seen
}

// truth are those who released a write, by its position: several where it was made
// again at another primary. A name without a member is one for whom there was
// nothing left to wait when it came; then the acknowledgement came on its way.
func (r *setRig) truth() map[mongod.OpTime][]string {
	by := map[mongod.OpTime][]string{}
	for _, m := range r.set.Members() {
		for _, rel := range m.Truth().Releases {
			by[rel.OpTime] = append(by[rel.OpTime], "rs0."+rel.By)
		}
	}
	return by
}

// wrong counts the writes that are said to have been released by another member
// than the one that did.
func (r *setRig) wrong(t *testing.T, seen []judgedWrite) (wrong int) {
	t.Helper()
	truth, by := r.truth(), map[string]int{}
	for _, w := range seen {
		by[w.by+" "+w.basis]++
		is := truth[w.at]
		if w.by != "" && !slices.Contains(is, w.by) && !slices.Contains(is, "rs0.") {
			wrong++
			t.Logf("%s: by %s, %s, %v before the reply; in truth by %q", w.concern, w.by, w.basis, w.late, is)
		}
	}
	t.Logf("%d writes: %v", len(seen), by)
	return wrong
}

// An application that is given one link's address, through a step-down and a
// primary that dies: every write is made once, no connection leads around the
// links, and none of the waits is said to have been for a member that it wasn't for.
func TestRealSet_ApplicationsSurviveElections(t *testing.T) {
	r := newSetRig(t, setOptions{discovered: true, election: 4 * time.Second})
	client, dialer := r.discover(t, "app-b")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	orders := client.Database("shop").Collection("orders", options.Collection().SetWriteConcern(writeconcern.Majority()))
	const writers = 4
	var mu sync.Mutex
	var done [writers]int
	errs := make(chan error, writers)
	stop := make(chan struct{})
	for w := range writers {
		go func() {
			for {
				select {
				case <-stop:
					errs <- nil
					return
				default:
				}
				_, err := orders.UpdateOne(ctx, bson.D{{Key: "_id", Value: w}}, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}, options.UpdateOne().SetUpsert(true))
				if err != nil {
					errs <- err
					return
				}
				mu.Lock()
				done[w]++
				mu.Unlock()
			}
		}()
	}
	// more waits until each writer has made some more.
	more := func(when string) {
		t.Helper()
		mu.Lock()
		was := done
		mu.Unlock()
		for {
			mu.Lock()
			now := done
			mu.Unlock()
			if !slices.ContainsFunc([]int{0, 1, 2, 3}, func(w int) bool { return now[w] < was[w]+5 }) {
				return
			}
			select {
			case err := <-errs:
				t.Fatalf("%s: a write failed: %v", when, err)
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	more("before")
	stepDown := bson.D{{Key: "replSetStepDown", Value: 5}, {Key: "force", Value: true}}
	if err := client.Database("admin").RunCommand(ctx, stepDown).Err(); err != nil && !mongo.IsNetworkError(err) {
		t.Fatal(err)
	}
	more("after the step-down")
	primary, err := r.set.AwaitPrimary(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	more("after the primary died")
	close(stop)
	var all []error
	for range writers {
		all = append(all, <-errs)
	}
	if err := errors.Join(all...); err != nil {
		t.Fatal(err)
	}
	for w := range writers {
		var doc struct{ N int }
		if err := orders.FindOne(ctx, bson.D{{Key: "_id", Value: w}}).Decode(&doc); err != nil || doc.N != done[w] {
			t.Errorf("writer %d made %d writes, and there are %d, %v", w, done[w], doc.N, err)
		}
	}
	if around := dialer.others([]string{r.addr("app-a"), r.addr("app-b"), r.addr("app-c")}); len(around) > 0 {
		t.Errorf("dialled around the links: %v", around)
	}
	seen := r.takeAtLeast(t, 3*writers*5) // attempts that were made again are there too
	if wrong := r.wrong(t, seen); wrong > 1 {
		t.Errorf("of %d writes %d are attributed to the wrong member", len(seen), wrong)
	}
}

// Links between members that are stopped, reset or parted, in the midst of an
// application's writes: these go on by the other member, and none is said to be the
// parted one's. When the fault is over it catches up.
func TestRealSet_MemberLinksThatAreFaulty(t *testing.T) {
	r := newSetRig(t, setOptions{election: time.Minute})
	clients := r.orders(t, 1)
	three := &writeconcern.WriteConcern{W: 3}
	for _, effect := range []inject.Effect{inject.EffectHold, inject.EffectResetPeer, inject.EffectTimeout} {
		t.Run(effect.String(), func(t *testing.T) {
			// c is the nearer one, which released what majorities waited for.
			rule := inject.Rule{Name: "part", Effect: effect, When: inject.When{From: []string{"rs0.c"}, Monitors: true}}
			if err := r.proxy.SetRules([]inject.Rule{rule}); err != nil {
				t.Fatal(err)
			}
			r.write(t, clients, 12, writeconcern.Majority(), writeconcern.W1())
			if err := r.proxy.SetRules(nil); err != nil {
				t.Fatal(err)
			}
			r.write(t, clients, 2, three)
			seen := r.take(t, 14)
			if wrong := r.wrong(t, seen); wrong > 0 {
				t.Errorf("%d of %d writes are attributed to the wrong member", wrong, len(seen))
			}
			other := 0
			for _, w := range seen[:12] {
				if w.concern == "majority" && w.by != "rs0.c" {
					other++
				}
			}
			// What had come through before is c's all the same.
			if other < 3 {
				t.Errorf("%d of 6 majorities were without c, whose links are faulty", other)
			}
		})
	}
}
