//go:build unix

package proxy_test

import (
	"strings"
	"testing"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/wire"
)

// What a person sees in psql, and what the server has.
func TestRules_Psql(t *testing.T) {
	pg := startPostgres(t, lab.PostgresOptions{})
	onDrivers(t, func(t *testing.T, driver string) {
		r := newRuledRig(t, driver, proxy.LinkConfig{Upstream: pg.Addr(), Protocol: wire.Postgres, TLS: proxy.TLSConfig{Client: "decline"}})
		ask := func(sql string) string {
			o := psql(t, pg, pg.Addr(), "postgres", "-qAtc", sql).run(t)
			if o.Code != 0 {
				t.Fatalf("%s: %+v", sql, o)
			}
			return strings.ReplaceAll(strings.TrimSpace(o.Out), "\n", " ")
		}
		ask("drop table if exists ruled; create table ruled (id int primary key)")
		on := func(statement string, e inject.Effect, w inject.With) {
			t.Helper()
			if err := r.SetRules([]inject.Rule{{Name: "rule", When: inject.When{Statement: []string{statement}}, Effect: e, With: w}}); err != nil {
				t.Fatal(err)
			}
		}
		script := func(lines ...string) outcome {
			c := psql(t, pg, r.addr(), "postgres", "-X", "-v", "VERBOSITY=verbose", "-v", "ON_ERROR_STOP=0")
			c.Stdin = strings.NewReader(strings.Join(lines, "\n"))
			return c.run(t)
		}

		on("UPDATE", inject.EffectRefuse, inject.With{Code: "40001", Message: "too bad"})
		o := script("begin;", "insert into ruled values (1);", "update ruled set id = 2;", "select 1;", "commit;")
		if !strings.Contains(o.Err, "ERROR:  40001: too bad") || !strings.Contains(o.Err, "25P02") || !strings.Contains(o.Out, "ROLLBACK") {
			t.Errorf("refused in a block: %+v", o)
		}
		if got := ask("select count(*) from ruled"); got != "0" {
			t.Errorf("after the block the server has %s rows", got)
		}
		on("COMMIT", inject.EffectLoseReply, inject.With{})
		o = script("begin;", "insert into ruled values (3);", "commit;", "select 4;")
		if o.Code != 2 || !strings.Contains(o.Err, "server closed the connection unexpectedly") || strings.Contains(o.Out, "COMMIT") {
			t.Errorf("lost: %+v", o)
		}
		if got := ask("select id from ruled"); got != "3" {
			t.Errorf("after the lost acknowledgement the server has %s", got)
		}
		on("INSERT", inject.EffectRefuse, inject.With{Code: "57P01", Fatal: true})
		o = script("insert into ruled values (5);")
		if o.Code != 2 || !strings.Contains(o.Err, "FATAL:  57P01") {
			t.Errorf("terminated: %+v", o)
		}
		on("INSERT", inject.EffectFailReply, inject.With{Code: "08007"})
		o = script("insert into ruled values (6);", "select 'still here';")
		if !strings.Contains(o.Err, "ERROR:  08007") || !strings.Contains(o.Out, "still here") {
			t.Errorf("failed: %+v", o)
		}
		if got := ask("select id from ruled order by id"); got != "3 6" {
			t.Errorf("in the end the server has %s", got)
		}
	})
}
