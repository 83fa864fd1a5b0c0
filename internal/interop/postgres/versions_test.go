package postgres

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// newServers are directories below clients with servers from npm. From 18 on
// they speak protocol 3.2.
var newServers = []string{"postgres-17", "postgres-18"}

// The core of the matrix on newer servers: psql and psycopg as on the machine's,
// pgx, and whoever can ask for protocol 3.2 asks for it.
func TestNewerServers(t *testing.T) {
	for _, name := range newServers {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, name)
			s.compare(t, psqlClient())
			s.compare(t, psycopgClient())
			newest := psycopgClient()
			newest.name = "psycopg, protocol 3.2"
			newest.run = func(t *testing.T, addr, db string) outcome {
				o := python("psycopg").scenario("3.2")(t, addr, db)
				agreed := map[string]string{"postgres-17": "30000", "postgres-18": "30002"}[name]
				if !strings.HasPrefix(o.Out, "protocol "+agreed+" ") {
					t.Errorf("the session begins with %.40q, want protocol %s", o.Out, agreed)
				}
				return o
			}
			s.compare(t, newest)
			for _, protocol := range []string{"3.0", "3.2"} {
				s.compare(t, pgxClient(protocol))
			}
		})
	}
}

func TestPgx(t *testing.T) { startServer(t, machine).compare(t, pgxClient("3.0")) }

// pgxClient is in this process. It asks for a protocol and settles for less.
func pgxClient(protocol string) client {
	return client{
		name: "pgx, protocol " + protocol, does: "statements, a batch, COPY both ways, a transaction, errors, a cancel",
		version: func(t *testing.T) string {
			v, _ := pgxModule(t)
			return v
		},
		run: func(t *testing.T, addr, db string) outcome {
			t.Helper()
			return outcome{Out: playPgx(t, url(addr, db)+"?max_protocol_version="+protocol)}
		},
		writes: map[string]int{"CREATE TABLE": 1, "INSERT": 106, "UPDATE": 1, "DELETE": 1, "COMMIT": 1, "COPY": 1},
	}
}

// pgxModule is the version of pgx that this module uses, and its source.
func pgxModule(t *testing.T) (version, dir string) {
	t.Helper()
	out := must(t, exec.Command("go", "list", "-m", "-f", "{{.Version}} {{.Dir}}", "github.com/jackc/pgx/v5"))
	version, dir, _ = strings.Cut(strings.TrimSpace(out), " ")
	return strings.TrimPrefix(version, "v"), dir
}

func playPgx(t *testing.T, url string) string {
	t.Helper()
	ctx := t.Context()
	var said strings.Builder
	say := func(what ...any) { fmt.Fprintln(&said, what...) }
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	say("key of", len(c.PgConn().SecretKey()), "bytes") // longer in protocol 3.2
	exec := func(sql string, args ...any) {
		tag, err := c.Exec(ctx, sql, args...)
		say(sql, args, tag, err)
	}
	exec("create table t (id int primary key, s text)")
	for i := range 3 {
		exec("insert into t values ($1, $2)", i, strings.Repeat("x", i))
	}
	exec("insert into t values (0)")
	exec("select 1/0")

	b := new(pgx.Batch)
	for i := range 100 {
		b.Queue("insert into t values ($1)", 100+i)
	}
	say("batch", c.SendBatch(ctx, b).Close())

	n, err := c.CopyFrom(ctx, pgx.Identifier{"t"}, []string{"id"}, pgx.CopyFromSlice(5000, func(i int) ([]any, error) {
		return []any{1000 + i}, nil
	}))
	say("copy in", n, err)
	var out strings.Builder
	tag, err := c.PgConn().CopyTo(ctx, &out, "copy (select id from t order by id) to stdout")
	say("copy out", tag, err, out.Len())

	err = pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		_, err1 := tx.Exec(ctx, "update t set s = 'u' where id < 2")
		_, err2 := tx.Exec(ctx, "delete from t where id > 1000")
		say("in block", err1, err2)
		return nil
	})
	say("committed", err)
	exec("begin")
	exec("insert into t values ($1)", 7)
	exec("rollback")

	say("cancelled", cancelled(t, c, url))
	exec("insert into t values ($1)", 8)
	var count int
	say("count", c.QueryRow(ctx, "select count(*) from t").Scan(&count), count)
	return said.String()
}

// cancelled is the error of a statement that is cancelled once it runs, as
// another session can see.
func cancelled(t *testing.T, c *pgx.Conn, url string) error {
	t.Helper()
	ctx := t.Context()
	other, err := pgconn.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(ctx)
	failed := make(chan error, 1)
	go func() {
		_, err := c.Exec(ctx, "select pg_sleep(600)")
		failed <- err
	}()
	const sleeping = "select from pg_stat_activity where pid = %d and wait_event = 'PgSleep'"
	for {
		r := other.ExecParams(ctx, fmt.Sprintf(sleeping, c.PgConn().PID()), nil, nil, nil, nil).Read()
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		if len(r.Rows) == 1 {
			break
		}
	}
	if err := c.PgConn().CancelRequest(ctx); err != nil {
		t.Error(err)
	}
	return <-failed
}
