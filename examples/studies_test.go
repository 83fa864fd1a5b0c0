package examples_test

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/wirewait/wirewait/internal/testenv"
)

// studies are the examples that measure, each with what a quick run must find:
// shapes, for no figure of a loaded machine means anything.
var studies = []struct {
	name  string
	files []string
	check func(t *testing.T, rows []map[string]string)
}{
	{"journal-group-commit", []string{"journal-group-commit.svg"}, checkJournal},
	{"majority-lag", []string{"majority-lag.svg", "majority-lag-theory.svg"}, checkMajorityLag},
	{"delayed-member", []string{"delayed-member.svg"}, checkDelayedMember},
	{"postgres-quorum", []string{"postgres-quorum.svg"}, checkQuorum},
	{"tickets", []string{"tickets.svg"}, checkTickets},
	{"flow-control", []string{"flow-control.svg"}, checkFlowControl},
	{"mongodb-checkpoint", []string{"mongodb-checkpoint.svg"}, checkMongoCheckpoint},
	{"checkpoint-spikes", []string{"checkpoint-spikes.svg", "checkpoint-spikes-buffers.svg"}, checkCheckpoints},
}

// studiesDir is where they were built; empty: they weren't.
var studiesDir string

// buildStudies builds them all once.
var buildStudies = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "wirewait-studies"); err != nil {
		return "", err
	}
	studiesDir = dir
	args := []string{"build", "-ldflags=-s -w", "-o", dir + string(filepath.Separator)}
	for _, s := range studies {
		args = append(args, "./"+s.name)
	}
	out, err := exec.Command("go", args...).CombinedOutput()
	if err != nil {
		os.Stderr.Write(out)
	}
	return dir, err
})

func TestStudies(t *testing.T) {
	for _, s := range studies {
		t.Run(s.name, func(t *testing.T) {
			bin, err := buildStudies()
			if err != nil {
				t.Fatalf("build the examples: %v", err)
			}
			dir := t.TempDir()
			out, err := exec.CommandContext(t.Context(), filepath.Join(bin, s.name), "--quick", "--out", dir).CombinedOutput()
			if err != nil {
				if strings.Contains(string(out), "no postgresql server binaries") {
					testenv.Missing(t, string(out))
				}
				t.Fatalf("%v\n%s", err, out)
			}
			s.check(t, readCSV(t, filepath.Join(dir, s.name+".csv")))
			for _, file := range s.files {
				wellFormed(t, filepath.Join(dir, file))
			}
			if t.Failed() {
				t.Logf("%s", out)
			}
		})
	}
}

// readCSV returns rows by the names of their columns.
func readCSV(t *testing.T, path string) (rows []map[string]string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil || len(lines) < 2 {
		t.Fatalf("%s: %v\n%s", path, err, b)
	}
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, name := range lines[0] {
			row[name] = line[i]
		}
		rows = append(rows, row)
	}
	return rows
}

func wellFormed(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b, []byte("NaN")) || bytes.Contains(b, []byte("Inf")) {
		t.Errorf("%s draws what is no number", path)
	}
	for d := xml.NewDecoder(bytes.NewReader(b)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
}

// value is a number of a row.
func value(t *testing.T, row map[string]string, column string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(row[column], 64)
	if err != nil {
		t.Fatalf("%s of %v: %v", column, row, err)
	}
	return v
}

// pick are the rows that have these values, given as column and value.
func pick(t *testing.T, rows []map[string]string, want ...string) []map[string]string {
	t.Helper()
	var found []map[string]string
	for _, row := range rows {
		same := true
		for pair := range slices.Chunk(want, 2) {
			same = same && row[pair[0]] == pair[1]
		}
		if same {
			found = append(found, row)
		}
	}
	if len(found) == 0 {
		t.Fatalf("no row has %v", want)
	}
	return found
}

// checkJournal: a sync of the journal is shared, by the more the more wait.
func checkJournal(t *testing.T, rows []map[string]string) {
	if len(rows) != 8 {
		t.Fatalf("%d rows, want 8", len(rows))
	}
	for _, row := range rows {
		if value(t, row, "writes_per_s") <= 0 || value(t, row, "p95_ms") < value(t, row, "p50_ms") {
			t.Errorf("%v", row)
		}
	}
	alone := pick(t, rows, "concern", "w:1 j:true", "clients", "1")[0]
	if got := value(t, alone, "writes_per_sync"); got > 1.5 {
		t.Errorf("one client has %v writes a sync", got)
	}
	if got := value(t, pick(t, rows, "concern", "w:1 j:true", "clients", "64")[0], "writes_per_sync"); got <= 1 {
		t.Errorf("64 clients have %v writes a sync", got)
	}
}

