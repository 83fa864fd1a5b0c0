//go:build unix

package proxy_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/internal/lab"
)

// turn is what a client sends and what a server says to it (raw.said).
type turn struct {
	send [][]byte
	says string
}

// protocolRow is a conversation that the server's documentation describes, or
// doesn't, and PostgreSQL 15 has as it stands here.
type protocolRow struct {
	name   string
	turns  []turn
	writes map[string]int // traced
	undone map[string]int // of those, rolled back
}

func says(says string, send ...[]byte) turn { return turn{send, says} }

// Every row of "Pipelining and ReadyForQuery accounting" on a real server. The
// statement behind each tells that no answer is left over and none is missing.
func TestPostgres_Pipelines(t *testing.T) {
	const ins, bad = "insert into t values (1)", "insert into nowhere values (1)"
	insert := func(n int) map[string]int { return map[string]int{"INSERT": n} }
	runProtocolRows(t, []protocolRow{
		{name: "P B E S", turns: []turn{says("1 2 C(INSERT 0 1) Z(I)", pbe(ins), synced)}, writes: insert(1)},
		{name: "P B E H, later S", turns: []turn{says("1 2 C(INSERT 0 1)", pbe(ins), flushed), says("Z(I)", synced)}, writes: insert(1)},
		{name: "BEGIN, INSERT, COMMIT in one pipeline, H, S", turns: []turn{
			says("1 2 C(BEGIN) 1 2 C(INSERT 0 1) 1 2 C(COMMIT)", pbe("begin"), pbe(ins), pbe("commit"), flushed), says("Z(I)", synced),
		}, writes: map[string]int{"INSERT": 1, "COMMIT": 1}},
		{name: "PBE S PBE S", turns: []turn{says("1 2 C(INSERT 0 1) Z(I) 1 2 C(INSERT 0 1) Z(I)", pbe(ins), synced, pbe(ins), synced)}, writes: insert(2)},
		{name: "PBE, PBE(bad), PBE, S", turns: []turn{
			says("1 2 C(INSERT 0 1) E(ERROR 42P01) Z(I)", pbe(ins), pbe(bad), pbe(ins), synced),
			says("T D C(SELECT 1) Z(I)", query("select 1 where not exists (table t)")),
		}, writes: insert(2), undone: insert(1)},
		{name: "PBE(bad), Q, S", turns: []turn{says("E(ERROR 42P01) Z(I)", pbe(bad), query(ins), synced)}, writes: insert(1)},
		{name: "PBE(bad), FunctionCall, S", turns: []turn{says("E(ERROR 42P01) Z(I)", pbe(bad), call(715, "0"), synced)}, writes: insert(1)},
		{name: "PBE (no S), Q", turns: []turn{says("1 2 C(INSERT 0 1) T D C(SELECT 1) Z(I)", pbe(ins), query("select 1"))}, writes: insert(1)},
		{name: "PBE(insert) (no S), Q, S", turns: []turn{says("1 2 C(INSERT 0 1) T D C(SELECT 1) Z(I) Z(I)", pbe(ins), query("select 1"), synced)}, writes: insert(1)},
		{name: "PBE(insert) (no S), Q(bad)", turns: []turn{says("1 2 C(INSERT 0 1) E(ERROR 22012) Z(I)", pbe(ins), query("select 1/0"))},
			writes: insert(1), undone: insert(1)},
		{name: "PBE(COPY FROM STDIN) S, then d c S", turns: []turn{
			says("1 2 G", pbe("copy t from stdin"), synced), says("C(COPY 1) Z(I)", data, done, synced),
		}, writes: map[string]int{"COPY": 1}},
		{name: "Q(COPY) then d H S c", turns: []turn{says("G", query("copy t from stdin")), says("C(COPY 1) Z(I)", data, flushed, synced, done)},
			writes: map[string]int{"COPY": 1}},
		{name: "Q(COPY) with a bad row, then more d, c", turns: []turn{
			says("G", query("copy t from stdin")), says("E(ERROR 22P02) Z(I)", message('d', "x\n"), data, done),
		}, writes: map[string]int{"COPY": 1}},
		{name: "CopyFail", turns: []turn{says("G", query("copy t from stdin")), says("E(ERROR 57014) Z(I)", data, message('f', terminated("no")))},
			writes: map[string]int{"COPY": 1}},
		{name: "Q(COPY) then Q", turns: []turn{
			says("G", query("copy t from stdin")), says("E(ERROR 08P01) E(FATAL 08P01) EOF", query("select 1")),
		}, writes: map[string]int{"COPY": 1}},
		{name: "stray d and c outside COPY", turns: []turn{says("T D C(SELECT 1) Z(I)", data, done, query("select 1"), done)}},
		{name: "Execute with max rows", turns: []turn{
			says("1 2 D s D s Z(I)", parse("", "select generate_series(1, 9)"), bind("", ""), execute("", 2), execute("", 2), synced),
		}},
		{name: "portals with row limits in a block", turns: []turn{
			says("C(BEGIN) Z(T)", query("begin")),
			says("1 2 D s Z(T)", parse("", "select generate_series(1, 3)"), bind("p", ""), execute("p", 2), synced),
			says("D C(SELECT 1) Z(T)", execute("p", 2), synced), // the tag counts the last Execute's
			says("C(COMMIT) Z(I)", query("commit")),
			says("E(ERROR 34000) Z(I)", execute("p", 2), synced),
		}},
		{name: "an INSERT RETURNING by rows", turns: []turn{
			says("1 2 D s D C(INSERT 0 1) Z(I)", parse("", ins+", (2), (3) returning n"), bind("", ""), execute("", 2), execute("", 2), synced),
		}, writes: insert(2)},
		{name: "Q of nothing", turns: []turn{says("I Z(I)", query(""))}},
		{name: "PBE of nothing", turns: []turn{says("1 2 I Z(I)", pbe(""), synced)}},
		{name: "the commit fails at Sync", turns: []turn{
			says("1 2 C(INSERT 0 1) E(ERROR 23503) Z(I)", pbe("insert into late values (7)"), synced),
		}, writes: insert(1), undone: insert(1)},
		{name: "COMMIT AND CHAIN", turns: []turn{
			says("C(BEGIN) Z(T)", query("begin")), says("C(INSERT 0 1) Z(T)", query(ins)), says("C(COMMIT) Z(T)", query("commit and chain")),
			says("C(INSERT 0 1) Z(T)", query(ins)), says("C(ROLLBACK) Z(I)", query("rollback")),
		}, writes: map[string]int{"INSERT": 2, "COMMIT": 1}},
		{name: "COMMIT of a failed block", turns: []turn{
			says("C(BEGIN) C(INSERT 0 1) Z(T)", query("begin; "+ins)), says("E(ERROR 42P01) Z(E)", query(bad)), says("C(ROLLBACK) Z(I)", query("commit")),
		}, writes: insert(2)},
		{name: "what commits by itself in a pipeline", turns: []turn{
			says("1 2 C(CREATE DATABASE) E(ERROR 42P01) Z(I)", pbe("create database alone"), pbe(bad), synced),
			says("C(DROP DATABASE) Z(I)", query("drop database alone")), // it's there
		}, writes: map[string]int{"CREATE DATABASE": 1, "DROP DATABASE": 1, "INSERT": 1}},
	})
}

