package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/wirewait/wirewait/proxy/admin"
)

// command runs wirewait in this process, as somebody would who asks another.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"wirewait"}, args...), strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// adminAddr is where the admin server listens.
func (s *started) adminAddr() string { return s.line(`^admin: http://([^/]+)/`)[1] }

// until asks again until the answer is as it must become.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// reportOf is wirewait report --json.
func reportOf(t *testing.T, address string, args ...string) (r reported) {
	t.Helper()
	_, out, errs := command(t, append([]string{"report", "--json", "--admin", address}, args...)...)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %q, %s", err, out, errs)
	}
	return r
}

func insert(t *testing.T, c *mongo.Client, n int, w *writeconcern.WriteConcern) {
	t.Helper()
	o := options.Collection()
	if w != nil {
		o.SetWriteConcern(w)
	}
	orders := c.Database("shop").Collection("orders", o)
	for range n {
		if _, err := orders.InsertOne(t.Context(), bson.D{{Key: "item", Value: "kettle"}}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReport_WhatWritesWaitedFor is a person who looks at a running wirewait,
// before and after the application wrote, and a CI that asserts on it.
func TestReport_WhatWritesWaitedFor(t *testing.T) {
	peer := startMongo(t)
	w := start(t, nil, "--listen", "127.0.0.1:0", "--upstream", peer.Addr(), "--rtt", "20ms")
	address := w.adminAddr()
	if code, out, errs := command(t, "report", "--admin", address); code != 1 || !strings.Contains(errs, "0 writes seen") || !strings.Contains(out, "0 writes\n") {
		t.Errorf("before the first write: exit %d\n%s%s", code, out, errs)
	}
	withMongo(t, peer.URI(w.addr())+"&appname=till", func(c *mongo.Client) {
		insert(t, c, 20, writeconcern.Majority())
		insert(t, c, 5, nil)
		until(t, "25 writes are counted", func() bool { return reportOf(t, address).Waits.Writes == 25 })
		r := reportOf(t, address)
		if len(r.Waits.Rows) != 2 || r.Waits.Rows[1].WaitsFor != "majority" || r.Waits.Rows[1].Count != 20 || r.Waits.Rows[1].Total.P50 < 20 {
			t.Errorf("%+v", r.Waits.Rows)
		}
		if l := r.Links[0]; l.ToServer.PlannedMS < 9.9 || l.ToServer.AchievedMS < l.ToServer.PlannedMS || l.ToClient.DelayError == nil || l.Connections.Open == 0 {
			t.Errorf("%+v", l)
		}
		code, out, errs := command(t, "report", "--admin", address)
		if code != 0 || errs != "" {
			t.Errorf("exit %d, %s", code, errs)
		}
		for _, want := range []string{`(?m)^25 writes$`, `(?m)^\S+ +majority +20 +0 +2\d\.`, `(?m)^\S+ +default +5 +0 `, `(?m)^\S+ +20ms +[1-9]\d* +1\d\.\d\d -> \d\d\.`} {
			if !regexp.MustCompile(want).MatchString(out) {
				t.Errorf("no line like %s in\n%s", want, out)
			}
		}

		asserts(t, address)
		cutTill(t, address)
	})
	if code, out, errs := command(t, "report", "--reset", "--admin", address); code != 0 || !strings.HasPrefix(out, "25 writes") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if got := reportOf(t, address).Waits.Writes; got != 0 {
		t.Errorf("%d writes after a reset", got)
	}
}

func asserts(t *testing.T, address string) {
	t.Helper()
	for _, tt := range []struct {
		args string
		code int
		says []string // on standard output if the code is 0
	}{
		{"--max-p99 majority=60s --min-count 20", 0, []string{"ok: majority: p99 is ", "(20 writes)"}},
		{"--max-p99 majority=60s --max-p50 majority=60s --max-mean majority/server=60s --max-errors 0", 0, []string{"p50", "mean of server", "0 of 20 writes failed"}},
		{"--max-p99 60s --no-decode-errors", 0, []string{"ok: everything was decoded"}},
		{"--min-count 20", 0, []string{"ok: 20 writes"}},
		{"--min-count 25", 1, []string{"20 writes, and at least 25 are wanted", "5 writes are left out", "--any-basis counts them"}},
		{"--min-count 25 --any-basis", 0, []string{"ok: 25 writes"}},
		{"--max-p99 majority=19ms", 1, []string{"majority: p99 is ", "at most 19.00 ms are allowed"}},
		{"--max-p99 majority=60s --min-count 21", 1, []string{"20 writes with a reply, and at least 21"}},
		{"--max-p99 default=60s", 1, []string{"0 writes waited for default; there were: majority", "--any-basis"}},
		{"--max-p99 default=60s --any-basis", 0, []string{"ok: default"}},
		{"--max-p99 1=60s --max-p99 majority=1ms", 1, []string{"0 writes waited for w:1", "majority: p99"}},
		{"--max-p99 majority=1ms --link nowhere", 1, []string{"there is no link"}},
		{"--max-p99 majority=fast", 2, []string{"write WAITS_FOR=TIME"}},
		{"--max-p99 majority/wire=1ms", 2, []string{"a write has no part"}},
		{"", 2, []string{"nothing is asserted"}},
	} {
		code, out, errs := command(t, append([]string{"assert", "--admin", address}, strings.Fields(tt.args)...)...)
		said := errs
		if tt.code == 0 {
			said = out
		}
		if code != tt.code {
			t.Errorf("assert %s: exit %d, want %d\n%s%s", tt.args, code, tt.code, out, errs)
		}
		for _, want := range tt.says {
			if !strings.Contains(said, want) {
				t.Errorf("assert %s: no %q in\n%s", tt.args, want, said)
			}
		}
	}
}

// cutTill finds the application's connections by its name, and cuts one.
func cutTill(t *testing.T, address string) {
	t.Helper()
	code, out, _ := command(t, "connections", "--admin", address)
	row := regexp.MustCompile(`(?m)^(\d+) +\S+ +127\.0\.0\.1:\d+ +till +- +mongo-go-driver`).FindStringSubmatch(out)
	if code != 0 || row == nil {
		t.Fatalf("exit %d, no connection of till's:\n%s", code, out)
	}
	code, out, errs := command(t, "connections", "cut", "--admin", address, row[1])
	if code != 0 || !strings.HasPrefix(out, "cut: connection "+row[1]+" of 127.0.0.1:") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	until(t, "it is gone", func() bool {
		var all admin.Connections
		_, out, _ := command(t, "connections", "--json", "--admin", address)
		if err := json.Unmarshal([]byte(out), &all); err != nil {
			t.Fatal(err)
		}
		return !strings.Contains(out, `"id": `+row[1]+",")
	})
	if code, _, errs := command(t, "connections", "cut", "--admin", address, row[1]); code != 1 || !strings.Contains(errs, "there is no connection "+row[1]) {
		t.Errorf("cut twice: exit %d, %s", code, errs)
	}
}

func TestReport_Watch(t *testing.T) {
	peer := startMongo(t)
	w := start(t, nil, "--listen", "127.0.0.1:0", "--upstream", peer.Addr())
	withMongo(t, peer.URI(w.addr()), func(c *mongo.Client) { insert(t, c, 3, writeconcern.Majority()) })
	address := w.adminAddr()
	until(t, "3 writes are counted", func() bool { return reportOf(t, address).Waits.Writes == 3 })

	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out, printed := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"wirewait", "report", "--watch", "--every", "5ms", "--admin", address}, strings.NewReader(""), printed, io.Discard)
		printed.Close()
	}()
	times := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.Contains(lines.Text(), "\x1b") {
			t.Error("control characters go to what is no terminal")
		}
		if strings.HasPrefix(lines.Text(), "3 writes") {
			if times++; times == 3 {
				interrupt()
			}
		}
	}
	if code := <-ended; code != 0 || times < 3 {
		t.Errorf("exit %d after printing %d times", code, times)
	}
}