// checkMajorityLag: who waits for a lagging member takes at least its lag, and an
// acknowledged write is never missing where it was waited for.
func checkMajorityLag(t *testing.T, rows []map[string]string) {
	if len(rows) != 39 {
		t.Fatalf("%d rows, want 13 phases of three concerns", len(rows))
	}
	for _, row := range rows {
		if value(t, row, "p50_ms") < value(t, row, "theory_ms") {
			t.Errorf("less than the lag: %v", row)
		}
	}
	for _, row := range pick(t, rows, "w", "3") {
		if value(t, row, "stale_b") != 0 || value(t, row, "stale_c") != 0 {
			t.Errorf("w: 3 doesn't wait for everybody: %v", row)
		}
	}
	for _, lags := range []string{"both, network", "both, stream", "both, disk"} {
		if row := pick(t, rows, "lags", lags, "w", "majority")[0]; value(t, row, "theory_ms") != 10 {
			t.Errorf("majority follows the faster one of 10 and 25 ms: %v", row)
		}
	}
	for _, row := range pick(t, rows, "w", "1") {
		if row["released_by"] != "nobody "+row["writes"] {
			t.Errorf("w: 1 waits for nobody: %v", row)
		}
	}
}

// checkDelayedMember: once b is gone, majority waits for c's second.
func checkDelayedMember(t *testing.T, rows []map[string]string) {
	if len(rows) != 7 {
		t.Fatalf("%d rows, want 7", len(rows))
	}
	for _, row := range rows {
		// The delay counts from an entry's time, which is in whole milliseconds.
		if value(t, row, "min_ms") < value(t, row, "theory_ms")-1 {
			t.Errorf("less than the delay: %v", row)
		}
	}
	gone := pick(t, rows, "state", "b is gone", "w", "majority")[0]
	if value(t, gone, "theory_ms") != 1000 || strings.Contains(gone["released_by"], "b ") {
		t.Errorf("majority waits for c alone: %v", gone)
	}
}

// checkQuorum: off and local wait for nobody, the others at least as long as
// theory says.
func checkQuorum(t *testing.T, rows []map[string]string) {
	if len(rows) != 12 {
		t.Fatalf("%d rows, want three rules with four lags each", len(rows))
	}
	for _, row := range rows {
		for _, level := range []string{"remote_write", "on", "remote_apply"} {
			if value(t, row, level) < value(t, row, "theory_ms") {
				t.Errorf("%s takes less than the lag: %v", level, row)
			}
		}
	}
	for names, want := range map[string]float64{"FIRST 1 (s1, s2)": 10, "ANY 1 (s1, s2)": 10, "ANY 2 (s1, s2)": 25} {
		if got := value(t, pick(t, rows, "names", names, "lags", "both")[0], "theory_ms"); got != want {
			t.Errorf("%s with lags of 10 and 25 ms: %v", names, got)
		}
	}
	for _, row := range pick(t, rows, "names", "FIRST 1 (s1, s2)") {
		if strings.Contains(row["released_by"], "s2") {
			t.Errorf("FIRST 1 (s1, s2) doesn't follow s2: %v", row)
		}
	}
}

// checkCheckpoints: every update was made, and the checkpoint that was asked for
// was seen.
func checkCheckpoints(t *testing.T, rows []map[string]string) {
	if len(rows) != 5 {
		t.Fatalf("%d rows, want 5", len(rows))
	}
	for _, row := range rows {
		if value(t, row, "updates") != 120 || value(t, row, "p99_ms") < value(t, row, "p50_ms") || value(t, row, "WAL_MB") <= 0 {
			t.Errorf("%v", row)
		}
	}
	if asked := pick(t, rows, "checkpoints", "CHECKPOINT asked for")[0]; value(t, asked, "requested") < 1 {
		t.Errorf("no checkpoint was seen: %v", asked)
	}
}

// checkTickets: 8 tickets that are held for 20 ms each let no more than 400 reads
// a second through, and no read is faster than that.
func checkTickets(t *testing.T, rows []map[string]string) {
	if len(rows) != 3 {
		t.Fatalf("%d rows, want 3", len(rows))
	}
	for _, row := range rows {
		if value(t, row, "reads_per_s") > 401 || value(t, row, "p50_ms") < 20 {
			t.Errorf("%v", row)
		}
	}
	if most := pick(t, rows, "clients", "64")[0]; value(t, most, "theory_ms") != 160 {
		t.Errorf("64 clients on 8 tickets wait their turn: %v", most)
	}
}

// checkFlowControl: a majority that takes 20 entries a second is behind, and
// flow control gives out its least.
func checkFlowControl(t *testing.T, rows []map[string]string) {
	if len(rows) != 3 {
		t.Fatalf("%d rows, want 3", len(rows))
	}
	if value(t, rows[0], "writes_per_s") <= 0 {
		t.Errorf("%v", rows[0])
	}
	slow := pick(t, rows, "phase", "both take 20 a second")[0]
	if value(t, slow, "most_lag_ms") < 100 || value(t, slow, "slowed_down_percent") == 0 || value(t, slow, "least_tickets_per_s") != 100 {
		t.Errorf("writes aren't slowed down: %v", slow)
	}
}

// checkMongoCheckpoint: every insert was made, some while a checkpoint ran.
func checkMongoCheckpoint(t *testing.T, rows []map[string]string) {
	if len(rows) != 2 {
		t.Fatalf("%d rows, want 2", len(rows))
	}
	during := pick(t, rows, "while", "a checkpoint runs")[0]
	if all := value(t, rows[0], "inserts") + value(t, rows[1], "inserts"); all != 600 || value(t, during, "inserts") == 0 {
		t.Errorf("%v of 600 inserts, those during checkpoints: %v", all, during)
	}
}
