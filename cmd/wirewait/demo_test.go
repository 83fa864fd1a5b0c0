package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/wirewait/wirewait/internal/lab"
)

// demoReport is what demo --json prints.
type demoReport struct {
	Cluster, Traces string
	Rows            []struct {
		WriteConcern      string            `json:"write_concern"`
		SynchronousCommit string            `json:"synchronous_commit"`
		Count             uint64            `json:"count"`
		P50               float64           `json:"p50_ms"`
		P99               float64           `json:"p99_ms"`
		Receive           float64           `json:"receive_ms"`
		Request           float64           `json:"request_ms"`
		Server            float64           `json:"server_ms"`
		Replication       float64           `json:"replication_ms"`
		Reply             float64           `json:"reply_ms"`
		ReleasedBy        map[string]uint64 `json:"released_by"`
		Basis             map[string]uint64 `json:"basis"`
	}
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

func demoJSON(t *testing.T, args ...string) (r demoReport) {
	t.Helper()
	out, errs, code := runDemo(t, args...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return r
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

// The nearer member releases what waits for a majority, the farther one what
// waits for all, and nobody the rest.
func TestDemo_ReleasersByWriteConcern(t *testing.T) {
	quietTraces(t)
	r := demoJSON(t, "--json", "--writes", "10")
	if len(r.Rows) != 4 || !strings.Contains(r.Cluster, "c in syd at 92ms") {
		t.Fatalf("%+v", r)
	}
	for i, want := range []struct {
		concern, by string
		rtt         float64
	}{{"1", "", 0}, {"1 j", "", 0}, {"majority", "c", 92}, {"3", "b", 160}} {
		row := r.Rows[i]
		if row.WriteConcern != want.concern || row.Count != 10 {
			t.Errorf("row %d: %+v, want 10 with %s", i, row, want.concern)
		}
		// Not all: a machine in a hurry is late with what the members say.
		if want.by != "" && (row.ReleasedBy[want.by] < 8 || row.Replication < 0.8*want.rtt) {
			t.Errorf("%s: released by %v in %.1f ms, want %s in %.0f", want.concern, row.ReleasedBy, row.Replication, want.by, want.rtt)
		}
		if want.by == "" && (len(row.ReleasedBy) > 0 || row.Replication != 0) {
			t.Errorf("%s: released by %v, want nobody", want.concern, row.ReleasedBy)
		}
		if row.P50 < want.rtt || row.P99 < row.P50 {
			t.Errorf("%s: %+v", want.concern, row)
		}
	}
}

func TestDemo_PrintsTableWaterfallAndWhereSpansWent(t *testing.T) {
	quietTraces(t)
	out, errs, code := runDemo(t, "--writes", "3")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, want := range []string{
		"app, a in sgp at 0s, b in fra at 160ms, c in syd at 92ms", "a model of MongoDB 8.0",
		"write concern", "w:1 j", "receive", "request", "server", "replication", "reply", "nobody",
		"One write:", "insert orders   majority", "released by rs0.c", "traces: ",
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
	_, errs, code := runDemo(t, "postgres")
	if code != exitFailure || !strings.Contains(errs, lab.ErrNoPostgres.Error()) {
		t.Errorf("exit %d, %q; want a failure that names what is missing", code, errs)
	}
}

func TestDemo_BadUsage(t *testing.T) {
	for _, args := range [][]string{{"--writes", "0"}, {"--writes", "many"}, {"--seed", "-1"}, {"now"}} {
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
	for _, demo := range [][]string{{"demo"}, {"demo", "postgres"}} {
		ctx, cancel := context.WithCancel(t.Context())
		out := &cancelWriter{cancel: cancel}
		var errs bytes.Buffer
		code := run(ctx, append([]string{"wirewait"}, demo...), strings.NewReader(""), out, &errs)
		cancel()
		if code != exitFailure || !strings.Contains(errs.String(), "interrupted") {
			t.Errorf("%v: exit %d, %q; want %d and \"interrupted\"", demo, code, errs.String(), exitFailure)
		}
	}
	left, err := filepath.Glob(filepath.Join(tmp, "wirewait-*", "run-*"))
	files, _ := filepath.Glob(filepath.Join(tmp, "wirewait-mongodb-*"))
	if left = append(left, files...); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
