package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/wirewait/wirewait/internal/lab"
)

// started is a wirewait in a process of its own.
type started struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout bytes.Buffer
	exited chan error

	mu    sync.Mutex
	lines []string
	more  chan struct{} // closed and replaced at each line
	ended bool
}

// start runs "wirewait run" with these arguments and environment variables.
func start(t *testing.T, env []string, args ...string) *started {
	t.Helper()
	s := &started{t: t, exited: make(chan error, 1), more: make(chan struct{})}
	s.cmd = exec.Command(os.Args[0], append([]string{"run", "--admin", "127.0.0.1:0"}, args...)...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "OTEL_") {
			s.cmd.Env = append(s.cmd.Env, v)
		}
	}
	s.cmd.Env = append(append(s.cmd.Env, asWirewait+"=1"), env...)
	s.cmd.Stdout = &s.stdout
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cmd.Process.Kill() })
	go s.read(stderr)
	return s
}

func (s *started) read(r io.Reader) {
	for scan := bufio.NewScanner(r); scan.Scan(); {
		s.mu.Lock()
		s.lines = append(s.lines, scan.Text())
		close(s.more)
		s.more = make(chan struct{})
		s.mu.Unlock()
	}
	s.mu.Lock()
	s.ended = true
	close(s.more)
	s.mu.Unlock()
	s.exited <- s.cmd.Wait()
}

// line waits for a line on standard error that matches, and returns the
// expression's groups.
func (s *started) line(expression string) []string {
	s.t.Helper()
	re := regexp.MustCompile(expression)
	for {
		s.mu.Lock()
		for _, l := range s.lines {
			if m := re.FindStringSubmatch(l); m != nil {
				s.mu.Unlock()
				return m
			}
		}
		if s.ended {
			s.t.Fatalf("it ended without a line like %s:\n%s", expression, strings.Join(s.lines, "\n"))
		}
		more := s.more
		s.mu.Unlock()
		<-more
	}
}

func (s *started) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

func (s *started) signal(sig os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// addr is where the link listens.
func (s *started) addr() string { return s.line(`^link: (\S+) -> `)[1] }

// stopped waits for a clean end.
func (s *started) stopped() {
	s.t.Helper()
	if err := <-s.exited; err != nil {
		s.t.Fatalf("%v\n%s", err, s.log())
	}
}

func startMongo(t *testing.T) *lab.Mongo {
	t.Helper()
	m, err := lab.StartMongo(lab.MongoOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Stop)
	return m
}

// withMongo hands work a client, and disconnects it while the server is there.
func withMongo(t *testing.T, uri string, work func(*mongo.Client)) {
	t.Helper()
	c, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Disconnect(context.Background())
	work(c)
}

// consoleSpan is a span as OpenTelemetry's console exporter prints it.
type consoleSpan struct {
	Name       string
	Attributes []struct {
		Key   string
		Value struct{ Value any }
	}
}

func (s consoleSpan) attribute(key string) any {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.Value
		}
	}
	return nil
}

func consoleSpans(t *testing.T, out io.Reader) map[string]consoleSpan {
	t.Helper()
	spans := map[string]consoleSpan{}
	for dec := json.NewDecoder(out); ; {
		var s consoleSpan
		if err := dec.Decode(&s); err == io.EOF {
			return spans
		} else if err != nil {
			t.Fatal(err)
		}
		spans[s.Name] = s
	}
}

func TestRun_DelaysAndSpansAWrite(t *testing.T) {
	peer := startMongo(t)
	w := start(t, []string{"OTEL_TRACES_EXPORTER=console"},
		"--listen", "127.0.0.1:0", "--upstream", peer.Addr(), "--rtt", "40ms", "--jitter", "1ms", "--seed", "7")
	if got := w.line(`^link: .*`)[0]; !strings.HasSuffix(got, " -> "+peer.Addr()+", protocol detected, rtt 40ms (20ms ± 1ms each way), seed 7") {
		t.Errorf("start line %q", got)
	}
	w.line(`^traces: to standard output$`)

	withMongo(t, peer.URI(w.addr()), func(c *mongo.Client) {
		orders := c.Database("shop").Collection("orders", options.Collection().SetWriteConcern(writeconcern.Majority()))
		if _, err := orders.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}}); err != nil { // connects
			t.Fatal(err)
		}
		begin := time.Now()
		if _, err := orders.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 2}}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took < 38*time.Millisecond {
			t.Errorf("the write took %v: less than the round trip", took)
		}
	})
	w.signal(syscall.SIGTERM)
	w.stopped()

	spans := consoleSpans(t, &w.stdout)
	root := spans["insert orders"]
	for _, part := range []string{"wirewait.wait.request_ms", "wirewait.wait.reply_ms"} {
		if ms, _ := root.attribute(part).(float64); ms < 19 {
			t.Errorf("%s is %v, want at least 19", part, root.attribute(part))
		}
	}
	if got := root.attribute("mongodb.write_concern.w"); got != "majority" {
		t.Errorf("write concern %v", got)
	}
	for _, name := range []string{"request", "server", "reply"} {
		if _, ok := spans[name]; !ok {
			t.Errorf("no child span %s", name)
		}
	}
}

