package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/wirewait/wirewait/internal/lab"
)

// demoReport is what demo --json prints.
type demoReport struct {
	Protocol, Server, Traces string
	Waits                    []demoRow
}

// quietTraces keeps the demo from sending spans to whatever the tests'
// environment names.
func quietTraces(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
}

func runDemo(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"wirewait", "demo"}, args...), strings.NewReader(""), &out, &errs)
	return out.String(), errs.String(), code
}

func demoJSON(t *testing.T, args ...string) demoReport {
	t.Helper()
	out, errs, code := runDemo(t, append([]string{"--json"}, args...)...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var r demoReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return r
}

func (r demoReport) row(t *testing.T, operation, waitsFor string) demoRow {
	t.Helper()
	for _, row := range r.Waits {
		if row.Operation == operation && row.WaitsFor == waitsFor {
			return row
		}
	}
	t.Errorf("no row %s/%s in %+v", operation, waitsFor, r.Waits)
	return demoRow{}
}

// checkParts asserts that the parts add up and that half the round trip, less
// the jitter, stands on each side that has one.
func checkParts(t *testing.T, row demoRow, oneWay float64, replies bool) {
	t.Helper()
	sum := row.Receive + row.Request + row.Server + row.Replication + row.Reply
	if math.Abs(sum-row.Total) > 0.001 {
		t.Errorf("%s/%s: the parts are %.3f ms together, the total %.3f", row.Operation, row.WaitsFor, sum, row.Total)
	}
	if row.Request < oneWay || replies && row.Reply < oneWay {
		t.Errorf("%s/%s: request %.3f ms, reply %.3f ms, want at least %.3f each", row.Operation, row.WaitsFor, row.Request, row.Reply, oneWay)
	}
}

func needPostgres(t *testing.T) {
	t.Helper()
	pg, err := lab.StartPostgres(t.Context(), lab.PostgresOptions{})
	if err != nil {
		if os.Getenv("WIREWAIT_CI") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	if err := pg.Stop(); err != nil {
		t.Fatal(err)
	}
}

func TestDemo_PostgresLevels(t *testing.T) {
	needPostgres(t)
	quietTraces(t)
	r := demoJSON(t, "--protocol", "postgres", "--rtt", "10ms", "--jitter", "1ms")
	if r.Protocol != "postgres" || !strings.HasPrefix(r.Server, "PostgreSQL ") {
		t.Errorf("ran on %s, %s", r.Protocol, r.Server)
	}
	for _, level := range pgLevels {
		for operation, want := range map[string]uint64{"INSERT": pgWrites, "UPDATE": pgInBatch} {
			row := r.row(t, operation, level)
			if row.Count != want || !row.Write || row.Errors != 0 {
				t.Errorf("%s/%s: %+v, want %d writes without errors", operation, level, row, want)
			}
			checkParts(t, row, 4, true)
		}
		if commit := r.row(t, "COMMIT", level); commit.Count != 1 {
			t.Errorf("COMMIT/%s: %d, want 1", level, commit.Count)
		}
	}
	if block := r.row(t, "INSERT", "in transaction"); block.Count != uint64(len(pgLevels)*pgInBlock) {
		t.Errorf("INSERT in transaction: %d, want %d", block.Count, len(pgLevels)*pgInBlock)
	}
	if reads := r.row(t, "SELECT", ""); reads.Count != uint64(len(pgLevels)*pgReads) || reads.Write {
		t.Errorf("SELECT: %+v, want %d reads", reads, len(pgLevels)*pgReads)
	}
}

func TestDemo_MongoConcerns(t *testing.T) {
	quietTraces(t)
	r := demoJSON(t, "--protocol", "mongodb", "--rtt", "10ms", "--jitter", "1ms")
	if r.Protocol != "mongodb" || !strings.Contains(r.Server, "in this process") {
		t.Errorf("ran on %s, %s: want it said that it's in this process", r.Protocol, r.Server)
	}
	for concern, server := range map[string]float64{"w:0": 0, "w:1": 0, "w:1 j": 0, "majority": 12} {
		row := r.row(t, "insert", concern)
		if row.Count != mongoWrites || !row.Write || row.Errors != 0 {
			t.Errorf("insert/%s: %+v, want %d writes without errors", concern, row, mongoWrites)
		}
		checkParts(t, row, 4, concern != "w:0")
		if row.Server < server {
			t.Errorf("insert/%s: server %.3f ms, want at least %.0f", concern, row.Server, server)
		}
	}
	if find := r.row(t, "find", ""); find.Count != mongoReads || find.Write {
		t.Errorf("find: %+v, want %d reads", find, mongoReads)
	}
}

func TestDemo_PrintsTableWaterfallAndWhereSpansWent(t *testing.T) {
	quietTraces(t)
	out, errs, code := runDemo(t, "--protocol", "mongodb", "--rtt", "2ms", "--jitter", "0s")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, want := range []string{
		"wan     2ms round trip",
		"receive", "request", "server", "replication", "reply",
		"One write:", "injected", "majority", "traces: ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if errs != "" {
		t.Errorf("standard error: %s", errs)
	}
}

func TestDemo_WithoutPostgresSaysHowToGetIt(t *testing.T) {
	quietTraces(t)
	t.Setenv(lab.PostgresBinEnv, t.TempDir())
	out, errs, code := runDemo(t, "--rtt", "2ms", "--jitter", "0s")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	if !strings.Contains(out, lab.ErrNoPostgres.Error()) || !strings.Contains(out, "MongoDB peer in this process") {
		t.Errorf("doesn't say that this is the substitute:\n%s", out)
	}
	out, errs, code = runDemo(t, "--protocol", "postgres")
	if code != exitFailure || !strings.Contains(errs, lab.ErrNoPostgres.Error()) || out != "" {
		t.Errorf("exit %d, %q, %q; want a failure that names what is missing", code, out, errs)
	}
}

func TestDemo_BadUsage(t *testing.T) {
	for _, args := range [][]string{{"--protocol", "mysql"}, {"--rtt", "-1ms"}, {"--rtt", "fast"}, {"now"}} {
		if _, errs, code := runDemo(t, args...); code != exitUsage || !strings.Contains(errs, "wirewait demo") {
			t.Errorf("%q: exit %d, %q; want %d and the command's name", args, code, errs, exitUsage)
		}
	}
}

// cancelWriter ends a context as soon as the client begins.
type cancelWriter struct {
	mu     sync.Mutex
	cancel context.CancelFunc
	text   strings.Builder
}

func (w *cancelWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if bytes.Contains(b, []byte("client ")) {
		w.cancel()
	}
	return w.text.Write(b)
}

func TestDemo_InterruptLeavesNothing(t *testing.T) {
	needPostgres(t)
	quietTraces(t)
	tmp, err := os.MkdirTemp("", "wwd")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	if err := os.Chmod(tmp, 0o711); err != nil { // the server's user passes through it
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", tmp)
	for _, protocol := range []string{"postgres", "mongodb"} {
		ctx, cancel := context.WithCancel(t.Context())
		out := &cancelWriter{cancel: cancel}
		var errs bytes.Buffer
		code := run(ctx, []string{"wirewait", "demo", "--protocol", protocol}, strings.NewReader(""), out, &errs)
		cancel()
		if code != exitFailure || !strings.Contains(errs.String(), "interrupted") {
			t.Errorf("%s: exit %d, %q; want %d and \"interrupted\"", protocol, code, errs.String(), exitFailure)
		}
	}
	left, err := filepath.Glob(filepath.Join(tmp, "wirewait-lab-*", "run-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
