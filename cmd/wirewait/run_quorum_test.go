package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/wirewait/wirewait/internal/lab"
)

// quorumFile is a primary that three places reach, with a setting of its cluster.
func quorumFile(primary, setting string) string {
	return fmt.Sprintf(`network:
  - {between: [app, sgp], rtt: 0}
  - {between: [fra, sgp], rtt: 40ms}
  - {between: [syd, sgp], rtt: 120ms}
clusters:
  pg:
    protocol: postgres
    %s
    members:
      p: {site: sgp, upstream: "%s"}
      s1: {site: fra}
      s2: {site: syd}
links:
  - {from: app, to: pg.p, listen: "127.0.0.1:0"}
  - {from: pg.s1, to: pg.p, listen: "127.0.0.1:0"}
  - {from: pg.s2, to: pg.p, listen: "127.0.0.1:0"}
`, setting, primary)
}

func standbyNames(names string) string { return `synchronous_standby_names: "` + names + `"` }

// quorum is a cluster behind a wirewait that has read a file.
type quorum struct {
	*started
	cluster *lab.PostgresCluster
	file    string
	app     string // URL of the application's link
}

// startQuorum starts a cluster whose standbys reach their primary through
// wirewait, which reads what quorumFile makes of a setting.
func startQuorum(t *testing.T, setting func(primary string) string) *quorum {
	t.Helper()
	q := &quorum{file: filepath.Join(t.TempDir(), "wirewait.yaml")}
	var err error
	q.cluster, err = lab.StartPostgresCluster(t.Context(), lab.PostgresClusterOptions{
		Standbys: []string{"s1", "s2"},
		Through: func(primary string) (map[string]string, error) {
			writeFile(t, q.file, quorumFile(primary, setting(primary)))
			q.started = start(t, []string{"OTEL_TRACES_EXPORTER=console"}, "--drain", "200ms", q.file)
			return map[string]string{"s1": q.link("pg.s1"), "s2": q.link("pg.s2")}, nil
		},
	})
	if errors.Is(err, lab.ErrNoPostgres) && os.Getenv("WIREWAIT_CI") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	q.app = q.cluster.URL(q.link("app"))
	return q
}

func (q *quorum) link(from string) string { return q.line(`^link ` + from + `-pg\.p: (\S+) -> `)[1] }

// inserts stops wirewait and returns its spans of INSERTs, by their level.
func (q *quorum) inserts(t *testing.T) map[string][]consoleSpan {
	t.Helper()
	q.signal(syscall.SIGTERM)
	q.stopped()
	byLevel := map[string][]consoleSpan{}
	for dec := json.NewDecoder(&q.stdout); dec.More(); {
		var s consoleSpan
		if err := dec.Decode(&s); err != nil {
			t.Fatal(err)
		}
		if level, _ := s.attribute("postgresql.synchronous_commit").(string); s.Name == "INSERT orders" {
			byLevel[level] = append(byLevel[level], s)
		}
	}
	return byLevel
}

// TestRun_FileNamesWhoReleasedACommit is what a person does with a cluster: a
// file, primary_conninfo that leads to its links, and spans. SIGHUP takes in
// another setting.
func TestRun_FileNamesWhoReleasedACommit(t *testing.T) {
	q := startQuorum(t, func(string) string { return standbyNames("ANY 1 (s1, s2)") })
	c, app := q.cluster, q.app
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
	writeFile(t, q.file, quorumFile(c.Primary.Addr(), standbyNames("FIRST 1 (s2, s1)")))
	q.signal(syscall.SIGHUP)
	q.line(`msg=reloaded `)
	if err := insertAt(t.Context(), app, "remote_apply", 1); err != nil {
		t.Fatal(err)
	}
	byLevel := q.inserts(t)
	for level, by := range map[string]string{"on": "s1", "remote_apply": "s2"} {
		if len(byLevel[level]) != 1 {
			t.Fatalf("%d spans at %s", len(byLevel[level]), level)
		}
		s := byLevel[level][0]
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

// TestRun_ObservedPrimary is the same with observe in the place of the setting:
// what the primary says is found, and found again when it changes, the level that
// the client never said, too, and the commit is the one of its session.
func TestRun_ObservedPrimary(t *testing.T) {
	q := startQuorum(t, func(primary string) string { return `observe: "postgres://postgres@` + primary + `/postgres"` })
	q.line(`msg="asked a server" server=pg\.p .* synchronous_standby_names="" synchronous_commit=on wal_sender_timeout=1m0s`)
	if err := insertAt(t.Context(), q.app, "on", 0); err != nil { // CREATE TABLE
		t.Fatal(err)
	}
	if err := q.cluster.SetSyncNames(t.Context(), "FIRST 1 (s2, s1)"); err != nil {
		t.Fatal(err)
	}
	q.line(`msg="asked a server" .* synchronous_standby_names="FIRST 1 \(s2, s1\)" `)
	conn, err := pgx.Connect(t.Context(), q.app)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for range 10 {
		if _, err := conn.Exec(t.Context(), insertOrder, "of a session that doesn't say its level"); err != nil {
			t.Fatal(err)
		}
	}
	log := q.log() // until it's stopped with standbys still there

	// No longer observed, nothing holds of what was found, for what is judged then.
	address := q.adminAddr()
	until(t, "the table and ten rows are judged", func() bool { return reportOf(t, address).Waits.Writes >= 11 })
	writeFile(t, q.file, quorumFile(q.cluster.Primary.Addr(), standbyNames("s1")))
	q.signal(syscall.SIGHUP)
	q.line(`msg=reloaded `)
	if _, err := conn.Exec(t.Context(), insertOrder, "not observed"); err != nil {
		t.Fatal(err)
	}
	inserts := q.inserts(t)
	if len(inserts[""]) != 1 {
		t.Fatalf("%d spans without a level", len(inserts[""]))
	}
	last := inserts[""][0]
	if basis, source := last.attribute("wirewait.released_by.basis"), last.attribute("postgresql.synchronous_commit.source"); basis == "exact" || source != "default" {
		t.Errorf("not observed any more: %v, level from %v", basis, source)
	}
	bases := map[any]int{}
	for _, s := range inserts["on"] {
		basis, by := s.attribute("wirewait.released_by.basis"), s.attribute("wirewait.released_by")
		bases[basis]++
		if source := s.attribute("postgresql.synchronous_commit.source"); by != "s2" && basis != "unknown" || source != "observed" {
			t.Errorf("released by %v, %v, level from %v", by, basis, source)
		}
	}
	if bases["exact"] == 0 { // each waits for 120 ms, in which it may be seen
		t.Errorf("none is exact: %v", bases)
	}
	if strings.Contains(log, "level=WARN") || strings.Contains(log, "level=ERROR") {
		t.Error(log)
	}
}
