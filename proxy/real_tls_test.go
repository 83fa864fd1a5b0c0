//go:build unix

package proxy_test

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
)

func newThrowAway(t *testing.T) *proxy.ThrowAway {
	t.Helper()
	a, err := proxy.NewThrowAway("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Remove(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// TestTLS_EveryPlacement: each mode of either leg, with each sslmode of psql
// and of pgx. All that passes is read.
func TestTLS_EveryPlacement(t *testing.T) {
	s, auto := startTLSServer(t), newThrowAway(t)
	modes := []string{"disable", "prefer", "require", "verify-ca", "verify-full"}
	for _, client := range []string{"decline", "terminate"} {
		for _, upstream := range []string{"off", "prefer", "require", "verify-ca", "verify-full"} {
			t.Run(client+"/"+upstream, func(t *testing.T) {
				config := proxy.TLSConfig{Client: client, Server: upstream}
				if client == "terminate" {
					config.Pair = &auto.Pair
				}
				if strings.HasPrefix(upstream, "verify") {
					config.CA = s.cert
				}
				lc := s.link(config)
				lc.Delay = inject.Symmetric(1e6, 0)
				r := newRig(t, lc)
				want := map[bool]string{true: "t", false: "f"}[upstream != "off"]
				writes := 0
				for i, mode := range modes {
					a, e := s.psqlAs(t, r.addr(), "PGSSLMODE="+mode, "PGSSLROOTCERT="+auto.CAFile)
					b, f := s.pgxAs(t, r.addr(), "postgres", "sslmode="+mode, "sslrootcert="+auto.CAFile)
					if client == "decline" && i >= 2 {
						if a != "" || !strings.Contains(e, "server does not support SSL") || b != "" || !strings.Contains(f, "server refused TLS connection") {
							t.Errorf("%s: psql %q %q, pgx %q %q; want their refusals", mode, a, e, b, f)
						}
						continue
					}
					if a != want || e != "" || b != want || f != "" {
						t.Errorf("%s: psql %q %q, pgx %q %q; want %s", mode, a, e, b, f, want)
					}
					writes += 2
				}
				if got := r.writes(t)["CREATE TABLE"]; got != writes {
					t.Errorf("%d writes were seen, want %d", got, writes)
				}
				if strings.Contains(r.log.String(), "level=WARN") {
					t.Errorf("warned without a reason:\n%s", r.log.String())
				}
			})
		}
	}
}

// TestTLS_ChannelBinding: a role with SCRAM, whose login may be bound to the
// certificate of the TLS that it runs in.
func TestTLS_ChannelBinding(t *testing.T) {
	s, auto := startTLSServer(t), newThrowAway(t)
	const (
		check   = "SCRAM channel binding check failed"
		refuses = "server does not support SSL"
	)
	own := proxy.TLSConfig{Client: "terminate", Cert: s.cert, Key: s.key, Server: "require"}
	other := proxy.TLSConfig{Client: "terminate", Pair: &auto.Pair, Server: "require"}
	plainUpstream := proxy.TLSConfig{Client: "terminate", Pair: &auto.Pair}
	plainClient := proxy.TLSConfig{Client: "decline", Server: "require"}
	for _, tc := range []struct {
		name          string
		tls           proxy.TLSConfig
		mode, binding string
		psql, pgx     string // the server's leg, t or f; else what they say
		warns         string
	}{
		{"passed on", proxy.TLSConfig{}, "require", "prefer", "t", "t", ""},
		{"passed on", proxy.TLSConfig{}, "require", "require", "t", "t", ""},
		{"declined, plain upstream", proxy.TLSConfig{Client: "decline"}, "prefer", "prefer", "f", "f", ""},

		// Both go on to prefer's second choice, a connection without TLS.
		{"another certificate", other, "prefer", "prefer", "t", "t", check},
		{"another certificate", other, "require", "prefer", check, check, check},
		{"another certificate", other, "require", "disable", "t", "t", check},
		{"another certificate", other, "disable", "prefer", "t", "t", ""},

		{"plain upstream", plainUpstream, "prefer", "prefer", "f", "f", ""},
		{"plain upstream", plainUpstream, "require", "prefer", "f", "f", ""},
		{"plain upstream", plainUpstream, "disable", "prefer", "f", "f", ""},
		{"plain upstream", plainUpstream, "require", "require", "server did not offer an authentication method that supports channel binding", "server does not support SCRAM-SHA-256-PLUS", ""},

		// libpq would take the server's offer for an attack.
		{"plain client", plainClient, "prefer", "prefer", "t", "t", ""},
		{"plain client", plainClient, "disable", "prefer", "t", "t", ""},
		{"plain client", plainClient, "disable", "disable", "t", "t", ""},
		{"plain client", plainClient, "require", "prefer", refuses, "server refused TLS connection", ""},

		{"the server's certificate", own, "prefer", "prefer", "t", "t", ""},
		{"the server's certificate", own, "require", "prefer", "t", "t", ""},
		{"the server's certificate", own, "require", "require", "t", "t", ""},
		{"the server's certificate", own, "disable", "prefer", "t", "t", ""},
	} {
		t.Run(tc.name+"/sslmode="+tc.mode+"/channel_binding="+tc.binding, func(t *testing.T) {
			r := newRig(t, s.link(tc.tls))
			for range 2 {
				a, e := s.psqlAs(t, r.addr(), "PGUSER=ann", "PGSSLMODE="+tc.mode, "PGCHANNELBINDING="+tc.binding)
				if a != tc.psql && (a != "" || !strings.Contains(e, tc.psql)) {
					t.Errorf("psql: %q %q, want %q", a, e, tc.psql)
				}
			}
			a, e := s.pgxAs(t, r.addr(), "ann", "sslmode="+tc.mode, "channel_binding="+tc.binding)
			if a != tc.pgx && (a != "" || !strings.Contains(e, tc.pgx)) {
				t.Errorf("pgx: %q %q, want %q", a, e, tc.pgx)
			}
			r.cut()
			log := r.log.String()
			n, want := strings.Count(log, "the server offers SCRAM that is bound"), 0
			if tc.warns != "" {
				want = 1
			}
			if n != want || !strings.Contains(log, tc.warns) {
				t.Errorf("warned %d times, want %d, of %q:\n%s", n, want, tc.warns, log)
			}
		})
	}
}

func TestTLS_ClientCertificates(t *testing.T) {
	s, auto, stranger := startTLSServer(t), newThrowAway(t), newIdentity(t, "carol")
	t.Run("shown to the server", func(t *testing.T) {
		for _, tc := range []struct {
			show  identity
			fails string
			warns string
		}{
			{s.carol, "", ""},
			{identity{}, "connection requires a valid client certificate", ""},
			{stranger, "closed the connection", "see --upstream-cert"},
		} {
			r := newRig(t, s.link(proxy.TLSConfig{Client: "decline", Server: "require", UpstreamCert: tc.show.cert, UpstreamKey: tc.show.key}))
			a, e := s.psqlAs(t, r.addr(), "PGUSER=carol")
			if tc.fails == "" && (a != "t" || e != "") || tc.fails != "" && (a != "" || e == "") {
				t.Errorf("showing %q: %q %q, want %q", tc.show.cert, a, e, tc.fails)
			}
			if tc.warns == "" && !strings.Contains(e, tc.fails) {
				t.Errorf("showing %q: %q, want %q in it", tc.show.cert, e, tc.fails)
			}
			if tc.warns != "" {
				soon(t, "the log says why", func() bool { return strings.Contains(r.log.String(), tc.warns) })
			}
		}
	})
	t.Run("asked of the client", func(t *testing.T) {
		r := newRig(t, s.link(proxy.TLSConfig{Client: "terminate", Pair: &auto.Pair, ClientCA: s.carol.cert}))
		show := func(i identity) []string {
			return []string{"PGSSLMODE=verify-full", "PGSSLROOTCERT=" + auto.CAFile, "PGSSLCERT=" + i.cert, "PGSSLKEY=" + i.key}
		}
		if a, e := s.psqlAs(t, r.addr(), show(s.carol)...); a != "f" || e != "" {
			t.Errorf("with a certificate: %q %q", a, e)
		}
		if a, e := s.psqlAs(t, r.addr(), show(stranger)...); a != "" || !strings.Contains(e, "SSL error: ") {
			t.Errorf("with a stranger's: %q %q", a, e)
		}
		soon(t, "the log says why", func() bool {
			return strings.Contains(r.log.String(), "the client's certificate is refused: sign it with an authority of --tls-client-ca")
		})
		if a, _ := s.psqlAs(t, r.addr(), "PGSSLMODE=disable"); a != "" {
			t.Errorf("in plain text: %q", a)
		}
	})
}

// OpenSSL refuses a certificate in a way of its own, which is understood.
func TestTLS_ClientThatDoesNotTrustUs(t *testing.T) {
	s, auto := startTLSServer(t), newThrowAway(t)
	r := newRig(t, s.link(proxy.TLSConfig{Client: "terminate", Pair: &auto.Pair}))
	if a, e := s.psqlAs(t, r.addr(), "PGSSLMODE=verify-full", "PGSSLROOTCERT="+s.cert); a != "" || !strings.Contains(e, "certificate verify failed") {
		t.Errorf("psql: %q %q", a, e)
	}
	soon(t, "the log says why", func() bool {
		return strings.Contains(r.log.String(), "unknown certificate authority: the client does not trust our certificate")
	})
}

// psql before 17 sends its cancel in plain text, whatever its session.
func TestTLS_CancelOfAnEncryptedSession(t *testing.T) {
	s, auto := startTLSServer(t), newThrowAway(t)
	r := newRig(t, s.link(proxy.TLSConfig{Client: "terminate", Pair: &auto.Pair, ClientCA: s.carol.cert, Server: "verify-full", CA: s.cert}))
	c := psql(t, s.Postgres, r.addr(), "postgres", "-c", "select pg_sleep(3600)")
	c.Env = append(c.Env, "PGSSLMODE=verify-full", "PGSSLROOTCERT="+auto.CAFile, "PGSSLCERT="+s.carol.cert, "PGSSLKEY="+s.carol.key)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	untilServer(t, s.Postgres, "active", "select pg_sleep")
	if err := c.Process.Signal(os.Signal(syscall.SIGINT)); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if !strings.Contains(c.err.String(), "canceling statement due to user request") {
		t.Errorf("psql says %q", c.err.String())
	}
}

// Servers from 17 on take TLS without an SSLRequest before it; older ones hang
// up, and the log says what that means. Clients of either leg may do the same.
func TestTLS_Direct(t *testing.T) {
	s, auto := startTLSServer(t), newThrowAway(t)
	if a, e := s.pgxAs(t, newRig(t, s.link(proxy.TLSConfig{Client: "terminate", Pair: &auto.Pair, Server: "require"})).addr(),
		"postgres", "sslmode=verify-full", "sslnegotiation=direct", "sslrootcert="+auto.CAFile); a != "t" || e != "" {
		t.Errorf("a direct client: %q %q", a, e)
	}
	r := newRig(t, s.link(proxy.TLSConfig{Client: "decline", Server: "verify-full", CA: s.cert, Direct: true}))
	a, e := s.psqlAs(t, r.addr())
	major, err := strconv.Atoi(strings.Split(s.Version(), ".")[0])
	if err != nil {
		t.Fatal(err)
	}
	if major >= 17 {
		if a != "t" || e != "" {
			t.Errorf("a direct upstream, %s: %q %q", s.Version(), a, e)
		}
		return
	}
	if a != "" {
		t.Errorf("an upstream that can't, %s: %q %q", s.Version(), a, e)
	}
	soon(t, "the log says why", func() bool { return strings.Contains(r.log.String(), "leave out --upstream-tls-direct") })
}
