//go:build unix

package proxy_test

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/proxy"
)

// script exercises what psql can do on one connection, and ends in an error.
const script = `
create table t (id int primary key, s text);
insert into t values (1, 'one'), (2, 'two');
insert into t select g, repeat('x', 100) from generate_series(10, 2000) g;
\d t
select count(*), sum(id), max(s) from t;
select * from t where id < 3 order by id \gdesc
begin; update t set s = 'uno' where id = 1; delete from t where id = 2; commit;
begin; insert into t values (3, 'three'); rollback;
select 1 \; select 2 \; insert into t values (4, 'four');
\copy t to stdout csv
\copy t from program 'echo 5,five' csv
\set FETCH_COUNT 300
select * from t order by id;
\unset FETCH_COUNT
\set ON_ERROR_STOP 0
insert into t values (1, 'again');
begin; select 1/0; select 2; commit;
do $$ begin raise notice 'said %', 42; end $$;
listen news; notify news, 'paper';
\set ON_ERROR_STOP 1
select missing from nowhere;
`

func TestPsql_SameOutcome(t *testing.T) {
	pg := startPostgres(t, lab.PostgresOptions{TLS: true})
	play := func(addr, db string) outcome {
		psql(t, pg, pg.Addr(), "postgres", "-c", "create database "+db).must(t)
		c := psql(t, pg, addr, db, "-f", "-")
		c.Stdin = strings.NewReader(script)
		o := c.run(t)
		// The process id of the server's session, as \listen's answer names it.
		o.Out = regexp.MustCompile(`PID \d+`).ReplaceAllString(o.Out, "PID n")
		return o
	}
	direct := play(pg.Addr(), "direct")
	if direct.Code != 3 || !strings.Contains(direct.Out, `notification "news"`) || len(direct.Out) < 400_000 {
		t.Fatalf("the script does not do what it should: %d bytes, exit code %d\n%s", len(direct.Out), direct.Code, direct.Err)
	}
	for name, delay := range map[string]inject.Settings{"plain": {}, "delayed": inject.Symmetric(4*time.Millisecond, time.Millisecond)} {
		lc := postgresLink(pg)
		lc.Delay = delay
		r := newRig(t, lc)
		if o := play(r.addr(), name); o != direct {
			t.Errorf("%s: exit code %d, want %d\n%s", name, o.Code, direct.Code, difference(o.Out+o.Err, direct.Out+direct.Err))
		}
		// COMMIT only of the block that wrote; \copy from is a COPY.
		want := map[string]int{"CREATE TABLE": 1, "INSERT": 5, "UPDATE": 1, "DELETE": 1, "COMMIT": 1, "COPY": 1, "DO": 1}
		got := r.writes(t)
		if !maps.Equal(got, want) {
			t.Errorf("%s: writes %v, want %v", name, got, want)
		}
	}
}

// difference is the first line in which two outputs differ.
func difference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d is   %.200q\nit should be %.200q", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// Debian's stock cluster has TLS on, and libpq prefers it.
func TestPsql_TLS(t *testing.T) {
	pg := startPostgres(t, lab.PostgresOptions{TLS: true})
	const sql = "create temp table t (n int); select ssl from pg_stat_ssl where pid = pg_backend_pid()"
	ask := func(addr, mode string) outcome {
		c := psql(t, pg, addr, "postgres", "-qAtc", sql)
		c.Env = append(c.Env, "PGSSLMODE="+mode)
		return c.run(t)
	}
	if o := ask(pg.Addr(), "prefer"); o.Out != "t\n" || o.Code != 0 {
		t.Fatalf("direct: %+v, want an encrypted session", o)
	}

	r := newRig(t, postgresLink(pg))
	if o := ask(r.addr(), "prefer"); o.Out != "f\n" || o.Code != 0 || o.Err != "" {
		t.Errorf("declined: %+v, want a plain session", o)
	}
	if o := ask(r.addr(), "disable"); o.Out != "f\n" || o.Code != 0 {
		t.Errorf("plain: %+v", o)
	}
	if o := ask(r.addr(), "require"); o.Code != 2 || !strings.Contains(o.Err, "server does not support SSL") {
		t.Errorf("required: %+v, want psql's refusal", o)
	}
	if got := r.writes(t)["CREATE TABLE"]; got != 2 {
		t.Errorf("%d writes, want 2", got)
	}

	// Passed on as it is: works, and is said not to be read.
	pass := postgresLink(pg)
	pass.TLS = proxy.TLSConfig{}
	p := newRig(t, pass)
	for range 2 {
		if o := ask(p.addr(), "require"); o.Out != "t\n" || o.Code != 0 {
			t.Errorf("passed: %+v, want an encrypted session", o)
		}
	}
	p.cut()
	if n := p.Counters(); n.Encrypted != 2 || n.Opaque != 0 || strings.Count(p.log.String(), "encrypted, not decoded") != 1 {
		t.Errorf("counters %+v, log %s", n, p.log.String())
	}
}

