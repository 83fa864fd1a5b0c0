package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/wirewait/wirewait/internal/lab"
)

// quorumFile is a primary that three places reach, with its setting.
func quorumFile(primary, names string) string {
	return fmt.Sprintf(`network:
  - {between: [app, sgp], rtt: 0}
  - {between: [fra, sgp], rtt: 40ms}
  - {between: [syd, sgp], rtt: 120ms}
clusters:
  pg:
    protocol: postgres
    synchronous_standby_names: "%s"
    members:
      p: {site: sgp, upstream: "%s"}
      s1: {site: fra}
      s2: {site: syd}
links:
  - {from: app, to: pg.p, listen: "127.0.0.1:0"}
  - {from: pg.s1, to: pg.p, listen: "127.0.0.1:0"}
  - {from: pg.s2, to: pg.p, listen: "127.0.0.1:0"}
`, names, primary)
}

// TestRun_FileNamesWhoReleasedACommit is what a person does with a cluster: a
// file, primary_conninfo that leads to its links, and spans. SIGHUP takes in
// another setting.
func TestRun_FileNamesWhoReleasedACommit(t *testing.T) {
	var w *started
	file := filepath.Join(t.TempDir(), "wirewait.yaml")
	c, err := lab.StartPostgresCluster(t.Context(), lab.PostgresClusterOptions{
		Standbys: []string{"s1", "s2"},
		Through: func(primary string) (map[string]string, error) {
			writeFile(t, file, quorumFile(primary, "ANY 1 (s1, s2)"))
			w = start(t, []string{"OTEL_TRACES_EXPORTER=console"}, file)
			addr := func(link string) string { return w.line(`^link ` + link + `-pg\.p: (\S+) -> `)[1] }
			return map[string]string{"s1": addr("pg.s1"), "s2": addr("pg.s2")}, nil
		},
	})
	if errors.Is(err, lab.ErrNoPostgres) && os.Getenv("WIREWAIT_CI") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	}()
	app := c.URL(w.line(`^link app-pg\.p: (\S+) -> `)[1])
	if err := c.SetSyncNames(t.Context(), "ANY 1 (s1, s2)"); err != nil {
		t.Fatal(err)
	}
	if err := insertAt(t.Context(), app, "on", 0); err != nil { // CREATE TABLE
		t.Fatal(err)
	}
	if err := insertAt(t.Context(), app, "on", 1); err != nil {
		t.Fatal(err)
	}
	if err := c.SetSyncNames(t.Context(), "FIRST 1 (s2, s1)"); err != nil {
		t.Fatal(err)
	}
	// What was written before the reload is judged by what was in force then.
	writeFile(t, file, quorumFile(c.Primary.Addr(), "FIRST 1 (s2, s1)"))
	w.signal(syscall.SIGHUP)
	w.line(`msg=reloaded `)
	if err := insertAt(t.Context(), app, "remote_apply", 1); err != nil {
		t.Fatal(err)
	}
	w.signal(syscall.SIGTERM)
	w.stopped()

	byLevel := map[string]consoleSpan{}
	for dec := json.NewDecoder(&w.stdout); dec.More(); {
		var s consoleSpan
		if err := dec.Decode(&s); err != nil {
			t.Fatal(err)
		}
		if level, _ := s.attribute("postgresql.synchronous_commit").(string); s.Name == "INSERT orders" {
			byLevel[level] = s
		}
	}
	for level, by := range map[string]string{"on": "s1", "remote_apply": "s2"} {
		s := byLevel[level]
		if got := s.attribute("wirewait.released_by"); got != by {
			t.Errorf("%s: released by %v, %v; want %s", level, got, s.attribute("wirewait.released_by.basis"), by)
			continue
		}
		rtt := map[string]float64{"s1": 40, "s2": 120}[by]
		if ms, _ := s.attribute("wirewait.wait.replication_ms").(float64); ms < rtt {
			t.Errorf("%s: replication took %v ms, want %v at least", level, ms, rtt)
		}
		if s.attribute("postgresql.commit.lsn") == nil || s.attribute("wirewait.dominant_wait") != "replication" {
			t.Errorf("%s: commit at %v, dominant wait %v", level, s.attribute("postgresql.commit.lsn"), s.attribute("wirewait.dominant_wait"))
		}
	}
}
