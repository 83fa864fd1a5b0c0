//go:build unix

package proxy_test

import (
	"strings"
	"testing"

	"github.com/wirewait/wirewait/internal/lab"
)

// Whatever version a client asks for, the server answers as if asked directly.
func TestPostgres_Versions(t *testing.T) {
	pg := startPostgres(t, lab.PostgresOptions{})
	for _, tc := range []struct {
		name    string
		startup []byte
		says    string // before ParameterStatus
	}{
		{"3.0", rawStartup(version30, "user", "postgres"), "R(0) K(8)"},
		{"3.1", rawStartup(version30|1, "user", "postgres"), `v(00030000 "") R(0) K(8)`},
		{"3.2", rawStartup(version32, "user", "postgres"), `v(00030000 "") R(0) K(8)`},
		{"3.9999 and an option", rawStartup(version30|9999, "user", "postgres", "_pq_.test_protocol_negotiation", ""),
			`v(00030000 "_pq_.test_protocol_negotiation") R(0) K(8)`},
		{"3.0 and an option", rawStartup(version30, "user", "postgres", "_pq_.x", "1"), `v(00030000 "_pq_.x") R(0) K(8)`},
		{"4.0", rawStartup(4<<16, "user", "postgres"), "E(FATAL 0A000) EOF"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ask := func(addr string) string {
				c := dialRaw(t, addr)
				defer c.Close()
				c.send(tc.startup)
				said := strings.ReplaceAll(c.until("Z"), " S", "")
				if strings.HasSuffix(said, "EOF") {
					return said
				}
				c.send(query("insert into t values (1)"), message('X', ""))
				return said + " " + c.until("EOF")
			}
			psql(t, pg, pg.Addr(), "postgres", "-qc", "drop table if exists t; create table t (n int)").must(t)
			direct := ask(pg.Addr())
			r := newRig(t, postgresLink(pg))
			through := ask(r.addr())
			want := 1
			if tc.name == "4.0" {
				want = 0
			}
			if writes := r.writes(t)["INSERT"]; through != direct || writes != want {
				t.Errorf("through the proxy %s\ndirect %s\n%d writes, want %d", through, direct, writes, want)
			}
			// What 18 and later negotiate is in internal/interop.
			if major, _, _ := strings.Cut(pg.Version(), "."); major < "18" && !strings.HasPrefix(direct, tc.says) {
				t.Errorf("the server says %s, want %s", direct, tc.says)
			}
		})
	}
}

// A level that the start-up sets holds from the first statement on; what the
// server doesn't take ends the session as it does directly.
func TestPostgres_StartupParameters(t *testing.T) {
	pg := startPostgres(t, lab.PostgresOptions{})
	makes := startRaw(t, pg.Addr())
	makes.send(query("create table t (n int)"))
	makes.until("Z")
	for _, tc := range []struct{ name, value, level string }{
		{"synchronous_commit", "remote_apply", "remote_apply/startup"},
		{"options", "-c synchronous_commit=local", "local/startup"},
		{"options", "-csynchronous_commit=off", "off/startup"},
		{"options", "--synchronous-commit=remote_write", "remote_write/startup"},
		{"application_name", "app", "/default"},
		{"synchronous_commit", "bogus", "E(FATAL 22023)"},
		{"no_such_setting", "1", "E(FATAL 42704)"},
	} {
		t.Run(tc.name+"="+tc.value, func(t *testing.T) {
			r := newRig(t, postgresLink(pg))
			ask := func(addr string) string {
				c := dialRaw(t, addr)
				defer c.Close()
				c.send(rawStartup(version30, "user", "postgres", tc.name, tc.value))
				said := c.until("Z")
				if strings.HasSuffix(said, "EOF") {
					return said
				}
				c.send(query("insert into t values (1)"), query("show synchronous_commit"), message('X', ""))
				return c.until("EOF")
			}
			direct, through := ask(pg.Addr()), ask(r.addr())
			if direct != through {
				t.Errorf("through the proxy %s\ndirect %s", through, direct)
			}
			r.writes(t)
			if refused := strings.HasPrefix(tc.level, "E("); refused && !strings.Contains(through, tc.level) || !refused && r.levels[tc.level] != 1 {
				t.Errorf("the answers %s, levels %v, want %s", through, r.levels, tc.level)
			}
		})
	}
}

