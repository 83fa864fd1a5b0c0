package interop

import (
	"context"
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/internal/interop/ferret"
	"github.com/wirewait/wirewait/proxy"
)

// A server that nobody here wrote: what the client is told, and what FerretDB has.
func TestRules_FerretDB(t *testing.T) {
	addr := ferret.Start(t)
	insert := inject.When{Command: []string{"insert"}, Collection: []string{collection}}
	direct := dialMongo(t, "mongodb://"+addr+"/").Database(database).Collection(collection)
	for i, tt := range []struct {
		effect inject.Effect
		with   inject.With
		stored int64
		is     func(error) bool
	}{
		{inject.EffectRefuse, inject.With{Code: "112"}, 0, hasCode(112)},
		{inject.EffectLoseReply, inject.With{}, 1, mongo.IsNetworkError},
		{inject.EffectFailReply, inject.With{Code: "112"}, 1, hasCode(112)},
		{inject.EffectFailReply, inject.With{Code: "64", WriteConcernError: true}, 1, func(err error) bool {
			var we mongo.WriteException
			return errors.As(err, &we) && we.WriteConcernError != nil && we.WriteConcernError.Code == 64
		}},
	} {
		t.Run(tt.effect.String(), func(t *testing.T) {
			p, err := proxy.Start(context.Background(), proxy.Config{
				Links: []proxy.LinkConfig{{Name: "link", Listen: "127.0.0.1:0", Upstream: addr}},
				Rules: []inject.Rule{{Name: "rule", When: insert, Effect: tt.effect, With: tt.with, Limit: inject.Limit{First: 1}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				_ = p.Shutdown(ctx)
			})
			c := dialMongo(t, "mongodb://"+p.Links()[0].Addr().String()+"/?retryWrites=false").Database(database).Collection(collection)
			if _, err := c.InsertOne(t.Context(), d("_id", i)); !tt.is(err) {
				t.Errorf("the client got %v", err)
			}
			if n, err := direct.CountDocuments(t.Context(), d("_id", i)); err != nil || n != tt.stored {
				t.Errorf("the server has %d documents, %v; want %d", n, err, tt.stored)
			}
			if n := p.Rules()[0].Links[0].Hits; n != 1 {
				t.Errorf("%d hits", n)
			}
			if _, err := c.InsertOne(t.Context(), d("_id", i+100)); err != nil {
				t.Errorf("the next one: %v", err)
			}
		})
	}
}

func hasCode(code int) func(error) bool {
	return func(err error) bool {
		var se mongo.ServerError
		return errors.As(err, &se) && se.HasErrorCode(code)
	}
}