func TestPgbench(t *testing.T) {
	const clients, each = 16, 50
	pg := startPostgres(t, lab.PostgresOptions{})
	newTool(t, pg, pg.Addr(), "postgres", "pgbench", "-i", "-q", "-s", "4").must(t)
	for i, mode := range []string{"simple", "extended", "prepared"} {
		t.Run(mode, func(t *testing.T) {
			lc := postgresLink(pg)
			lc.Delay = inject.Symmetric(2*time.Millisecond, time.Millisecond)
			r := newRig(t, lc)
			out := newTool(t, pg, r.addr(), "postgres", "pgbench", "-n", "-M", mode,
				"-c", fmt.Sprint(clients), "-j", "2", "-t", fmt.Sprint(each)).must(t)
			for _, want := range []string{
				fmt.Sprintf("number of transactions actually processed: %d/%d\n", clients*each, clients*each),
				"number of failed transactions: 0 (0.000%)\n",
			} {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
			n := psql(t, pg, pg.Addr(), "postgres", "-Atc", "select count(*) from pgbench_history").must(t)
			if want := fmt.Sprintln((i + 1) * clients * each); n != want {
				t.Errorf("the history has %s rows, want %s", n, want)
			}
			const all = clients * each
			want := map[string]int{"UPDATE": 3 * all, "INSERT": all, "COMMIT": all}
			if got := r.writes(t); !maps.Equal(got, want) {
				t.Errorf("writes %v, want %v", got, want)
			}
		})
	}
}

func TestPgDump_SameBytes(t *testing.T) {
	pg := startPostgres(t, lab.PostgresOptions{})
	newTool(t, pg, pg.Addr(), "postgres", "pgbench", "-i", "-q", "-s", "1").must(t)
	psql(t, pg, pg.Addr(), "postgres", "-qc", `
		create view v as select aid, abalance from pgbench_accounts where aid < 10;
		create function f(i int) returns int language sql as 'select i + 1';
		create table wide (b bytea, t text);
		insert into wide select decode(repeat(md5(g::text), 30000), 'hex'), repeat(chr(228 + g), 5000) from generate_series(1, 3) g;
		select lo_from_bytea(0, decode(repeat('00ff', 300000), 'hex'));`).must(t)
	dump := func(addr, db string) string {
		args := []string{"--no-sync"}
		if c := newTool(t, pg, addr, db, "pg_dump", "--help"); strings.Contains(c.must(t), "--restrict-key") {
			args = append(args, "--restrict-key=same") // it's random otherwise
		}
		return newTool(t, pg, addr, db, "pg_dump", args...).must(t)
	}
	direct := dump(pg.Addr(), "postgres")
	if len(direct) < 4<<20 {
		t.Fatalf("the dump has %d bytes only", len(direct))
	}
	lc := postgresLink(pg)
	lc.Delay = inject.Symmetric(2*time.Millisecond, 0)
	r := newRig(t, lc)
	if through := dump(r.addr(), "postgres"); through != direct {
		t.Errorf("through the proxy %d bytes that differ from the direct %d", len(through), len(direct))
	}

	// And back in.
	psql(t, pg, pg.Addr(), "postgres", "-c", "create database restored").must(t)
	c := psql(t, pg, r.addr(), "restored", "-qf", "-")
	c.Stdin = strings.NewReader(direct)
	c.must(t)
	if again := dump(pg.Addr(), "restored"); again != direct {
		t.Error("a dump that was restored through the proxy differs")
	}
	if got := r.writes(t); got["COPY"] < 5 || got["CREATE TABLE"] != 5 {
		t.Errorf("writes %v, want 5 tables made and their rows copied", got)
	}
}