// Names are shared by SQL and the protocol; functions are called by their OIDs.
func TestPostgres_NamesAndFunctions(t *testing.T) {
	const ins = "insert into t values (1)"
	runProtocolRows(t, []protocolRow{
		{name: "SQL PREPARE, protocol Bind", turns: []turn{
			says("C(PREPARE) Z(I)", query("prepare p as "+ins)), says("2 C(INSERT 0 1) Z(I)", bind("", "p"), execute("", 0), synced),
			says("C(DEALLOCATE) Z(I)", query("deallocate p")), says("E(ERROR 26000) Z(I)", bind("", "p"), execute("", 0), synced),
		}, writes: map[string]int{"INSERT": 1}},
		{name: "protocol Parse, SQL EXECUTE", turns: []turn{
			says("1 Z(I)", parse("q", ins), synced), says("C(INSERT 0 1) Z(I)", query("execute q")), says("E(ERROR 42P05) Z(I)", parse("q", ins), synced),
			says("3 1 Z(I)", message('C', "Sq\x00"), parse("q", ins), synced),
			says("C(DISCARD ALL) Z(I)", query("discard all")), says("E(ERROR 26000) Z(I)", message('D', "Sq\x00"), synced),
		}, writes: map[string]int{"INSERT": 1}},
		{name: "DEALLOCATE ALL", turns: []turn{
			says("1 Z(I)", parse("q", ins), synced), says("C(DEALLOCATE ALL) Z(I)", query("deallocate all")), says("E(ERROR 26000) Z(I)", bind("", "q"), synced),
		}},
		{name: "a DECLARE CURSOR run by Execute", turns: []turn{
			says("C(BEGIN) C(DECLARE CURSOR) Z(T)", query("begin; declare c cursor for select generate_series(1, 3)")),
			says("D s Z(T)", execute("c", 2), synced), says("T D C(FETCH 1) Z(T)", query("fetch all from c")),
			says("C(COMMIT) Z(I)", query("commit")),
		}},
		{name: "FunctionCall", turns: []turn{
			says("V Z(I)", call(715, "0")), says("E(ERROR 42883) Z(I)", call(4_000_000)),
			says("C(BEGIN) Z(T)", query("begin")), says("V Z(T)", call(715, "0")), says("C(COMMIT) Z(I)", query("commit")),
		}, writes: map[string]int{"function_call": 2, "COMMIT": 1}},
		{name: "functions that write large objects", turns: []turn{
			says("T D C(SELECT 1) Z(I)", query("select lo_from_bytea(0, 'some')")), says("T D C(SELECT 1) Z(I)", query("select lo_get(loid) from pg_largeobject limit 1")),
		}, writes: map[string]int{"SELECT": 1}},
		{name: "what a SELECT's tag hides", turns: []turn{
			says("T D C(SELECT 1) Z(I)", query("with x as ("+ins+" returning n) select * from x")), says("C(SELECT 1) Z(I)", query("select 1 into u")),
			says("C(DROP TABLE) Z(I)", query("drop table u")), says("T D C(EXPLAIN) Z(I)", query("explain analyze "+ins)),
		}, writes: map[string]int{"SELECT": 2, "DROP TABLE": 1}},
	})
}

