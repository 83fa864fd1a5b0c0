package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/internal/testenv"
	"github.com/wirewait/wirewait/wire"
)

// The reader finds the transactions that the server's own tools find, each with
// its number and its place, over the log of a pgbench run with what else makes
// such records: two-phase commits, subtransactions, dropped tables, a switch of
// segments. The log is streamed as to a standby, through a session, in cuts of
// any size.
func TestWAL_FindsWhatTheServersToolsFind(t *testing.T) {
	for _, version := range []string{"", "16", "17", "18"} {
		t.Run("PostgreSQL "+version, func(t *testing.T) {
			dir := ""
			if version != "" {
				if dir = lab.NPMPostgres(version); dir == "" {
					testenv.Missing(t, "no PostgreSQL "+version+": run internal/interop/clients/install.sh postgres-"+version)
				}
			}
			c := startPrimary(t, dir)
			end := makeLog(t, c)
			got, told, log := streamLog(t, c, end)
			want := inspectLog(t, c, end)
			if len(want) < 500 {
				t.Fatalf("the server's tools find %d transactions only", len(want))
			}
			compareTransactions(t, got, want)
			checkJoins(t, log, got)
			checkTold(t, told, want)
			if version == "" {
				compareTransactions(t, got, dumpLog(t, c, end))
			}
			t.Logf("%s: %d transactions", c.Version(), len(want))
		})
	}
}

