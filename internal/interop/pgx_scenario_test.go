package interop

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/wirewait/wirewait/trace"
)

// pgWrite is what must reach the tracer of one statement that writes.
type pgWrite struct {
	Tag     string
	Level   string // synchronous_commit as believed, with its source
	InBlock bool
	Shared  int // writes that one Sync or Query committed
	Code    string
	Undone  bool // by an error behind it
}

const byDefault = "/default"

func alone(tag, level string) pgWrite   { return pgWrite{Tag: tag, Level: level, Shared: 1} }
func commit(level string) pgWrite       { return pgWrite{Tag: "COMMIT", Level: level} }
func inBlock(tag, level string) pgWrite { return pgWrite{Tag: tag, Level: level, InBlock: true} }

func together(n int, tags ...string) (w []pgWrite) {
	for _, tag := range tags {
		w = append(w, pgWrite{Tag: tag, Level: byDefault, Shared: n})
	}
	return w
}

func seenPG(f *trace.Finished) pgWrite {
	p := &f.Postgres
	return pgWrite{
		Tag: p.Tag, Level: p.SynchronousCommit + "/" + p.SyncSource,
		InBlock: p.InBlock, Shared: p.Shared, Code: f.ErrorCode, Undone: p.RolledBack,
	}
}

// pgStep is something a client does, and the writes that it takes.
type pgStep struct {
	name   string
	do     func(ctx context.Context, c *pgx.Conn) (any, error)
	writes []pgWrite
}

// runPG runs the steps over one connection and returns their outcomes. Each
// must take at least the time given.
func runPG(t *testing.T, url string, least time.Duration, steps []pgStep) (outcomes []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	for _, s := range steps {
		began := time.Now()
		v, err := s.do(ctx, c)
		if d := time.Since(began); d < least {
			t.Errorf("%s took %v, want at least %v", s.name, d, least)
		}
		outcomes = append(outcomes, fmt.Sprintf("%s: %v, error %v", s.name, v, err))
	}
	return outcomes
}

// exec makes a step of one statement.
func exec(sql string, args []any, writes ...pgWrite) pgStep {
	return pgStep{sql, func(ctx context.Context, c *pgx.Conn) (any, error) {
		return c.Exec(ctx, sql, args...)
	}, writes}
}

// inTx makes a step of statements in a transaction, which is committed if it can.
func inTx(end string, statements []string, writes ...pgWrite) pgStep {
	return pgStep{fmt.Sprint(statements, " ", end), func(ctx context.Context, c *pgx.Conn) (any, error) {
		tx, err := c.Begin(ctx)
		if err != nil {
			return nil, err
		}
		var tags []any
		for _, sql := range statements {
			tag, err := tx.Exec(ctx, sql)
			tags = append(tags, tag, err)
		}
		if end == "commit" {
			return tags, tx.Commit(ctx)
		}
		return tags, tx.Rollback(ctx)
	}, writes}
}

func rowsOf(ctx context.Context, c *pgx.Conn, sql string, args ...any) (any, error) {
	rows, err := c.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (string, error) {
		v, err := r.Values()
		return fmt.Sprint(v), err
	})
}

func pgSteps() []pgStep {
	return append(append(statementSteps(), manySteps()...), levelSteps()...)
}

func statementSteps() []pgStep {
	insert := "insert into t values ($1, $2)"
	simple := pgx.QueryExecModeSimpleProtocol
	return []pgStep{
		exec("create table t (id int primary key, s text)", nil, alone("CREATE TABLE", byDefault)),
		exec(insert, []any{1, "one"}, alone("INSERT 0 1", byDefault)),
		exec(insert, []any{2, "two"}, alone("INSERT 0 1", byDefault)), // from the statement cache
		exec(insert, []any{1, "again"}, pgWrite{Level: byDefault, Code: "23505"}),
		exec(insert, []any{simple, 3, "it's"}, alone("INSERT 0 1", byDefault)),
		exec("update t set s = $1 where id > $2", []any{pgx.QueryExecModeExec, "x", 1}, alone("UPDATE 2", byDefault)),
		exec("delete from t where id = $1", []any{pgx.QueryExecModeDescribeExec, 3}, alone("DELETE 1", byDefault)),
		exec("select 1", nil),
		{"returning", func(ctx context.Context, c *pgx.Conn) (any, error) {
			return rowsOf(ctx, c, "insert into t values ($1, 'r') returning id, s", 4)
		}, []pgWrite{alone("INSERT 0 1", byDefault)}},
		{"select", func(ctx context.Context, c *pgx.Conn) (any, error) {
			return rowsOf(ctx, c, "select g, repeat('x', g) from generate_series(1, $1::int) g", 300)
		}, nil},
		{"one query, many statements", func(ctx context.Context, c *pgx.Conn) (any, error) {
			results, err := c.PgConn().Exec(ctx,
				"insert into t values (5, 'five'); update t set s = 'V' where id = 5; select 5; delete from t where id = 5").ReadAll()
			var tags []string
			for _, r := range results {
				tags = append(tags, r.CommandTag.String())
			}
			return tags, err
		}, together(3, "INSERT 0 1", "UPDATE 1", "DELETE 1")},
		exec("select 1/0", nil),
		exec("no statement", nil),
	}
}

