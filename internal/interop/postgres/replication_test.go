package postgres

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// pg_basebackup verifies, and the tables' files are those of a backup that was
// taken directly.
func TestBasebackup(t *testing.T) {
	s := startServer(t, machine)
	const db = "matrix"
	s.freshDatabase(t, db)
	must(t, tool(t, s.Addr(), db, "pgbench", "-i", "-q"))
	l := startLink(t, s.Addr())
	files := map[string][]string{}
	for _, addr := range []string{s.Addr(), l.Addr()} {
		dir := filepath.Join(t.TempDir(), "backup")
		must(t, tool(t, addr, "", "pg_basebackup", "-D", dir, "-X", "stream", "-c", "fast", "--no-sync"))
		must(t, tool(t, addr, "", "pg_verifybackup", dir)) // reads the WAL that was streamed, too
		files[addr] = relations(t, dir)
	}
	direct, through := files[s.Addr()], files[l.Addr()]
	if len(direct) < 200 || !slices.Equal(direct, through) {
		t.Errorf("%d files of relations, directly %d: want the same, with the same checksums", len(through), len(direct))
	}
	l.finish()
	report(t, row{
		Client: "pg_basebackup", Version: toolVersion("pg_basebackup")(t), Server: s.Version(),
		Does: "a backup with streamed WAL, then pg_verifybackup", Note: fmt.Sprintf("none; %d files, the same checksums", len(through)),
	})
}

// relations are the names and checksums of a backup's tables and indexes.
func relations(t *testing.T, dir string) []string {
	t.Helper()
	var manifest struct {
		Files []struct{ Path, Checksum string }
	}
	text, err := os.ReadFile(filepath.Join(dir, "backup_manifest"))
	if err == nil {
		err = json.Unmarshal(text, &manifest)
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	relation := regexp.MustCompile(`^base/\d+/\d+(_\w+)?$`)
	for _, f := range manifest.Files {
		if relation.MatchString(f.Path) {
			all = append(all, f.Path+" "+f.Checksum)
		}
	}
	slices.Sort(all)
	return all
}

// pg_receivewal writes the same segments through the link, to the byte.
func TestReceivewal(t *testing.T) {
	s := startServer(t, machine)
	const db = "matrix"
	s.freshDatabase(t, db)
	l := startLink(t, s.Addr())
	slots := map[string]string{"direct": s.Addr(), "through": l.Addr()}
	// Those that the tool makes hold WAL from their first use on only. Both begin
	// at the last checkpoint.
	s.exec(t, db, "checkpoint", "select pg_create_physical_replication_slot(n, true) from unnest('{direct, through}'::text[]) n")
	defer func() {
		for slot := range slots {
			must(t, tool(t, s.Addr(), "", "pg_receivewal", "--drop-slot", "--slot", slot))
		}
	}()
	must(t, tool(t, s.Addr(), db, "pgbench", "-i", "-q"))
	s.exec(t, db, "select pg_switch_wal()")
	until := s.ask(t, db, "pg_current_wal_insert_lsn()")
	s.exec(t, db, "create table beyond (n int)") // it ends when it has seen more
	receive := func(slot string) string {
		dir := filepath.Join(t.TempDir(), "wal")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		must(t, tool(t, slots[slot], "", "pg_receivewal", "-D", dir, "--slot", slot, "--endpos", until, "--no-loop", "--no-sync"))
		return dir
	}
	direct, through := segments(t, receive("direct")), segments(t, receive("through"))
	for name, data := range direct {
		if through[name] != data {
			t.Errorf("segment %s: %d bytes that differ from the direct %d", name, len(through[name]), len(data))
		}
	}
	if len(direct) < 5 || len(through) != len(direct) {
		t.Errorf("%d segments, directly %d", len(through), len(direct))
	}
	l.finish()
	report(t, row{
		Client: "pg_receivewal", Version: toolVersion("pg_receivewal")(t), Server: s.Version(),
		Does: "WAL from a replication slot", Note: "none; the same segments, to the byte",
	})
}

// segments are the whole WAL files in a directory.
func segments(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, ".partial") {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(path)] = string(data)
	}
	return all
}

// pg_recvlogical prints the same changes through the link.
func TestRecvlogical(t *testing.T) {
	s := startServer(t, machine)
	const db = "matrix"
	s.freshDatabase(t, db)
	l := startLink(t, s.Addr())
	slots := map[string]string{"direct": s.Addr(), "through": l.Addr()}
	for slot, addr := range slots {
		must(t, tool(t, addr, db, "pg_recvlogical", "-d", db, "--create-slot", "--slot", slot, "--plugin", "test_decoding"))
		defer func() { must(t, tool(t, s.Addr(), db, "pg_recvlogical", "-d", db, "--drop-slot", "--slot", slot)) }()
	}
	s.exec(t, db, "create table t (id int primary key, s text)", "insert into t select g, repeat('x', 100) from generate_series(1, 5000) g",
		"update t set s = 'u' where id < 1000", "delete from t where id > 4000", "truncate t",
		"select pg_logical_emit_message(true, 'news', 'paper')")
	until := s.ask(t, db, "pg_current_wal_insert_lsn()")
	receive := func(slot string) string {
		return must(t, tool(t, slots[slot], db, "pg_recvlogical", "-d", db, "--start", "--slot", slot,
			"--endpos", until, "--no-loop", "-f", "-"))
	}
	direct, through := receive("direct"), receive("through")
	same(t, outcome{Out: direct}, outcome{Out: through})
	if strings.Count(through, "INSERT:") != 5000 || !strings.Contains(through, "content:paper") {
		t.Errorf("not all changes in\n%s", tail(through))
	}
	l.finish()
	report(t, row{
		Client: "pg_recvlogical", Version: toolVersion("pg_recvlogical")(t), Server: s.Version(),
		Does: "8,000 changes by test_decoding", Note: "none; the same changes",
	})
}

// A subscription of a newer server follows the machine's through the link.
func TestSubscription(t *testing.T) {
	s, sub := startServer(t, machine), startServer(t, newServers[len(newServers)-1])
	const db = "matrix"
	s.freshDatabase(t, db)
	sub.freshDatabase(t, db)
	l := startLink(t, s.Addr())
	table := "create table t (id int primary key, s text)"
	s.exec(t, db, table, "insert into t select g, 'copied' from generate_series(1, 5000) g", "create publication p for table t")
	sub.exec(t, db, table, fmt.Sprintf("create subscription matrix connection '%s' publication p", url(l.Addr(), db)))
	s.exec(t, db, "insert into t select g, 'streamed' from generate_series(5001, 6000) g", "delete from t where id < 100")
	const sum = "select concat(count(*), ' ', sum(id), ' ', count(*) filter (where s = 'streamed')) from t"
	want := s.ask(t, db, sum)
	// The server's log tells what went wrong where this never comes.
	deadline := time.Now().Add(2 * time.Minute)
	for got := ""; got != want; got = sub.ask(t, db, sum) {
		if time.Now().After(deadline) {
			t.Fatalf("the subscriber has %s, want %s\n%s", got, want, tail(sub.Log()))
		}
	}
	sub.exec(t, db, "drop subscription matrix")
	l.finish()
	report(t, row{
		Client: "logical replication", Version: "subscriber " + sub.Version(), Server: s.Version(),
		Does: "a subscription: 5,000 rows copied, then changes streamed", Note: "none; the same rows",
	})
}
