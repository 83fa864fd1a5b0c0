package interop

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// A server that takes its time gets it attributed, and only its own.
const (
	think    = 150 * time.Millisecond
	thinkRTT = 60 * time.Millisecond
)

// checkThought holds one write's waits, and the time that the client measured,
// against what the server and the wire are known to have taken.
func checkThought(t *testing.T, writes []trace.Finished, measured time.Duration) {
	t.Helper()
	if len(writes) != 1 {
		t.Fatalf("%d writes, want 1", len(writes))
	}
	w := writes[0].Waits
	if w.Server < think || w.Dominant != trace.PartServer {
		t.Errorf("server %v, most of it %s; want at least %v of the server's", w.Server, w.Dominant, think)
	}
	if w.Total < think+thinkRTT || w.Total > measured {
		t.Errorf("the whole took %v; want at least %v, and at most the client's %v", w.Total, think+thinkRTT, measured)
	}
}

func TestWaits_MongoServer(t *testing.T) {
	m := startPeer(t, lab.MongoOptions{ServerDelay: func(c lab.MongoCommand) time.Duration {
		if c.Name == "insert" {
			return think
		}
		return 0
	}})
	r := startLink(t, wire.MongoDB, m.Addr(), thinkRTT)
	client := dialMongo(t, m.URI(r.Addr()))
	if err := client.Ping(t.Context(), nil); err != nil { // connects
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := client.Database(database).Collection(collection).InsertOne(t.Context(), d("_id", 1)); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	if err := client.Disconnect(context.Background()); err != nil {
		t.Error(err)
	}
	checkThought(t, r.writes(t), took)
}

func TestWaits_PostgresServer(t *testing.T) {
	pg := startPostgres(t)
	setUp, err := pgx.Connect(t.Context(), newDatabase(t, pg, pg.Addr(), "waits"))
	if err != nil {
		t.Fatal(err)
	}
	defer setUp.Close(context.Background())
	if _, err := setUp.Exec(t.Context(), "create table t (s text)"); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]pgx.QueryExecMode{"simple": pgx.QueryExecModeSimpleProtocol, "extended": pgx.QueryExecModeExec} {
		t.Run(name, func(t *testing.T) {
			r := startLink(t, wire.Postgres, pg.Addr(), thinkRTT)
			c, err := pgx.Connect(t.Context(), pg.URL(r.Addr())+"&dbname=waits")
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			_, err = c.Exec(t.Context(), "insert into t select pg_sleep($1)::text", mode, think.Seconds())
			took := time.Since(began)
			c.Close(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			checkThought(t, r.writes(t), took)
		})
	}
}
