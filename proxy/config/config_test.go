package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/wire"
)

const ms = time.Millisecond

// good reads a text that has no problems.
func good(t *testing.T, text string) *File {
	t.Helper()
	f, err := Parse("wirewait.yaml", []byte(text), variables)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func ways(there, back time.Duration) inject.Settings {
	return inject.Settings{Delay: [2]inject.Delay{wire.ToServer: {Base: there}, wire.ToClient: {Base: back}}}
}

const wan = `
admin: off
seed: 42
network:
  - {between: [app, sgp], rtt: 2ms, jitter: 500us}
  - {between: [app, fra], delay: [60ms, 20ms]}
  - {between: [fra, sgp], rtt: 160ms}
clusters:
  rs0:
    protocol: mongodb
    members:
      a: {site: sgp, upstream: "${MONGO}"}
      b: {site: fra, upstream: "mongo-b:27017"}
  pg:
    protocol: postgres
    members:
      p:  {site: sgp, upstream: "pg-p:5432"}
      s1: {site: fra}
`

func TestParse_Links(t *testing.T) {
	f := good(t, wan+`
links:
  - {from: app, to: rs0.a, listen: "127.0.0.1:${PORT}"}
  - {from: app, to: rs0.b, listen: 127.0.0.1:27102}
  - {from: rs0.b, to: rs0.a, listen: 127.0.0.1:27103, connect: false}
  - {from: members, to: rs0.b, listen: 0.0.0.0:27202, advertise: "proxy:27202"}
  - {from: pg.s1, to: pg.p, listen: 0.0.0.0:25441, jitter: 1ms}
  - {from: sgp, to: rs0.a, listen: "unix:/run/a.sock", advertise: "localhost:27099"}
  - {from: fra, to: app, listen: 127.0.0.1:1, upstream: back:1, protocol: tcp}
  - {name: half, from: app, to: rs0.b, listen: 127.0.0.1:2, delay: {to_client: 5ms}}
  - {name: own, from: fra, to: fra, upstream: own:1, listen: 127.0.0.1:3, rtt: 30ms}
  - {name: jittered, from: app, to: rs0.a, listen: 127.0.0.1:4, rtt: 30ms}
  - {name: free, from: app, to: rs0.a, listen: 127.0.0.1:5, rtt: 0}
  - {listen: "[::1]:5433", upstream: "unix:/run/db.sock", delay: {to_server: 1ms, to_client: 2ms}}
`)
	jittered := func(s inject.Settings, j time.Duration) inject.Settings {
		s.Delay[0].Jitter, s.Delay[1].Jitter = j, j
		return s
	}
	free := ways(80*ms, 80*ms)
	free.FreeConnect = true
	want := []Link{
		{LinkConfig: proxy.LinkConfig{Name: "app-rs0.a", From: "app", To: "rs0.a", Listen: "127.0.0.1:27101", Upstream: "mongo-a:27017", Protocol: wire.MongoDB, Set: "rs0", Hosts: []string{"mongo-a:27017"}, Delay: jittered(ways(ms, ms), ms/2)}, Dialer: FromApplication, Line: 21},
		{LinkConfig: proxy.LinkConfig{Name: "app-rs0.b", From: "app", To: "rs0.b", Listen: "127.0.0.1:27102", Upstream: "mongo-b:27017", Protocol: wire.MongoDB, Set: "rs0", Hosts: []string{"mongo-b:27017", "proxy:27202"}, Delay: ways(60*ms, 20*ms)}, Dialer: FromApplication, Line: 22},
		{LinkConfig: proxy.LinkConfig{Name: "rs0.b-rs0.a", From: "rs0.b", To: "rs0.a", Listen: "127.0.0.1:27103", Upstream: "mongo-a:27017", Protocol: wire.MongoDB, Delay: free}, Dialer: FromMember, Line: 23},
		{LinkConfig: proxy.LinkConfig{Name: "members-rs0.b", From: "members", To: "rs0.b", Listen: "0.0.0.0:27202", Upstream: "mongo-b:27017", Protocol: wire.MongoDB, Delay: ways(80*ms, 80*ms), Advertise: "proxy:27202"}, Dialer: FromMembers, Line: 24},
		{LinkConfig: proxy.LinkConfig{Name: "pg.s1-pg.p", From: "pg.s1", To: "pg.p", Listen: "0.0.0.0:25441", Upstream: "pg-p:5432", Protocol: wire.Postgres, Delay: jittered(ways(80*ms, 80*ms), ms)}, Dialer: FromMember, Line: 25},
		{LinkConfig: proxy.LinkConfig{Name: "sgp-rs0.a", From: "sgp", To: "rs0.a", Listen: "unix:/run/a.sock", Upstream: "mongo-a:27017", Protocol: wire.MongoDB, Set: "rs0", Advertise: "localhost:27099", Hosts: []string{"mongo-a:27017"}}, Dialer: FromApplication, Line: 26},
		{LinkConfig: proxy.LinkConfig{Name: "fra-app", From: "fra", To: "app", Listen: "127.0.0.1:1", Upstream: "back:1", Protocol: wire.TCP, Delay: ways(20*ms, 60*ms)}, Dialer: FromApplication, Line: 27},
		{LinkConfig: proxy.LinkConfig{Name: "half", From: "app", To: "rs0.b", Listen: "127.0.0.1:2", Upstream: "mongo-b:27017", Protocol: wire.MongoDB, Set: "rs0", Hosts: []string{"mongo-b:27017", "proxy:27202"}, Delay: ways(60*ms, 5*ms)}, Dialer: FromApplication, Line: 28},
		{LinkConfig: proxy.LinkConfig{Name: "own", From: "fra", To: "fra", Listen: "127.0.0.1:3", Upstream: "own:1", Delay: ways(15*ms, 15*ms)}, Dialer: FromApplication, Line: 29},
		{LinkConfig: proxy.LinkConfig{Name: "jittered", From: "app", To: "rs0.a", Listen: "127.0.0.1:4", Upstream: "mongo-a:27017", Protocol: wire.MongoDB, Set: "rs0", Hosts: []string{"mongo-a:27017"}, Delay: ways(15*ms, 15*ms)}, Dialer: FromApplication, Line: 30},
		{LinkConfig: proxy.LinkConfig{Name: "free", From: "app", To: "rs0.a", Listen: "127.0.0.1:5", Upstream: "mongo-a:27017", Protocol: wire.MongoDB, Set: "rs0", Hosts: []string{"mongo-a:27017"}}, Dialer: FromApplication, Line: 31},
		{LinkConfig: proxy.LinkConfig{Name: "[::1]:5433", Listen: "[::1]:5433", Upstream: "unix:/run/db.sock", Delay: ways(ms, 2*ms)}, Dialer: FromApplication, Line: 32},
	}
	if f.Admin != "off" || f.Seed == nil || *f.Seed != 42 {
		t.Errorf("admin %q, seed %v", f.Admin, f.Seed)
	}
	if len(f.Links) != len(want) {
		t.Fatalf("%d links, want %d", len(f.Links), len(want))
	}
	for i, l := range f.Links {
		l.Pipes, l.Sources = nil, nil // see TestParse_Pipes, TestParse_Several
		if !reflect.DeepEqual(l, want[i]) {
			t.Errorf("link %s is\n%+v, want\n%+v", l.Name, l, want[i])
		}
	}
}

// TestParse_WithinASite: there is no delay within a site, unless the file says so.
func TestParse_WithinASite(t *testing.T) {
	const links = `
clusters: {c: {protocol: postgres, members: {p: {site: sgp, upstream: "p:1"}}}}
links: [{from: sgp, to: c.p, listen: "127.0.0.1:1"}]
`
	if got := good(t, links).Links[0].Delay; got != ways(0, 0) {
		t.Errorf("unsaid: %+v", got)
	}
	if got := good(t, "network: [{between: [sgp, sgp], rtt: 1ms}]"+links).Links[0].Delay; got != ways(ms/2, ms/2) {
		t.Errorf("said: %+v", got)
	}
	if got := good(t, "network: [{between: [sgp, sgp], delay: [1ms, 2ms]}]"+links).Links[0].Delay; got != ways(ms, 2*ms) {
		t.Errorf("said for each way: %+v", got)
	}
}

func TestParse_Mesh(t *testing.T) {
	text := func(mesh string) string {
		return strings.Replace(wan, "s1: {site: fra}", `s1: {site: fra, upstream: "pg-s1:5432"}`, 1) + "links:\n- " + mesh
	}
	tests := []struct{ mesh, want string }{
		{`{mesh: rs0, listen: "127.0.0.1:27200"}`,
			"app-rs0.a 127.0.0.1:27200 2ms, app-rs0.b 127.0.0.1:27201 80ms, members-rs0.a 127.0.0.1:27202 160ms, members-rs0.b 127.0.0.1:27203 160ms"},
		{`{mesh: rs0, listen: "127.0.0.1:27200", members: false, from: sgp}`,
			"sgp-rs0.a 127.0.0.1:27200 0s, sgp-rs0.b 127.0.0.1:27201 160ms"},
		{`{mesh: pg, listen: "[::]:0"}`,
			"app-pg.p [::]:0 2ms, app-pg.s1 [::]:0 80ms, pg.s1-pg.p [::]:0 160ms, pg.p-pg.s1 [::]:0 160ms"},
	}
	for _, tt := range tests {
		var got []string
		for _, l := range good(t, text(tt.mesh)).Links {
			got = append(got, l.Name+" "+l.Listen+" "+l.Delay.RTT().String())
		}
		if s := strings.Join(got, ", "); s != tt.want {
			t.Errorf("%s:\n%s, want\n%s", tt.mesh, s, tt.want)
		}
	}
}

// TestParse_MeshSharesItsKeys: connect and tls are every link's.
func TestParse_MeshSharesItsKeys(t *testing.T) {
	f := good(t, wan+`links: [{mesh: rs0, listen: "127.0.0.1:1", connect: false, tls: {client: decline, server: verify-full}}]`)
	for _, l := range f.Links {
		if !l.Delay.FreeConnect || l.TLS.Client != "decline" || l.TLS.Server != "verify-full" {
			t.Errorf("%s: %+v", l.Name, l.LinkConfig)
		}
	}
}

// TestParse_Aliases: a part that is written once may stand at several places.
func TestParse_Aliases(t *testing.T) {
	f := good(t, `
links:
  - {listen: &a "127.0.0.1:0", upstream: db:1, rtt: &r 80ms, tls: &t {client: decline}}
  - {name: second, listen: *a, upstream: db:2, rtt: *r, tls: *t}
`)
	if l := f.Links[1]; l.Listen != "127.0.0.1:0" || l.Delay != ways(40*ms, 40*ms) || l.TLS.Client != "decline" {
		t.Errorf("%+v", l.LinkConfig)
	}
}

// TestParse_VariablesAreValues: what a variable holds is never read as YAML.
func TestParse_VariablesAreValues(t *testing.T) {
	f := good(t, `links: [{listen: "127.0.0.1:1", upstream: "db:1", rtt: 0, tls: {client: decline, server: verify-ca, server_name: "${SECRET}, $${X}$Y"}}]`)
	if got := f.Links[0].TLS.ServerName; got != "hunter2: {, ${X}$Y" {
		t.Errorf("%q", got)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "wirewait.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`links: [{listen: "127.0.0.1:1", upstream: "db:1", rtt: 0, tls: {client: terminate, cert: tls/a.pem, key: /etc/a.key, server: verify-full,
  ca: ca.pem, server_name: db, upstream_cert: c.pem, upstream_key: c.key, client_ca: d.pem, direct: true}}]`)
	f, err := Load(file, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	if got, want := f.ProxyLinks()[0].TLS, (proxy.TLSConfig{
		Client: "terminate", Cert: in("tls/a.pem"), Key: "/etc/a.key", ClientCA: in("d.pem"), Server: "verify-full", CA: in("ca.pem"),
		ServerName: "db", UpstreamCert: in("c.pem"), UpstreamKey: in("c.key"), Direct: true,
	}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}

	write("links: 1")
	var ps Problems
	if _, err := Load(file, os.LookupEnv); !errors.As(err, &ps) || len(ps) != 1 || ps[0].File != file || ps[0].Line != 1 {
		t.Errorf("%v", err)
	}
	write(strings.Repeat("# more\n", maxFile/7+1))
	if _, err := Load(file, os.LookupEnv); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Errorf("%v", err)
	}
	if _, err := Load(in("none.yaml"), os.LookupEnv); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// TestParse_ManyLinks: a thousand of them are read in far less than a second.
func TestParse_ManyLinks(t *testing.T) {
	var b strings.Builder
	b.WriteString("links:\n")
	for range 1000 {
		b.WriteString("- {listen: 127.0.0.1:0, upstream: db:1, rtt: 80ms, name: ")
		b.WriteString("l" + strings.Repeat("x", b.Len()%97) + time.Duration(b.Len()).String() + "}\n")
	}
	f, err := Parse("wirewait.yaml", []byte(strings.ReplaceAll(b.String(), "µ", "u")), variables)
	if err != nil || len(f.Links) != 1000 {
		t.Fatalf("%v", err)
	}
}

func TestParse_NotText(t *testing.T) {
	for _, text := range []string{"\x00\x01", "links: \xff"} {
		if _, err := Parse("wirewait.yaml", []byte(text), variables); err == nil || !strings.HasPrefix(err.Error(), "wirewait.yaml: not YAML: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzParse: whatever the text, there are links or problems with places in it,
// and what was accepted a proxy can be started with.
func FuzzParse(f *testing.F) {
	b, err := os.ReadFile("testdata/mistakes.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range strings.Split("\n"+string(b), "\n== ")[1:] {
		_, rest, _ := strings.Cut(c, "\n")
		text, _, _ := strings.Cut(rest, "\n--\n")
		f.Add(text)
	}
	f.Add(wan + "links: [{mesh: rs0, listen: '127.0.0.1:1'}]")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Parse("f", []byte(text), variables)
		var ps Problems
		switch {
		case err == nil && len(file.Links) == 0:
			t.Error("neither links nor problems")
		case err != nil && (!errors.As(err, &ps) || len(ps) == 0):
			t.Errorf("the error is %v", err)
		}
		lines := strings.Count(text, "\n") + strings.Count(text, "\r") + strings.Count(text, "\u0085") + strings.Count(text, "\u2028") + strings.Count(text, "\u2029")
		for _, p := range ps {
			if p.Text == "" || p.Line < 0 || p.Line > lines+2 {
				t.Errorf("problem %+v in %d lines", p, lines)
			}
		}
		if err != nil {
			return
		}
		for _, l := range file.Links {
			if l.Name == "" || addressComplaint(l.Listen) != "" || addressComplaint(l.Upstream) != "" || l.Line == 0 {
				t.Errorf("link %+v", l)
			}
			for _, d := range l.Delay.Delay {
				if d.Check() != nil || d.Jitter > d.Base {
					t.Errorf("link %s: delay %+v", l.Name, d)
				}
			}
		}
	})
}