func startPrimary(t *testing.T, binDir string) *lab.PostgresCluster {
	t.Helper()
	c, err := lab.StartPostgresCluster(t.Context(), lab.PostgresClusterOptions{
		BinDir: binDir, Settings: map[string]string{"wal_keep_size": "512MB", "synchronous_commit": "off"},
	})
	if errors.Is(err, lab.ErrNoPostgres) && os.Getenv("WIREWAIT_CI") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func askServer(t *testing.T, c *lab.PostgresCluster, sql string) (rows [][]string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.URL(c.Primary.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	results, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	for _, r := range results {
		for _, row := range r.Rows {
			var line []string
			for _, v := range row {
				line = append(line, string(v))
			}
			rows = append(rows, line)
		}
	}
	return rows
}

// makeLog writes to the log and returns where it ends.
func makeLog(t *testing.T, c *lab.PostgresCluster) uint64 {
	t.Helper()
	if _, err := exec.LookPath("pgbench"); err != nil {
		testenv.Missing(t, "no pgbench: apt-get install postgresql-contrib (or postgresql)")
	}
	host, port, _ := net.SplitHostPort(c.Primary.Addr())
	for _, args := range [][]string{{"-i", "-q", "-s", "1"}, {"-n", "-c", "8", "-j", "2", "-t", "60"}} {
		cmd := exec.CommandContext(t.Context(), "pgbench", append(args, "-h", host, "-p", port, "-U", "postgres", "postgres")...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("pgbench %q: %v\n%s", args, err, out)
		}
	}
	for i := range 20 {
		for _, sql := range []string{
			"set synchronous_commit = remote_apply; create table a%d (n int primary key, s text); insert into a%[1]d select g, repeat('x', 3000) from generate_series(1, 50) g",
			"begin; insert into a%d values (-1); savepoint s; insert into a%[1]d values (-2); release s; savepoint t; insert into a%[1]d values (-3); commit",
			"begin; insert into a%d values (-4); savepoint s; insert into a%[1]d values (-5); create table b%[1]d (n int); prepare transaction 'gid %[1]d'",
			"commit prepared 'gid %d'",
			"begin; insert into a%d values (-6); prepare transaction 'gid %[1]d'",
			"rollback prepared 'gid %d'",
			"begin; drop table a%d; drop table b%[1]d; create table c%[1]d (n int); prepare transaction 'gid %[1]d'",
			"commit prepared 'gid %d'",
			"begin; drop table c%d; rollback",
			"drop table c%d; select pg_switch_wal()",
		} {
			askServer(t, c, fmt.Sprintf(sql, i))
		}
	}
	// What is flushed is what is streamed.
	end := parseLSN(t, askServer(t, c, "select pg_current_wal_insert_lsn()")[0][0])
	askServer(t, c, "checkpoint")
	return end
}

func parseLSN(t *testing.T, s string) uint64 {
	t.Helper()
	hi, lo, ok := strings.Cut(s, "/")
	h, err1 := strconv.ParseUint(hi, 16, 32)
	l, err2 := strconv.ParseUint(lo, 16, 32)
	if !ok || err1 != nil || err2 != nil {
		t.Fatalf("%q is no LSN", s)
	}
	return h<<32 | l
}

// streamLog streams the log from logBegins to end and returns the
// transactions that the reader found, and what the session told of them.
func streamLog(t *testing.T, c *lab.PostgresCluster, end uint64) (found []walTransaction, told []wire.Commit, log []byte) {
	t.Helper()
	nc, err := net.Dial("tcp", c.Primary.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	s := New(wire.Options{}).(*session)
	var sent wire.Position
	s.open.Report = func(r *wire.Report) {
		if r.Kind == wire.ReportSent {
			sent = r.Sent
			told = append(told, r.Commits...)
			if r.Member != "s1" {
				t.Errorf("a report of %q, want s1", r.Member)
			}
		}
	}
	spy := &walSpy{t: t}
	s.wal.found = func(x walTransaction) {
		if x.end <= end {
			found = append(found, x)
		}
		s.foundTransaction(x)
	}
	var offs [2]int64
	pass := func(dir wire.Direction, b []byte) {
		pieces := s.Frame(dir, b, 1, nil)
		offs[dir] += int64(len(b))
		s.open.Departed(dir, offs[dir], 2)
		s.Decode(dir, b, pieces)
	}
	send := func(b []byte) {
		pass(wire.ToServer, b)
		if _, err := nc.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	start := []byte("\x00\x03\x00\x00user\x00postgres\x00replication\x00true\x00application_name\x00s1\x00\x00")
	send(append(binary.BigEndian.AppendUint32(nil, uint32(len(start)+4)), start...))
	command := "START_REPLICATION 0/1000000 TIMELINE 1\x00"
	read := func() []byte {
		b := make([]byte, 1+rand.IntN(100_000))
		n, err := nc.Read(b)
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if n == 0 {
			t.Fatalf("the stream ended at %s", sent.LSN())
		}
		return b[:n]
	}
	for ready := false; !ready; {
		b := read()
		pass(wire.ToClient, b)
		ready = strings.HasSuffix(string(b), "Z\x00\x00\x00\x05I")
	}
	send(append(binary.BigEndian.AppendUint32([]byte{'Q'}, uint32(len(command)+4)), command...))
	for !sent.Reaches(wire.LSN(end)) {
		b := read()
		pass(wire.ToClient, b)
		spy.take(b)
	}
	if s.err != nil || s.wal.lost > 0 || s.wal.blind {
		t.Errorf("the session: %v; lost %d times, blind %v", s.err, s.wal.lost, s.wal.blind)
	}
	return found, told, spy.log
}

// logBegins is the beginning of a segment that the run reaches.
const logBegins = 0x1000000

// checkJoins asserts that reading may begin anywhere, at the next page.
func checkJoins(t *testing.T, log []byte, all []walTransaction) {
	t.Helper()
	for range 20 {
		from := logBegins + uint64(rand.IntN(len(log)))
		page := (from + walPage - 1) / walPage * walPage
		want := all[len(all):]
		for i := range all {
			if all[i].start >= page {
				want = all[i:]
				break
			}
		}
		var w walReader
		var got []walTransaction
		w.found = func(x walTransaction) {
			if len(got) < len(want) {
				got = append(got, x)
			}
		}
		for b := log[from-logBegins:]; len(b) > 0; {
			n := min(1+rand.IntN(20_000), len(b))
			w.feed(from, b[:n])
			from += uint64(n)
			b = b[n:]
		}
		if !slices.Equal(got, want) {
			t.Fatalf("joined at %X: %d transactions, want %d", page, len(got), len(want))
		}
	}
}

// operations as the server calls them.
var walOperations = map[string]byte{
	"COMMIT": xactCommit, "ABORT": xactAbort, "PREPARE": xactPrepare,
	"COMMIT_PREPARED": xactCommitPrep, "ABORT_PREPARED": xactAbortPrep,
}

// inspectLog asks pg_walinspect.
func inspectLog(t *testing.T, c *lab.PostgresCluster, end uint64) (want []walTransaction) {
	t.Helper()
	askServer(t, c, "create extension if not exists pg_walinspect")
	rows := askServer(t, c, fmt.Sprintf("select start_lsn, end_lsn, xid, record_type, description from pg_get_wal_records_info("+
		"'0/1000028', '%s') where resource_manager = 'Transaction'", wire.LSN(end).LSN()))
	for _, r := range rows {
		want = appendServers(t, want, r[0], r[1], r[2], r[3], r[4])
	}
	return want
}

var (
	dumped   = regexp.MustCompile(`tx: +(\d+), lsn: ([0-9A-F]+/[0-9A-F]+), .* desc: ([A-Z_]+) (.*)`)
	prepared = regexp.MustCompile(`^(\d+): `)
)

// dumpLog asks pg_waldump, which doesn't say where records end.
func dumpLog(t *testing.T, c *lab.PostgresCluster, end uint64) (want []walTransaction) {
	t.Helper()
	server, err := filepath.EvalSymlinks(filepath.Join(c.BinDir(), "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	tool := filepath.Join(filepath.Dir(server), "pg_waldump")
	if _, err := os.Stat(tool); err != nil {
		testenv.Missing(t, err.Error())
	}
	out, err := exec.CommandContext(t.Context(), tool, "-p", filepath.Join(c.Primary.DataDir(), "pg_wal"),
		"-s", "0/1000028", "-e", wire.LSN(end).LSN(), "-r", "Transaction").Output()
	if err != nil {
		testenv.Missing(t, "pg_waldump must be allowed to read the server's files: "+err.Error())
	}
	for _, m := range dumped.FindAllStringSubmatch(string(out), -1) {
		want = appendServers(t, want, m[2], "0/0", m[1], m[3], m[4])
	}
	return want
}

// appendServers adds a record that one of the server's tools printed.
func appendServers(t *testing.T, list []walTransaction, start, end, xid, kind, description string) []walTransaction {
	t.Helper()
	op, ok := walOperations[kind]
	if !ok { // INVALIDATION, ASSIGNMENT
		return list
	}
	id, err := strconv.ParseUint(xid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	if m := prepared.FindStringSubmatch(description); m != nil {
		id, _ = strconv.ParseUint(m[1], 10, 32)
	}
	return append(list, walTransaction{op: op, xid: uint32(id), start: parseLSN(t, start), end: parseLSN(t, end)})
}

func compareTransactions(t *testing.T, got, want []walTransaction) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("found %d transactions, the server's tool %d", len(got), len(want))
	}
	bad := 0
	for i := range min(len(got), len(want)) {
		g := got[i]
		g.info = 0
		if want[i].end == 0 {
			g.end = 0
		}
		if g != want[i] && bad < 5 {
			bad++
			t.Errorf("transaction %d: found %+v, the server's tool %+v", i, g, want[i])
		}
	}
}

// checkTold asserts that what can be waited for was told, and remote_apply with
// it.
func checkTold(t *testing.T, told []wire.Commit, want []walTransaction) {
	t.Helper()
	want = slices.DeleteFunc(slices.Clone(want), func(x walTransaction) bool { return x.op == xactAbort })
	apply := 0
	for i, w := range want {
		if i >= len(told) || told[i].XID != w.xid || told[i].End != wire.LSN(w.end) {
			t.Fatalf("transaction %d of %d was not told", i, len(want))
		}
		if told[i].Apply {
			apply++
		}
	}
	if apply != 20 { // one Query in each round of makeLog
		t.Errorf("%d ask to be applied, want 20", apply)
	}
}

// walSpy collects the log from the server's messages, of which the first is
// CopyBothResponse. It may be given any cut.
type walSpy struct {
	t         *testing.T
	rest, log []byte
}

func (w *walSpy) take(b []byte) {
	w.rest = append(w.rest, b...)
	for len(w.rest) >= 5 {
		n := 1 + int(binary.BigEndian.Uint32(w.rest[1:]))
		if len(w.rest) < n {
			return
		}
		if m := w.rest[:n]; m[0] == 'd' && m[5] == 'w' {
			if lsn := binary.BigEndian.Uint64(m[6:]); lsn != logBegins+uint64(len(w.log)) {
				w.t.Fatalf("the log goes on at %X", lsn)
			}
			w.log = append(w.log, m[5+xlogDataHead:]...)
		}
		w.rest = w.rest[n:]
	}
}