// Messages that break the rules, and what the server makes of them.
func TestPostgres_Misuse(t *testing.T) {
	pg := startPostgres(t, lab.PostgresOptions{})
	for _, row := range []protocolRow{
		{name: "Sync of 2 GiB", turns: []turn{says("EOF", postgresMessage('S', 0x7fffffff, ""))}},
		{name: "Query of length 3", turns: []turn{says("EOF", postgresMessage('Q', 3, ""))}},
		{name: "an unknown type", turns: []turn{says("E(FATAL 08P01) EOF", message('y', ""))}},
		{name: "a Query without its NUL", turns: []turn{says("E(ERROR 08P01) Z(I)", message('Q', "select 1"))}},
		{name: "a Query without a body", turns: []turn{says("E(ERROR 08P01) Z(I)", message('Q', ""))}},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.play(t, pg.Addr())
			r := newRig(t, postgresLink(pg))
			row.play(t, r.addr())
		})
	}
}

// tables are t, empty, and late, into which no insert can be committed.
const tables = `drop table if exists t, late; create table t (n int); create table late (n int);
	create or replace function no() returns trigger language plpgsql as $$ begin raise exception using errcode = '23503'; end $$;
	create constraint trigger no after insert on late deferrable initially deferred for each row execute function no()`

func runProtocolRows(t *testing.T, rows []protocolRow) {
	pg := startPostgres(t, lab.PostgresOptions{})
	makes := startRaw(t, pg.Addr())
	fresh := func() {
		makes.send(query(tables))
		if said := makes.until("Z"); strings.Contains(said, "E(") {
			t.Fatal(said)
		}
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			fresh()
			row.play(t, pg.Addr())
			fresh()
			lc := postgresLink(pg)
			lc.Delay = inject.Symmetric(2*time.Millisecond, time.Millisecond)
			r := newRig(t, lc)
			row.play(t, r.addr())
			if got := r.writes(t); !maps.Equal(got, row.writes) || !maps.Equal(r.undone, row.undone) {
				t.Errorf("writes %v, want %v; rolled back %v, want %v", got, row.writes, r.undone, row.undone)
			}
		})
	}
}

