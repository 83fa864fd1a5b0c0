package main

import (
	"bytes"
	"context"
	"io"
	"math"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestDemoPostgres_ReleasersByLevel(t *testing.T) {
	needPostgres(t)
	quietTraces(t)
	for names, by := range map[string]string{"ANY 1 (s1, s2)": "s1", "FIRST 1 (s2, s1)": "s2"} {
		report := demoJSON(t, "postgres", "--json", "--writes", "5", "--names", names)
		levels := new(postgresWAN).levels()
		if len(report.Rows) != len(levels) || !strings.Contains(report.Cluster, names) {
			t.Fatalf("%d rows for %s", len(report.Rows), report.Cluster)
		}
		rtt := map[string]float64{"s1": 40, "s2": 120}[by]
		for i, row := range report.Rows {
			if row.SynchronousCommit != levels[i] || row.Count != 5 {
				t.Errorf("row %d is %+v, want 5 at %s", i, row, levels[i])
			}
			waits := i >= 2 // remote_write and above
			if row.ReleasedBy[by] < 4 && waits || !waits && (len(row.ReleasedBy) > 0 || row.Basis["not_waited"] != 5) {
				t.Errorf("%s, %s: released by %v, %v", names, row.SynchronousCommit, row.ReleasedBy, row.Basis)
			}
			if row.ReleasedBy[by] == 5 && row.Replication < rtt {
				t.Errorf("%s, %s: replication took %.1f ms, want %.0f at least", names, row.SynchronousCommit, row.Replication, rtt)
			}
			if !waits && row.Replication != 0 || math.IsNaN(row.P50) || row.P99 < row.P50 {
				t.Errorf("%s, %s: %+v", names, row.SynchronousCommit, row)
			}
		}
	}
}

func TestDemoPostgres_PrintsTableAndWaterfall(t *testing.T) {
	needPostgres(t)
	quietTraces(t)
	out, errs, code := runDemo(t, "postgres", "--writes", "3")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, want := range []string{"s1 at 40ms, s2 at 120ms", "remote_apply", "released by", "nobody", "One write:", "replication", "released by s1", "traces: "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}

func TestDemoPostgres_BadUsage(t *testing.T) {
	for _, args := range [][]string{
		{"--writes", "0"}, {"--writes", "many"}, {"--names", "ANY 3 (s1, s2)"}, {"--names", "s9"}, {"--names", "ANY"}, {"now"},
	} {
		if _, errs, code := runDemo(t, append([]string{"postgres"}, args...)...); code != exitUsage || !strings.Contains(errs, "wirewait demo postgres") {
			t.Errorf("%q: exit %d, %q; want %d and the command's name", args, code, errs, exitUsage)
		}
	}
}

func TestLab_BadUsage(t *testing.T) {
	for _, args := range [][]string{
		{}, {"oracle"}, {"postgres", "now"}, {"postgres", "--standby", "s1"}, {"postgres", "--standby", "s1=fast"},
		{"postgres", "--names", "ANY 1"}, {"postgres", "--admin", "x"},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"wirewait", "lab"}, args...), strings.NewReader(""), &out, &errs)
		if code != exitUsage || !strings.Contains(errs.String(), "wirewait lab") {
			t.Errorf("%q: exit %d, %q; want %d and the command's name", args, code, errs.String(), exitUsage)
		}
	}
}

// The lab runs until it's asked to stop: writes go through it, /metrics tells of
// them, and at its end the servers are gone.
func TestLabPostgres_RunsUntilItIsAskedToStop(t *testing.T) {
	needPostgres(t)
	quietTraces(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read, write := io.Pipe()
	var errs bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		args := []string{"wirewait", "lab", "postgres", "--admin", "127.0.0.1:0", "--standby", "near=10ms", "--names", "near"}
		ended <- run(ctx, args, strings.NewReader(""), write, &errs)
		write.Close()
	}()
	url := regexp.MustCompile(`postgres://\S+`)
	var links []string
	var admin string
	buf := make([]byte, 4096)
	for text := ""; !strings.Contains(text, "SIGINT"); {
		n, err := read.Read(buf)
		if err != nil {
			t.Fatalf("it ended: %v, %s", <-ended, errs.String())
		}
		text += string(buf[:n])
		links = url.FindAllString(text, -1)
		if m := regexp.MustCompile(`admin: (http://\S+)/metrics`).FindStringSubmatch(text); m != nil {
			admin = m[1]
		}
	}
	go io.Copy(io.Discard, read)
	if len(links) != 3 || admin == "" {
		t.Fatalf("%d connection strings, admin %q", len(links), admin)
	}
	insertThrough(t, links[0])
	for done := false; !done; {
		metrics := get(t, admin+"/metrics")
		done = strings.Contains(metrics, `wirewait_wait="replication"`) && strings.Contains(metrics, `wirewait_server_journal_bytes_per_s{wirewait_server="pg.p"}`)
	}
	cancel()
	if code := <-ended; code != 0 {
		t.Errorf("exit %d: %s", code, errs.String())
	}
	for _, link := range links {
		if conn, err := pgx.Connect(t.Context(), link); err == nil {
			conn.Close(t.Context())
			t.Errorf("%s still answers", link)
		}
	}
}

func insertThrough(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	begun := time.Now()
	if _, err := conn.Exec(t.Context(), "create table t (n int)"); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(begun); d < 10*time.Millisecond {
		t.Errorf("a commit took %v, and its standby is 10 ms away", d)
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
