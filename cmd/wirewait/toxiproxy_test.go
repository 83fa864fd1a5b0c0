package main

import (
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// startToxiproxy runs "wirewait toxiproxy"; its log is JSON on standard output.
func startToxiproxy(t *testing.T, env []string, args ...string) *started {
	t.Helper()
	s := &started{t: t, exited: make(chan error, 1), more: make(chan struct{})}
	s.cmd = exec.Command(os.Args[0], append([]string{"toxiproxy"}, args...)...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "OTEL_") && !strings.HasPrefix(v, "LOG_LEVEL") {
			s.cmd.Env = append(s.cmd.Env, v)
		}
	}
	s.cmd.Env = append(append(s.cmd.Env, asWirewait+"=1"), env...)
	s.cmd.Stderr = os.Stderr
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cmd.Process.Kill() })
	go s.read(stdout)
	return s
}

// api is where its API is.
func (s *started) api() string {
	return "http://" + s.line(`"address":"([^"]+)"`)[1]
}

// asks is a request to it.
func asks(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// TestToxiproxy_WithAFile is a container with a file of proxies: there when the
// port answers, a toxic that knows the protocol, a span for each write, and both
// of Toxiproxy's counters while the connection is open.
func TestToxiproxy_WithAFile(t *testing.T) {
	peer := startMongo(t)
	path := filepath.Join(t.TempDir(), "proxies.json")
	file := `[{"name": "mongo", "listen": "127.0.0.1:0", "upstream": "` + peer.Addr() + `",
		"toxics": [{"type": "refuse", "attributes": {"code": 91, "first": 1, "match": {"command": "insert"}}}]}]`
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	w := startToxiproxy(t, []string{"OTEL_TRACES_EXPORTER=console"}, "-host=127.0.0.1", "-port=0", "-config="+path, "-proxy-metrics", "-seed", "-3")
	w.line(`^\{"time":"[^"]+","level":"info","message":"Starting Toxiproxy","version":"2\.12\.0\+wirewait`)
	url := w.api()
	if code, text := asks(t, "GET", url+"/version", ""); code != 200 || !strings.HasPrefix(text, `{"version": "2.12.0+wirewait`) {
		t.Errorf("%d %s", code, text)
	}
	var proxies map[string]struct {
		Listen string
		Toxics []struct{ Name, Type string }
	}
	code, text := asks(t, "GET", url+"/proxies", "")
	if err := json.Unmarshal([]byte(text), &proxies); err != nil || code != 200 || len(proxies["mongo"].Toxics) != 1 {
		t.Fatalf("%d %s: %v", code, text, err)
	}
	at := proxies["mongo"].Listen
	_, port, _ := net.SplitHostPort(at)
	withMongo(t, peer.URI(at)+"&retryWrites=false", func(c *mongo.Client) {
		orders := c.Database("shop").Collection("orders")
		if _, err := orders.InsertOne(t.Context(), bson.D{}); err == nil {
			t.Error("the first insert was not refused")
		}
		if _, err := orders.InsertOne(t.Context(), bson.D{}); err != nil {
			t.Errorf("the second: %v", err)
		}
		_, metrics := asks(t, "GET", url+"/metrics", "")
		for _, want := range []string{
			`toxiproxy_proxy_received_bytes_total{direction="upstream",listener="127.0.0.1:` + port + `",proxy="mongo",upstream="` + peer.Addr() + `"} `,
			`toxiproxy_proxy_sent_bytes_total{direction="downstream",listener="127.0.0.1:` + port + `",proxy="mongo",upstream="` + peer.Addr() + `"} `,
			`wirewait_connections_open`,
		} {
			_, value, ok := strings.Cut(metrics, want)
			if value, _, _ = strings.Cut(value, "\n"); !ok || value == "0" {
				t.Errorf("no %s in\n%s", want, metrics)
			}
		}
	})
	w.signal(syscall.SIGTERM)
	w.stopped()
	if log := w.log(); strings.Count(log, `"Name":"insert orders"`) != 2 || !strings.Contains(log, `"mongo/refuse_downstream"`) {
		t.Errorf("two inserts, one of them refused, are not on spans:\n%s", log)
	}
}

// TestToxiproxy_WhatCannotBe: it ends instead of running without what was asked
// for.
func TestToxiproxy_WhatCannotBe(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, taken, _ := net.SplitHostPort(ln.Addr().String())
	path := filepath.Join(t.TempDir(), "proxies.json")
	if err := os.WriteFile(path, []byte(`[{"name": "a"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-port", taken}, 1, "choose another port with -port"},
		{[]string{"-port", "0", "-config", path}, 1, "missing required field: upstream at proxy 1"},
		{[]string{"-port", "0", "-config", path + ".missing"}, 1, "no such file"},
		{[]string{"-port", "http"}, 2, "the port is a number"},
		{[]string{"-seed", "x"}, 2, "invalid value"},
		{[]string{"-nonsense"}, 2, "-nonsense"},
		{[]string{"proxies.json"}, 2, "toxiproxy takes flags only"},
	} {
		code, _, errs := command(t, append([]string{"toxiproxy", "-host=127.0.0.1"}, tt.args...)...)
		if code != tt.code || !strings.Contains(errs, tt.want) {
			t.Errorf("%q: exit %d, want %d; %q lacks %q", tt.args, code, tt.code, errs, tt.want)
		}
	}
	if code, out, _ := command(t, "toxiproxy", "--version"); code != 0 || !strings.HasPrefix(out, "toxiproxy-server version 2.12.0") {
		t.Errorf("exit %d, %q", code, out)
	}
}

// TestToxiproxy_ItsName: a program that is called as Toxiproxy's is it.
func TestToxiproxy_ItsName(t *testing.T) {
	for name, want := range map[string]string{
		"/toxiproxy": "toxiproxy -host=0.0.0.0", "toxiproxy-server": "toxiproxy -host=0.0.0.0", "/usr/local/bin/wirewait": "-host=0.0.0.0",
	} {
		if got := strings.Join(asToxiproxy([]string{name, "-host=0.0.0.0"})[1:], " "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestToxiproxy_LogLevel(t *testing.T) {
	for v, want := range map[string]slog.Level{
		"": slog.LevelInfo, "trace": slog.LevelDebug, "DEBUG": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn,
		"error": slog.LevelError, "fatal": slog.LevelError, "panic": slog.LevelError,
	} {
		if level, unknown := logLevel(v); level != want || unknown != "" {
			t.Errorf("%q: %v, %q", v, level, unknown)
		}
	}
	w := startToxiproxy(t, []string{"LOG_LEVEL=loud"}, "-host=127.0.0.1", "-port=0")
	w.line(`"level":"error","message":"unknown LOG_LEVEL value: \\"loud\\""`)
	url := w.api()
	if code, text := asks(t, "GET", url+"/metrics", ""); code != 404 {
		t.Errorf("/metrics without a flag: %d %s", code, text)
	}
	w.signal(syscall.SIGINT)
	w.stopped()
}

// TestRun_AnswersToxiproxyClients: a link of run is a proxy.
func TestRun_AnswersToxiproxyClients(t *testing.T) {
	peer := startMongo(t)
	w := start(t, nil, "--listen", "127.0.0.1:0", "--upstream", peer.Addr())
	at := w.addr()
	code, text := asks(t, "GET", "http://"+w.adminAddr()+"/proxies", "")
	if want := `"listen":"` + at + `","upstream":"` + peer.Addr() + `","enabled":true,"toxics":[]}`; code != 200 || !strings.Contains(text, want) {
		t.Errorf("%d %s", code, text)
	}
}
