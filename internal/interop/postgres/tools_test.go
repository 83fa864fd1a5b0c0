package postgres

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// tool prepares one of PostgreSQL's own programs. The address and the database
// are in environment variables, as all of them take them.
func tool(t *testing.T, addr, db, name string, args ...string) *exec.Cmd {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), toolPath(t, name), args...)
	cmd.Env = []string{"PGHOST=" + host, "PGPORT=" + port, "PGUSER=postgres", "PGDATABASE=" + db, "PSQL_HISTORY=/dev/null"}
	return cmd
}

// toolPath is beside the machine's server, to which there may be a link on PATH,
// or itself on PATH.
func toolPath(t *testing.T, name string) string {
	t.Helper()
	dir := startServer(t, machine).BinDir()
	if real, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres")); err == nil {
		dir = filepath.Dir(real)
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		return onPath(t, name, "postgresql postgresql-client postgresql-contrib")
	}
	return path
}

var versionNumber = regexp.MustCompile(`\d+(\.\d+)+`)

// toolVersion is the version of the client's PostgreSQL.
func toolVersion(name string) func(t *testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		return versionNumber.FindString(must(t, exec.Command(toolPath(t, name), "--version")))
	}
}

// script exercises what psql can do on one connection, and goes on after errors.
const script = `
create table t (id int primary key, s text);
insert into t values (1, 'one'), (2, 'two');
insert into t select g, repeat('x', 100) from generate_series(10, 2000) g;
\d t
select count(*), sum(id), max(s) from t;
select * from t where id < 3 order by id \gdesc
begin; update t set s = 'uno' where id = 1; delete from t where id = 2; commit;
begin; insert into t values (3, 'three'); commit and chain; insert into t values (4, 'four'); rollback;
select 1 \; select 2 \; insert into t values (5, 'five');
\copy t to stdout csv
\copy t from program 'echo 6,six' csv
\set FETCH_COUNT 300
select * from t order by id;
\unset FETCH_COUNT
insert into t values (1, 'again');
begin; select 1/0; select 2; commit;
prepare p as insert into t values ($1, $2);
execute p (7, 'seven');
deallocate p;
begin; declare c cursor for select id from t order by id; fetch 3 from c; move 10 in c; fetch c; commit;
insert into t values (8, 'eight') returning id \gset
\echo :id
select id, s from t where id < 9 \crosstabview
do $$ begin raise notice 'said %', 42; end $$;
listen news; notify news, 'paper';
merge into t using (values (1), (9)) v (n) on id = n when matched then update set s = 'eins' when not matched then insert values (n, 'nine');
create table u (n int); truncate u; drop table u;
vacuum t;
select missing from nowhere;
syntax;
\errverbose
`

func psqlClient() client {
	return client{
		name: "psql", does: "a script of 30 statements and meta-commands, COPY both ways, errors",
		version: toolVersion("psql"),
		run: func(t *testing.T, addr, db string) outcome {
			cmd := tool(t, addr, db, "psql", "-X", "-a", "-f", "-")
			cmd.Stdin = strings.NewReader(script)
			o := run(t, cmd)
			// The notification names the session's process.
			o.Out = regexp.MustCompile(`PID \d+`).ReplaceAllString(o.Out, "PID n")
			return o
		},
		writes: map[string]int{
			"CREATE TABLE": 2, "DROP TABLE": 1, "TRUNCATE TABLE": 1, "INSERT": 8, "UPDATE": 1, "DELETE": 1, "MERGE": 1,
			"COMMIT": 2, "COPY": 1, "DO": 1,
		},
	}
}

func TestPsql(t *testing.T) { startServer(t, machine).compare(t, psqlClient()) }

// pipelined has two pipelines in one transaction of pgbench, the second of
// which is one implicit transaction.
const pipelined = `\set aid random(1, 100000)
\startpipeline
begin;
update pgbench_accounts set abalance = abalance + 1 where aid = :aid;
select abalance from pgbench_accounts where aid = :aid;
insert into pgbench_history (tid, bid, aid, delta, mtime) values (1, 1, :aid, 1, current_timestamp);
end;
\endpipeline
\startpipeline
update pgbench_accounts set abalance = abalance + 1 where aid = :aid;
insert into pgbench_history (tid, bid, aid, delta, mtime) values (1, 1, :aid, 1, current_timestamp);
\endpipeline
`