func TestRun_ServesMetricsAndHealth(t *testing.T) {
	peer := startMongo(t)
	w := start(t, nil, "--listen", "127.0.0.1:0", "--upstream", peer.Addr(), "--connect=false")
	w.line(`^link: .* protocol detected, no delay, seed \d+$`)
	w.line(`^traces: off \(set OTEL_EXPORTER_OTLP_ENDPOINT\)$`)
	page := w.line(`^page: (http://127\.0\.0\.1:\d+)/$`)[1]
	admin := w.line(`^admin: (http://127\.0\.0\.1:\d+)/metrics and /healthz$`)[1]
	withMongo(t, peer.URI(w.addr()), func(c *mongo.Client) {
		if err := c.Ping(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	})
	if page != admin {
		t.Errorf("the page is at %s, the rest at %s", page, admin)
	}
	for path, want := range map[string]string{"/": "<title>wirewait</title>", "/healthz": "ok\n", "/metrics": "wirewait_connections_total"} {
		resp, err := http.Get(admin + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d, %v, %q has no %q", path, resp.StatusCode, err, body, want)
		}
	}
	w.signal(os.Interrupt)
	w.stopped()
}

// silent accepts connections, tells of the first bytes that arrive, and never
// answers.
func silent(t *testing.T) (addr string, arrived <-chan struct{}) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	first := make(chan struct{}, 16)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := c.Read(make([]byte, 1024)); err == nil {
					first <- struct{}{}
				}
				io.Copy(io.Discard, c)
			}()
		}
	}()
	return ln.Addr().String(), first
}

// ping is a whole OP_MSG that awaits a reply: {ping: 1, $db: "a"}.
const ping = "\x33\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\xdd\x07\x00\x00\x00\x00\x00\x00\x00" +
	"\x1e\x00\x00\x00\x10ping\x00\x01\x00\x00\x00\x02$db\x00\x02\x00\x00\x00a\x00\x00"

func TestRun_SecondSignalStopsAtOnce(t *testing.T) {
	upstream, arrived := silent(t)
	w := start(t, nil, "--listen", "127.0.0.1:0", "--upstream", upstream, "--protocol", "mongodb", "--drain", "10h")
	c, err := net.Dial("tcp", w.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, ping); err != nil {
		t.Fatal(err)
	}
	<-arrived
	w.signal(syscall.SIGTERM)
	w.line(`level=INFO msg=stopping reason=terminated drain=10h`)
	w.signal(syscall.SIGTERM)
	w.stopped()
	w.line(`1 connections were cut: a second terminated`)
}

func TestRun_DrainEnds(t *testing.T) {
	upstream, arrived := silent(t)
	w := start(t, nil, "--listen", "127.0.0.1:0", "--upstream", upstream, "--protocol", "mongodb", "--drain", "50ms")
	c, err := net.Dial("tcp", w.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, ping); err != nil {
		t.Fatal(err)
	}
	<-arrived
	w.signal(syscall.SIGTERM)
	w.stopped()
	w.line(`1 connections were cut: --drain 50ms is over`)
}

func TestRun_StartFailuresSayWhatToDo(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().String()
	tests := []struct {
		args, env string
		want      string
	}{
		{"--listen 127.0.0.1:0 --admin " + port, "", "--admin off"},
		{"--admin off --listen " + port, "", "--listen (127.0.0.1:0"},
		{"--admin off --listen 127.0.0.1:0 --tls-cert /nonexistent --tls-key /nonexistent", "", "/nonexistent"},
		{"--admin off --listen 127.0.0.1:0", "jaeger", "OTEL_TRACES_EXPORTER"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			t.Setenv("OTEL_TRACES_EXPORTER", tt.env)
			var out, errs bytes.Buffer
			code := run(t.Context(), append([]string{"wirewait", "run", "--upstream", "127.0.0.1:9"}, strings.Fields(tt.args)...), nil, &out, &errs)
			if code != exitFailure || !strings.Contains(errs.String(), tt.want) || strings.Count(errs.String(), "\n") != 1 {
				t.Errorf("exit %d, %q; want %d and one line with %q", code, errs.String(), exitFailure, tt.want)
			}
		})
	}
}

// TestRun_EndsWithContext: a program around it can stop it, as SIGTERM does.
func TestRun_EndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	var out, errs bytes.Buffer
	if code := run(ctx, []string{"wirewait", "run", "--admin", "off", "--listen", "127.0.0.1:0", "--upstream", "unix:/nonexistent.sock",
		"--delay-to-server", "1m", "--delay-to-client", "250us", "--connect=false", "--tls", "decline"}, nil, &out, &errs); code != 0 {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	want := "-> unix:/nonexistent.sock, protocol detected, rtt 1m0.00025s (1m to server, 250µs to client), connecting is free, seed "
	if !strings.Contains(errs.String(), want) || !strings.Contains(errs.String(), "\nadmin: off\n") {
		t.Errorf("%q has no %q", errs.String(), want)
	}
}
