//go:build unix

package proxy_test

import (
	"errors"
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/wirewait/wirewait/inject"
)

var churn = flag.Duration("churn", 2*time.Second, "how long rules are changed under load")

// churning are the sets that take turns: they delay, refuse, fail, hold and cut
// into slices, some messages and all.
func churning() [][]inject.Rule {
	insert := when("insert")
	refuse := inject.Rule{Name: "refuse", When: insert, Effect: inject.EffectRefuse, With: inject.With{Code: "112"}, Limit: inject.Limit{Probability: 0.1}}
	fail := inject.Rule{Name: "fail", When: insert, Effect: inject.EffectFailReply, With: inject.With{Code: "64", WriteConcernError: true}, Limit: inject.Limit{Probability: 0.1}}
	late := inject.Rule{Name: "late", When: when("find"), Effect: inject.EffectLatency, With: inject.With{Delay: time.Millisecond}}
	return [][]inject.Rule{
		nil,
		{refuse, late},
		{fail, {Name: "all", Effect: inject.EffectLatency, With: inject.With{Delay: time.Millisecond, Jitter: time.Millisecond}}},
		{{Name: "hold", When: insert, Effect: inject.EffectHold}, refuse},
		{{Name: "slices", When: inject.When{Monitors: true}, Effect: inject.EffectSlicer, With: inject.With{Size: 50, Delay: 100 * time.Microsecond}}, fail},
		{{Name: "part", Effect: inject.EffectHold, When: inject.When{Direction: inject.OnlyToClient}}, late, refuse},
	}
}

// Rules change 1,000 times a second, as far as the machine can, under load from
// 32 connections: nothing is torn, reordered or lost, and what a client was told
// of a write is so.
func TestRules_ChangeUnderLoad(t *testing.T) {
	onDrivers(t, func(t *testing.T, driver string) {
		r := newMongoRig(t, driver, noRetry+"&maxPoolSize=32&minPoolSize=32")
		done := make(chan struct{})
		changes := 0
		var changer sync.WaitGroup
		changer.Go(func() {
			sets := churning()
			for tick := time.NewTicker(time.Millisecond); ; changes++ {
				select {
				case <-tick.C:
				case <-done:
					tick.Stop()
					return
				}
				if err := r.SetRules(sets[changes%len(sets)]); err != nil {
					t.Error(err)
					return
				}
			}
		})
		var clients sync.WaitGroup
		there, absent := make([][]string, 32), make([][]string, 32)
		for k := range 32 {
			clients.Go(func() {
				for i, end := 0, time.Now().Add(*churn); time.Now().Before(end); i++ {
					id := fmt.Sprintf("%d-%d", k, i)
					_, err := r.orders.InsertOne(t.Context(), bson.D{{Key: "_id", Value: id}, {Key: "k", Value: k}})
					var ce mongo.CommandError
					var we mongo.WriteException
					switch {
					case err == nil, errors.As(err, &we) && we.WriteConcernError != nil && len(we.WriteErrors) == 0:
						there[k] = append(there[k], id)
					case errors.As(err, &ce) && ce.Code == 112:
						absent[k] = append(absent[k], id)
						continue
					default:
						t.Errorf("%s: %v", id, err)
						return
					}
					var got struct {
						ID string `bson:"_id"`
						K  int
					}
					if err := r.orders.FindOne(t.Context(), bson.D{{Key: "_id", Value: id}}).Decode(&got); err != nil || got.ID != id || got.K != k {
						t.Errorf("%s: found %+v, %v", id, got, err)
						return
					}
				}
			})
		}
		clients.Wait()
		close(done)
		changer.Wait()
		if err := r.SetRules(nil); err != nil {
			t.Fatal(err)
		}
		writes, refused := 0, 0
		for k := range 32 {
			writes, refused = writes+len(there[k]), refused+len(absent[k])
		}
		n, err := r.direct.CountDocuments(t.Context(), bson.D{})
		if err != nil || int(n) != writes {
			t.Errorf("the server has %d documents, %v; want the %d that clients were told of", n, err, writes)
		}
		if writes == 0 || changes == 0 {
			t.Errorf("%d writes and %d changes", writes, changes)
		}
		t.Logf("%d changes, %d writes, %d refused", changes, writes, refused)
	})
}
