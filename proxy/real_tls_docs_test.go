//go:build unix

package proxy_test

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/wire"
)

// documentedStrings are the connection strings of docs/tls.md by placement:
// PostgreSQL's, then MongoDB's.
func documentedStrings(t *testing.T) map[string][2][]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "docs", "tls.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n| placement | PostgreSQL | MongoDB |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	found := map[string][2][]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], "---") {
			continue
		}
		var all [2][]string
		for i := range all {
			for _, s := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[2+i], -1) {
				all[i] = append(all[i], s[1])
			}
		}
		found[strings.TrimSpace(cells[1])] = all
	}
	return found
}

// placements are docs/tls.md's, of a server whose certificate and key are these.
func placements(auto *proxy.ThrowAway, cert, key string) map[string]proxy.TLSConfig {
	return map[string]proxy.TLSConfig{
		"passed on":                              {},
		"plain, plain":                           {Client: "decline"},
		"TLS, plain":                             {Client: "terminate", Pair: &auto.Pair},
		"TLS, TLS":                               {Client: "terminate", Pair: &auto.Pair, Server: "verify-full", CA: cert},
		"TLS, TLS, the server's own certificate": {Client: "terminate", Cert: cert, Key: key, Server: "verify-full", CA: cert},
		"plain, TLS":                             {Client: "decline", Server: "verify-full", CA: cert},
	}
}

// TestTLS_ConnectionStringsOfTheDocs: each string that docs/tls.md says works
// does, for a role with SCRAM and for the Go driver.
func TestTLS_ConnectionStringsOfTheDocs(t *testing.T) {
	documented := documentedStrings(t)
	if len(documented) != 6 {
		t.Fatalf("%d placements: %v", len(documented), documented)
	}
	auto := newThrowAway(t)
	t.Run("PostgreSQL", func(t *testing.T) {
		s := startTLSServer(t)
		files := strings.NewReplacer("SERVER-CA", s.cert, "CA", auto.CAFile)
		for name, config := range placements(auto, s.cert, s.key) {
			if len(documented[name][0]) == 0 {
				t.Errorf("%s: no string", name)
			}
			for _, text := range documented[name][0] {
				t.Run(name+"/"+text, func(t *testing.T) {
					r := newRig(t, s.link(config))
					host, port, _ := net.SplitHostPort(r.addr())
					parameters := strings.Fields(files.Replace(text))
					c := psql(t, s.Postgres, r.addr(), "postgres", "-qAtc", encrypted)
					c.Args = append(c.Args, "host="+host+" port="+port+" user=ann password=secret dbname=postgres "+strings.Join(parameters, " "))
					want := map[bool]string{true: "t", false: "f"}[strings.HasSuffix(name, ", TLS") || strings.Contains(name, "own") || name == "passed on"]
					if o := c.run(t); strings.TrimSpace(o.Out) != want || o.Err != "" {
						t.Errorf("psql: %q, %q; want %s", o.Out, o.Err, want)
					}
					if a, e := s.pgxAs(t, r.addr(), "ann", parameters...); a != want || e != "" {
						t.Errorf("pgx: %q, %q; want %s", a, e, want)
					}
				})
			}
		}
	})
	t.Run("MongoDB", func(t *testing.T) {
		m := startMongo(t)
		front, cert, key := behindTLS(t, m.Addr(), "")
		files := strings.NewReplacer("SERVER-CA", cert, "CA", auto.CAFile)
		for name, config := range placements(auto, cert, key) {
			if len(documented[name][1]) == 0 {
				t.Errorf("%s: no string", name)
			}
			lc := proxy.LinkConfig{Upstream: front, Protocol: wire.MongoDB, TLS: config}
			if strings.HasSuffix(name, ", plain") {
				lc.Upstream = m.Addr()
			}
			for _, text := range documented[name][1] {
				t.Run(name+"/"+text, func(t *testing.T) {
					// tlsCAFile is replaced, and not the option's own name.
					option, file, _ := strings.Cut(text, "tlsCAFile=")
					if file != "" {
						option += "tlsCAFile=" + files.Replace(file)
					}
					if err := insert(t, "mongodb://"+newRig(t, lc).addr()+"/?"+option); err != nil {
						t.Error(err)
					}
				})
			}
		}
	})
}