func TestPgbench(t *testing.T) {
	const sessions, each = 8, 25
	const all = sessions * each
	file := filepath.Join(t.TempDir(), "pipeline.sql")
	if err := os.WriteFile(file, []byte(pipelined), 0o644); err != nil {
		t.Fatal(err)
	}
	var kept = regexp.MustCompile(`(?m)^(transaction type|query mode|number of (clients|transactions.*|failed transactions)): .*$`)
	for _, mode := range []string{"simple", "extended", "prepared", "pipeline"} {
		t.Run(mode, func(t *testing.T) {
			args := []string{"-n", "-c", fmt.Sprint(sessions), "-j", "2", "-t", fmt.Sprint(each), "-M", mode}
			writes := map[string]int{"UPDATE": 3 * all, "INSERT": all, "COMMIT": all}
			does := fmt.Sprintf("%d sessions, %s, %d TPC-B transactions", sessions, mode, all)
			if mode == "pipeline" {
				args = append(args[:len(args)-1], "prepared", "-f", file)
				writes = map[string]int{"UPDATE": 2 * all, "INSERT": 2 * all, "COMMIT": all}
				does = fmt.Sprintf(`%d sessions, prepared, %d times two \startpipeline blocks`, sessions, all)
			}
			startServer(t, machine).compare(t, client{
				name: "pgbench", does: does, version: toolVersion("pgbench"), writes: writes,
				run: func(t *testing.T, addr, db string) outcome {
					s := startServer(t, machine)
					must(t, tool(t, s.Addr(), db, "pgbench", "-i", "-q"))
					o := run(t, tool(t, addr, db, "pgbench", args...))
					o.Out = strings.Join(kept.FindAllString(o.Out, -1), "\n") // the others are times
					o.Out += "\nhistory " + s.ask(t, db, "select count(*) from pgbench_history")
					return o
				},
			})
		})
	}
}

func TestPgDumpRestore(t *testing.T) {
	s := startServer(t, machine)
	dir := t.TempDir()
	s.compare(t, client{
		name: "pg_dump, pg_restore", does: "plain, custom and directory formats with 2 jobs, large objects; restored with 2 jobs and in one transaction",
		version: toolVersion("pg_dump"),
		writes: map[string]int{
			// Twice the same, but for the transactions that restoring with jobs takes.
			"CREATE TABLE": 10, "CREATE VIEW": 2, "CREATE FUNCTION": 2, "ALTER TABLE": 18, "ALTER FUNCTION": 2,
			"ALTER LARGE OBJECT": 2, "COPY": 10, "TRUNCATE TABLE": 5, "COMMIT": 7,
			"SELECT": 2, "function_call": 74, // lo_create, and lowrite of 16 kB each
		},
		run: func(t *testing.T, addr, db string) outcome {
			must(t, tool(t, s.Addr(), db, "pgbench", "-i", "-q"))
			must(t, tool(t, s.Addr(), db, "psql", "-Xqc", `
				create view v as select aid, abalance from pgbench_accounts where aid < 10;
				create function f(i int) returns int language sql as 'select i + 1';
				create table wide (b bytea, t text);
				insert into wide select decode(repeat(md5(g::text), 30000), 'hex'), repeat(chr(228 + g), 5000) from generate_series(1, 3) g;
				select lo_from_bytea(4711, decode(repeat('00ff', 300000), 'hex'));`, "-o", os.DevNull))
			plain := dump(t, addr, db)
			for i, format := range []string{"-Fc", "-Fd -j2"} {
				file, other := filepath.Join(dir, fmt.Sprint(addr, i)), fmt.Sprint(db, i)
				must(t, tool(t, addr, db, "pg_dump", append(strings.Fields(format), "--no-sync", "-f", file)...))
				s.freshDatabase(t, other)
				how := []string{"-j2", "-1"}[i]
				must(t, tool(t, addr, other, "pg_restore", "--exit-on-error", how, "-d", other, file))
				if dump(t, s.Addr(), other) != plain {
					t.Errorf("restored with %s from a dump with %s: another database", how, format)
				}
			}
			return outcome{Out: plain}
		},
	})
}

// dump is a dump in plain text.
func dump(t *testing.T, addr, db string) string {
	t.Helper()
	args := []string{"--no-sync"}
	if strings.Contains(must(t, tool(t, addr, db, "pg_dump", "--help")), "--restrict-key") {
		args = append(args, "--restrict-key=same") // it is random otherwise
	}
	return must(t, tool(t, addr, db, "pg_dump", args...))
}