func manySteps() []pgStep {
	return []pgStep{
		{"batch", func(ctx context.Context, c *pgx.Conn) (any, error) {
			var b pgx.Batch
			for i := range 3 {
				b.Queue("insert into t values ($1, $2)", 10+i, "batch")
			}
			b.Queue("select count(*) from t")
			b.Queue("update t set s = 'B' where s = $1", "batch")
			results := c.SendBatch(ctx, &b)
			var tags []any
			for range b.Len() {
				tag, err := results.Exec()
				tags = append(tags, tag, err)
			}
			return tags, results.Close()
		}, together(4, "INSERT 0 1", "INSERT 0 1", "INSERT 0 1", "UPDATE 3")},
		{"failing batch", func(ctx context.Context, c *pgx.Conn) (any, error) {
			var b pgx.Batch
			b.Queue("insert into t values ($1, $2)", 20, "lost")
			b.Queue("insert into t values ($1, $2)", 1, "again")
			b.Queue("insert into t values ($1, $2)", 21, "never tried")
			return nil, c.SendBatch(ctx, &b).Close()
		}, []pgWrite{{Tag: "INSERT 0 1", Level: byDefault, Undone: true}, {Level: byDefault, Code: "23505"}}},
		{"copy in", func(ctx context.Context, c *pgx.Conn) (any, error) {
			return c.CopyFrom(ctx, pgx.Identifier{"t"}, []string{"id", "s"},
				pgx.CopyFromSlice(10_000, func(i int) ([]any, error) { return []any{1000 + i, "copied"}, nil }))
		}, []pgWrite{alone("COPY 10000", byDefault)}},
		{"copy that fails", func(ctx context.Context, c *pgx.Conn) (any, error) {
			return c.CopyFrom(ctx, pgx.Identifier{"t"}, []string{"id", "s"},
				pgx.CopyFromSlice(3, func(i int) ([]any, error) {
					if i == 2 {
						return nil, errors.New("no more")
					}
					return []any{i, ""}, nil
				}))
		}, []pgWrite{{Level: byDefault, Code: "57014"}}},
		inTx("commit", []string{"insert into t values (30, 'tx')", "update t set s = 'TX' where id = 30", "select 1"},
			inBlock("INSERT 0 1", byDefault), inBlock("UPDATE 1", byDefault), commit(byDefault)),
		inTx("rollback", []string{"insert into t values (31, 'gone')"}, inBlock("INSERT 0 1", byDefault)),
		inTx("commit", []string{"select 1"}),
		{"what is left", func(ctx context.Context, c *pgx.Conn) (any, error) {
			return rowsOf(ctx, c, "select count(*), sum(id), min(s), max(s) from t")
		}, nil},
	}
}

// levelSteps change synchronous_commit in all the ways there are.
func levelSteps() []pgStep {
	insert := func(id int, level string) pgStep {
		return exec("insert into t values ($1, 'level')", []any{id}, alone("INSERT 0 1", level))
	}
	return []pgStep{
		exec("set synchronous_commit = off", nil),
		insert(40, "off/set"),
		inTx("commit", []string{"set local synchronous_commit to 'local'", "insert into t values (41, '')"},
			inBlock("INSERT 0 1", "local/set_local"), commit("local/set_local")),
		insert(42, "off/set"),
		inTx("rollback", []string{"set synchronous_commit = remote_write", "insert into t values (43, '')"},
			inBlock("INSERT 0 1", "remote_write/set")),
		insert(44, "off/set"),
		exec("reset synchronous_commit", nil),
		insert(45, byDefault),
	}
}

func pgError(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return fmt.Sprint(err)
}