// play holds the conversation and shows that the session goes on as ever.
func (row protocolRow) play(t *testing.T, addr string) {
	t.Helper()
	c := startRaw(t, addr)
	defer c.Close()
	for i, turn := range row.turns {
		c.send(turn.send...)
		if said := c.said(len(tokens(turn.says))); said != turn.says {
			t.Fatalf("turn %d at %s: %s\nwant %s", i+1, addr, said, turn.says)
		}
		if strings.HasSuffix(turn.says, "EOF") {
			return
		}
	}
	c.send(query("select 'end'"), message('X', ""))
	if said := c.said(5); said != "T D C(SELECT 1) Z(I) EOF" {
		t.Errorf("afterwards at %s: %s", addr, said)
	}
}

// tokens splits at the blanks that are in no parentheses.
func tokens(says string) (all []string) {
	depth, from := 0, 0
	for i, c := range says + " " {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		case ' ':
			if depth == 0 {
				all, from = append(all, says[from:i]), i+1
			}
		}
	}
	return all
}

// A cancel carries the key as the server gave it.
func TestPostgres_CancelByKey(t *testing.T) {
	pg := startPostgres(t, lab.PostgresOptions{})
	lc := postgresLink(pg)
	lc.Delay = inject.Symmetric(20*time.Millisecond, 0)
	r := newRig(t, lc)
	c := startRaw(t, r.addr())
	c.send(query("select pg_sleep(600)"))
	untilServer(t, pg, "active", "select pg_sleep(600)")
	k := dialRaw(t, r.addr())
	k.send(packet(80877102, string(c.key)))
	if said := k.until("EOF"); said != "EOF" {
		t.Errorf("a cancel is answered by %s", said)
	}
	if said := c.said(3); said != "T E(ERROR 57014) Z(I)" {
		t.Error(said)
	}
	c.send(message('X', ""))
	c.until("EOF")
	c.Close()
	k.Close()
	r.writes(t)
}

// From another session: NOTIFY while idle; a session that is ended.
func TestPostgres_Asynchronous(t *testing.T) {
	pg := startPostgres(t, lab.PostgresOptions{})
	r := newRig(t, postgresLink(pg))
	c := startRaw(t, r.addr())
	c.send(query("listen news"))
	c.until("Z")
	psql(t, pg, pg.Addr(), "postgres", "-qc", "notify news").must(t)
	if said := c.said(1); said != "A" {
		t.Errorf("while idle: %s", said)
	}
	c.send(query("notify news"))
	if said := c.said(3); said != "C(NOTIFY) A Z(I)" {
		t.Errorf("its own: %s", said)
	}
	c.send(query("set application_name = 'other'"))
	if said := c.said(3); said != "C(SET) S Z(I)" {
		t.Errorf("a parameter: %s", said)
	}
	pid := fmt.Sprint(uint32(c.key[0])<<24 | uint32(c.key[1])<<16 | uint32(c.key[2])<<8 | uint32(c.key[3]))
	psql(t, pg, pg.Addr(), "postgres", "-qAtc", "select pg_terminate_backend("+pid+")").must(t)
	if said := c.said(2); said != "E(FATAL 57P01) EOF" {
		t.Errorf("when ended: %s", said)
	}
	c.Close()
	if got := r.writes(t); len(got) != 0 {
		t.Errorf("writes %v", got)
	}
}