func TestReport_NobodyAnswers(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := ln.Addr().String()
	ln.Close()
	for _, args := range [][]string{{"report"}, {"report", "--watch"}, {"connections"}, {"assert", "--min-count", "1"}} {
		code, _, errs := command(t, append(args, "--admin", free)...)
		if code != 1 || !strings.Contains(errs, "no wirewait answers at "+free) || !strings.Contains(errs, "--admin") {
			t.Errorf("%v: exit %d, %q", args, code, errs)
		}
	}
	if code, _, errs := command(t, "report", "--admin", "off"); code != 2 || !strings.Contains(errs, "say where") {
		t.Errorf("--admin off: exit %d, %q", code, errs)
	}
}

// TestAdmin_Token: beyond loopback it's wanted, and it is shown nowhere: not in
// what /v1 and /metrics say, the log or the spans.
func TestAdmin_Token(t *testing.T) {
	peer := startMongo(t)
	const token = "planted-token-4711"
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := command(t, "run", "--upstream", peer.Addr(), "--listen", "127.0.0.1:0", "--admin", "0.0.0.0:0"); code != 1 || !strings.Contains(errs, "--admin-token-file") {
		t.Errorf("beyond loopback without a token: exit %d, %s", code, errs)
	}
	w := start(t, []string{"OTEL_TRACES_EXPORTER=console"}, "--listen", "127.0.0.1:0", "--upstream", peer.Addr(), "--admin", "0.0.0.0:0", "--admin-token-file", file, "--log-level", "debug")
	_, port, _ := net.SplitHostPort(w.adminAddr())
	address := net.JoinHostPort("127.0.0.1", port)
	withMongo(t, peer.URI(w.addr()), func(c *mongo.Client) { insert(t, c, 1, writeconcern.Majority()) })
	if code, _, errs := command(t, "report", "--admin", address); code != 1 || !strings.Contains(errs, "the token is missing or wrong") {
		t.Errorf("without the token: exit %d, %s", code, errs)
	}
	until(t, "the write is counted", func() bool {
		return reportOf(t, address, "--admin-token-file", file).Waits.Writes == 1
	})
	shown := ""
	for _, path := range []string{"/v1/config", "/v1/links", "/v1/connections", "/v1/waits", "/v1/health", "/metrics"} {
		c := &client{address: address, token: token}
		var body json.RawMessage
		if err := c.get(t.Context(), path, &body); err != nil && path != "/metrics" {
			t.Errorf("%s: %v", path, err)
		} else if err != nil {
			shown += err.Error()
		}
		shown += string(body)
	}
	if !strings.Contains(shown, `"admin_token": true`) {
		t.Error("/v1/config doesn't say that there is a token")
	}
	w.signal(os.Interrupt)
	w.stopped()
	shown += w.log() + w.stdout.String()
	if strings.Contains(shown, token) {
		t.Error("the token is shown")
	}
	if !strings.Contains(w.stdout.String(), "insert orders") {
		t.Error("no span was printed, so nothing was looked at")
	}
}

// TestAssert_NoDecodeErrors: what could not be read fails the run, whatever the
// figures of the rest are.
func TestAssert_NoDecodeErrors(t *testing.T) {
	peer := startMongo(t)
	w := start(t, nil, "--listen", "127.0.0.1:0", "--upstream", peer.Addr(), "--protocol", "mongodb")
	address := w.adminAddr()
	withMongo(t, peer.URI(w.addr()), func(c *mongo.Client) { insert(t, c, 1, writeconcern.Majority()) })
	until(t, "the write is counted", func() bool { return reportOf(t, address).Waits.Writes == 1 })
	if code, _, errs := command(t, "assert", "--no-decode-errors", "--admin", address); code != 0 {
		t.Errorf("exit %d, %s", code, errs)
	}
	c, err := net.Dial("tcp", w.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	until(t, "it is seen", func() bool { return reportOf(t, address).Links[0].Connections.Opaque == 1 })
	code, _, errs := command(t, "assert", "--no-decode-errors", "--max-p99", "majority=60s", "--admin", address)
	if code != 1 || !strings.Contains(errs, "1 connection could not be read to the end") {
		t.Errorf("exit %d, %s", code, errs)
	}
}
