package interop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/proxy"
)

// ruledPG is a server behind a proxy with rules, a client through it and one
// beside it. Each has a table t (id int primary key) of its own database.
type ruledPG struct {
	*proxy.Proxy
	t       *testing.T
	through *pgx.Conn
	direct  *pgx.Conn
	mode    pgMode
	url     string
}

// pgMode is how a client runs a statement.
type pgMode string

const (
	simple   pgMode = "simple"   // Query
	unnamed  pgMode = "unnamed"  // Parse, Bind, Describe, Execute, Sync at once
	prepared pgMode = "prepared" // Parse and Describe once, then Bind, Describe, Execute, Sync
)

// inModes runs a test in each mode and over each driver.
func inModes(t *testing.T, f func(t *testing.T, r *ruledPG)) {
	pg := startPostgres(t)
	for _, driver := range []string{proxy.DriverNet, proxy.DriverEpoll} {
		for _, mode := range []pgMode{simple, unnamed, prepared} {
			t.Run(driver+"/"+string(mode), func(t *testing.T) { f(t, newRuledPG(t, pg, driver, mode)) })
		}
	}
}

// unique numbers databases and prepared statements.
var unique atomic.Int32

func newRuledPG(t *testing.T, pg *lab.Postgres, driver string, mode pgMode) *ruledPG {
	t.Helper()
	p, err := proxy.Start(context.Background(), proxy.Config{
		Seed: 42, Driver: driver,
		Links: []proxy.LinkConfig{{Name: "link", Listen: "127.0.0.1:0", Upstream: pg.Addr(), TLS: proxy.TLSConfig{Client: "decline"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &ruledPG{Proxy: p, t: t, mode: mode}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = p.Shutdown(ctx)
	})
	name := fmt.Sprint("ruled", unique.Add(1))
	direct := newDatabase(t, pg, pg.Addr(), name)
	r.url = strings.Replace(direct, pg.Addr(), p.Links()[0].Addr().String(), 1)
	r.direct = r.dial(direct)
	r.through = r.dial(r.url)
	if _, err := r.direct.Exec(t.Context(), "create table t (id int primary key)"); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *ruledPG) dial(url string) *pgx.Conn {
	r.t.Helper()
	c, err := pgx.Connect(r.t.Context(), url)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// rule puts one rule in force.
func (r *ruledPG) rule(statement string, e inject.Effect, w inject.With, l inject.Limit) {
	r.t.Helper()
	err := r.SetRules([]inject.Rule{{Name: "rule", When: inject.When{Statement: []string{statement}}, Effect: e, With: w, Limit: l}})
	if err != nil {
		r.t.Fatal(err)
	}
}

// exec runs a statement in the test's mode.
func (r *ruledPG) exec(sql string) (pgconn.CommandTag, error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	c := r.through.PgConn()
	switch r.mode {
	case simple:
		results, err := c.Exec(ctx, sql).ReadAll()
		if len(results) == 0 {
			return pgconn.CommandTag{}, err
		}
		return results[len(results)-1].CommandTag, err
	case unnamed:
		res := c.ExecParams(ctx, sql, nil, nil, nil, nil).Read()
		return res.CommandTag, res.Err
	}
	name := fmt.Sprint("s", unique.Add(1))
	if _, err := c.Prepare(ctx, name, sql, nil); err != nil {
		return pgconn.CommandTag{}, err
	}
	res := c.ExecPrepared(ctx, name, nil, nil, nil).Read()
	return res.CommandTag, res.Err
}

func (r *ruledPG) mustExec(sql string) {
	r.t.Helper()
	if _, err := r.exec(sql); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
}

// wantRefused runs a statement that must fail with a SQLSTATE.
func (r *ruledPG) wantRefused(sql, severity, code string) {
	r.t.Helper()
	_, err := r.exec(sql)
	var pe *pgconn.PgError
	if !errors.As(err, &pe) || pe.Code != code || pe.Severity != severity {
		r.t.Fatalf("%s: the client got %v, want %s %s", sql, err, severity, code)
	}
}

// wantRows checks what the server has.
func (r *ruledPG) wantRows(want ...int32) {
	r.t.Helper()
	rows, err := r.direct.Query(r.t.Context(), "select id from t order by id")
	if err != nil {
		r.t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	if err != nil {
		r.t.Fatal(err)
	}
	if len(got) != len(want) {
		r.t.Fatalf("the server has %v, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			r.t.Fatalf("the server has %v, want %v", got, want)
		}
	}
}

// wantCounts checks what the rule did.
func (r *ruledPG) wantCounts(hits uint64, not map[string]uint64) {
	r.t.Helper()
	n := r.Rules()[0].Links[0]
	if n.Hits != hits || len(n.NotApplicable) != len(not) {
		r.t.Errorf("%+v: want %d hits, and %v not applicable", n, hits, not)
	}
	for why, k := range not {
		if n.NotApplicable[why] != k {
			r.t.Errorf("%+v: want %d not applicable for %s", n, k, why)
		}
	}
}

func TestRules_PostgresRefuse(t *testing.T) {
	inModes(t, func(t *testing.T, r *ruledPG) {
		r.rule("insert", inject.EffectRefuse, inject.With{Code: "40001", Message: "it's \\ not"}, inject.Limit{First: 2})
		for range 2 {
			r.wantRefused("insert into t values (1)", "ERROR", "40001")
		}
		r.wantRows()
		r.mustExec("insert into t values (2)") // the connection is as good as before
		r.wantRows(2)
		r.wantCounts(2, nil)
	})
}

// A refused statement's block really fails: what the client commits is not.
func TestRules_PostgresRefuseInABlock(t *testing.T) {
	inModes(t, func(t *testing.T, r *ruledPG) {
		r.rule("INSERT", inject.EffectRefuse, inject.With{Code: "40P01"}, inject.Limit{Nth: 2})
		r.mustExec("begin")
		r.mustExec("insert into t values (1)")
		r.wantRefused("insert into t values (2)", "ERROR", "40P01")
		_, err := r.exec("select 1")
		var pe *pgconn.PgError
		if !errors.As(err, &pe) || pe.Code != "25P02" {
			t.Errorf("in the failed block the client got %v, want 25P02", err)
		}
		if tag, err := r.exec("commit"); err != nil || tag.String() != "ROLLBACK" {
			t.Errorf("commit: %v %v, want ROLLBACK", tag, err)
		}
		r.wantRows()
		r.wantCounts(1, nil)
	})
}

func TestRules_PostgresRefuseFatally(t *testing.T) {
	inModes(t, func(t *testing.T, r *ruledPG) {
		r.rule("INSERT", inject.EffectRefuse, inject.With{Code: "57P01", Fatal: true}, inject.Limit{})
		r.mustExec("begin")
		r.wantRefused("insert into t values (1)", "FATAL", "57P01")
		if _, err := r.exec("select 1"); err == nil {
			t.Error("the connection lives on")
		}
		r.wantRows()
	})
}

func TestRules_PostgresLoseReply(t *testing.T) {
	inModes(t, func(t *testing.T, r *ruledPG) {
		r.rule("INSERT", inject.EffectLoseReply, inject.With{}, inject.Limit{})
		r.mustExec("begin")
		r.mustExec("insert into t values (1)") // no acknowledgement of anything yet
		r.mustExec("commit")
		r.wantRefused("insert into t values (1)", "ERROR", "23505") // the server's own
		r.wantCounts(0, map[string]uint64{"in_block": 1, "reply_failed": 1})
		_, err := r.exec("insert into t values (2)")
		var pe *pgconn.PgError
		if err == nil || errors.As(err, &pe) {
			t.Errorf("the client got %v, want the end of the connection", err)
		}
		r.wantRows(1, 2)
		r.wantCounts(1, map[string]uint64{"in_block": 1, "reply_failed": 1})
	})
}

func TestRules_PostgresLoseTheReplyToCommit(t *testing.T) {
	inModes(t, func(t *testing.T, r *ruledPG) {
		r.rule("COMMIT", inject.EffectLoseReply, inject.With{}, inject.Limit{})
		r.mustExec("begin")
		r.mustExec("insert into t values (1)")
		if _, err := r.exec("commit"); err == nil {
			t.Error("the client got its acknowledgement")
		}
		r.wantRows(1)
		r.wantCounts(1, nil)
	})
}

func TestRules_PostgresFailReply(t *testing.T) {
	inModes(t, func(t *testing.T, r *ruledPG) {
		r.rule("INSERT", inject.EffectFailReply, inject.With{Code: "40001"}, inject.Limit{First: 1})
		r.wantRefused("insert into t values (1)", "ERROR", "40001")
		r.wantRows(1)
		r.mustExec("insert into t values (2)")
		r.rule("COMMIT", inject.EffectFailReply, inject.With{Code: "40001"}, inject.Limit{First: 1})
		r.mustExec("begin")
		r.mustExec("insert into t values (3)")
		r.wantRefused("commit", "ERROR", "40001")
		r.wantRows(1, 2, 3)
		r.mustExec("insert into t values (4)")
		r.wantCounts(1, nil)
	})
}

func TestRules_PostgresLatencyAndHold(t *testing.T) {
	const late = 150 * time.Millisecond
	inModes(t, func(t *testing.T, r *ruledPG) {
		r.rule("INSERT", inject.EffectLatency, inject.With{Delay: late}, inject.Limit{Nth: 1})
		began := time.Now()
		r.mustExec("insert into t values (1)")
		if took := time.Since(began); took < 2*late {
			t.Errorf("it took %v, want %v each way", took, late)
		}
		r.wantCounts(1, nil)

		r.rule("INSERT", inject.EffectHold, inject.With{}, inject.Limit{})
		done := make(chan error, 1)
		go func() { _, err := r.exec("insert into t values (2)"); done <- err }()
		for deadline := time.Now().Add(time.Minute); r.Rules()[0].Links[0].Hits == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("nothing is held")
			}
		}
		r.wantRows(1)
		if err := r.SetRules(nil); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("after the partition: %v", err)
		}
		r.wantRows(1, 2)
	})
}

// A pipeline is one implicit transaction: what is refused in it takes the others
// with it, on the server, and the client and the server stay in step.
func TestRules_PostgresPipelines(t *testing.T) {
	pg := startPostgres(t)
	for _, driver := range []string{proxy.DriverNet, proxy.DriverEpoll} {
		for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeCacheStatement, pgx.QueryExecModeDescribeExec} {
			t.Run(driver+"/"+mode.String(), func(t *testing.T) {
				r := newRuledPG(t, pg, driver, unnamed)
				config, err := pgx.ParseConfig(r.url)
				if err != nil {
					t.Fatal(err)
				}
				config.DefaultQueryExecMode = mode
				c, err := pgx.ConnectConfig(t.Context(), config)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close(context.Background())
				batch := func(ids ...int) error {
					var b pgx.Batch
					for _, id := range ids {
						b.Queue("insert into t values ($1)", id)
					}
					b.Queue("select count(*) from t where id > $1", 0)
					return c.SendBatch(t.Context(), &b).Close()
				}
				for i := range uint64(3) { // the first, one in the middle, the last
					r.rule("INSERT", inject.EffectRefuse, inject.With{Code: "40001"}, inject.Limit{Nth: i + 1})
					var pe *pgconn.PgError
					if err := batch(1, 2, 3); !errors.As(err, &pe) || pe.Code != "40001" {
						t.Fatalf("refused: the client got %v, want 40001", err)
					}
					r.wantRows()
					r.wantCounts(1, nil)
				}
				r.rule("INSERT", inject.EffectFailReply, inject.With{Code: "40001"}, inject.Limit{First: 1})
				var pe *pgconn.PgError
				if err := batch(1, 2, 3); !errors.As(err, &pe) || pe.Code != "40001" {
					t.Fatalf("failed: the client got %v, want 40001", err)
				}
				r.wantRows(1, 2, 3)
				if err := batch(4, 5); err != nil {
					t.Fatal(err)
				}
				r.rule("INSERT", inject.EffectLoseReply, inject.With{}, inject.Limit{})
				if err := batch(6, 7); err == nil || errors.As(err, new(*pgconn.PgError)) {
					t.Errorf("lost: the client got %v, want the end of the connection", err)
				}
				r.wantRows(1, 2, 3, 4, 5, 6, 7)
			})
		}
	}
}

// A COPY that is refused never begins, and a Query of several statements is
// refused as a whole.
func TestRules_PostgresRefusesCopyAndScripts(t *testing.T) {
	pg := startPostgres(t)
	r := newRuledPG(t, pg, proxy.DriverNet, simple)
	r.rule("COPY", inject.EffectRefuse, inject.With{Code: "53100"}, inject.Limit{First: 1})
	copyIDs := func(ids ...int) error {
		var rows [][]any
		for _, id := range ids {
			rows = append(rows, []any{id})
		}
		_, err := r.through.CopyFrom(t.Context(), pgx.Identifier{"t"}, []string{"id"}, pgx.CopyFromRows(rows))
		return err
	}
	var pe *pgconn.PgError
	if err := copyIDs(1, 2); !errors.As(err, &pe) || pe.Code != "53100" {
		t.Fatalf("the client got %v, want 53100", err)
	}
	r.wantRows()
	if err := copyIDs(1, 2); err != nil {
		t.Fatal(err)
	}
	r.wantRows(1, 2)
	r.rule("DELETE", inject.EffectRefuse, inject.With{Code: "40001"}, inject.Limit{})
	r.wantRefused("insert into t values (3); delete from t; insert into t values (4)", "ERROR", "40001")
	r.wantRows(1, 2)
}