// A server that knows no direct TLS drops the connection, and so it looks here.
func TestPostgres_DirectTLSThatTheServerDoesNotKnow(t *testing.T) {
	pg := startPostgres(t, lab.PostgresOptions{TLS: true})
	if major, _, _ := strings.Cut(pg.Version(), "."); major >= "17" {
		t.Skip("PostgreSQL 17 and later take it: TestTLS_Direct")
	}
	lc := postgresLink(pg)
	lc.TLS.Client = ""
	r := newRig(t, lc)
	for _, addr := range []string{pg.Addr(), r.addr()} {
		c := dialRaw(t, addr)
		c.send(clientHello(t))
		if b, err := c.r.ReadByte(); err == nil {
			t.Errorf("%s answers %q", addr, b)
		}
		c.Close()
	}
	soon(t, "the connection ends", func() bool { return r.Counters().ConnectionsOpen == 0 })
	if n := r.Counters(); n.Encrypted != 1 {
		t.Errorf("counters %+v: want one encrypted", n)
	}
}

// What comes behind an SSLRequest before its answer must not reach the server,
// which would end the session for it; and must not get lost.
func TestPostgres_BytesBehindAnSSLRequest(t *testing.T) {
	pg := startPostgres(t, lab.PostgresOptions{TLS: true})
	r := newRig(t, postgresLink(pg))
	c := dialRaw(t, r.addr())
	c.send(packet(80877103, ""), rawStartup(version30, "user", "postgres"), query("create temp table x (n int)"))
	if a := c.answer(); a != "N" {
		t.Fatalf("answered %q", a)
	}
	c.until("Z")
	if said := c.said(2); said != "C(CREATE TABLE) Z(I)" {
		t.Error(said)
	}
	c.Close()
	if got := r.writes(t); got["CREATE TABLE"] != 1 {
		t.Errorf("writes %v", got)
	}
}

// A client may ask for GSSAPI, then for TLS, and settle for neither. Left alone,
// the server takes up one of them, and no more is read.
func TestPostgres_GSSThenSSL(t *testing.T) {
	pg := startPostgres(t, lab.PostgresOptions{TLS: true})
	ssl, gss := packet(80877103, ""), packet(80877104, "")
	for name, requests := range map[string][][]byte{"GSS, then SSL": {gss, ssl}, "SSL, then GSS": {ssl, gss}, "SSL thrice": {ssl, ssl, ssl}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, postgresLink(pg))
			c := dialRaw(t, r.addr())
			for _, b := range requests {
				c.send(b)
				if a := c.answer(); a != "N" {
					t.Fatalf("answered %q, want N", a)
				}
			}
			c.send(rawStartup(version30, "user", "postgres"))
			if said := c.until("Z"); !strings.HasSuffix(said, "Z(I)") {
				t.Fatal(said)
			}
			c.send(query("create temp table x (n int)"), message('X', ""))
			if said := c.said(3); said != "C(CREATE TABLE) Z(I) EOF" {
				t.Error(said)
			}
			c.Close()
			if got := r.writes(t); got["CREATE TABLE"] != 1 {
				t.Errorf("writes %v", got)
			}
		})
	}
	t.Run("passed on", func(t *testing.T) {
		lc := postgresLink(pg)
		lc.TLS.Client = ""
		for _, request := range [][]byte{gss, ssl} {
			direct := dialRaw(t, pg.Addr())
			direct.send(request)
			want := direct.answer()
			direct.Close()
			r := newRig(t, lc)
			c := dialRaw(t, r.addr())
			c.send(request)
			if a := c.answer(); a != want {
				t.Errorf("answered %q, the server says %q", a, want)
			}
			c.Close()
			soon(t, "the connection ends", func() bool { return r.Counters().ConnectionsOpen == 0 })
			if n := r.Counters(); want != "N" && n.Encrypted != 1 {
				t.Errorf("answered %s: counters %+v", want, n)
			}
		}
	})
}
