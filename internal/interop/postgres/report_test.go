package postgres

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/wirewait/wirewait/internal/interop/rig"
)

// row says that a client had the same outcome directly and through the link.
type row struct {
	Client, Version string
	Server          string // version
	Does            string
	Writes          map[string]int // seen, by operation
	Exchanges       uint64
	Note            string `json:",omitempty"`
}

var rows struct {
	sync.Mutex
	all []row
}

// report adds a row, if the test that speaks for it passed.
func report(t *testing.T, r row) {
	t.Helper()
	if t.Failed() {
		return
	}
	rows.Lock()
	defer rows.Unlock()
	rows.all = append(rows.all, r)
}

const docs = "../../../docs/compatibility-postgres.md"

// finishReport writes what ran to a file and, if asked and all passed, the page.
func finishReport(passed bool) error {
	slices.SortStableFunc(rows.all, func(a, b row) int {
		return cmp.Or(cmp.Compare(major(a.Server), major(b.Server)), cmp.Compare(strings.ToLower(a.Client), strings.ToLower(b.Client)))
	})
	if len(rows.all) == 0 {
		return nil
	}
	if err := rig.WriteResults("postgres.json", rows.all); err != nil {
		return err
	}
	switch {
	case !passed:
		return nil
	case *rig.UpdateDocs:
		return os.WriteFile(docs, page(rows.all), 0o644)
	}
	return checkDocs()
}

// checkDocs finds what the page claims no longer, or not yet. Versions differ
// from machine to machine, and a run may be of some tests only.
func checkDocs() error {
	text, err := os.ReadFile(docs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, r := range rows.all {
		line := fmt.Sprintf("\n| %s | %s |", r.Client, r.Does)
		if !bytes.Contains(text, []byte(line)) {
			return fmt.Errorf("docs/compatibility-postgres.md has no %q: run this with -update-docs", line[1:])
		}
	}
	return nil
}

func major(version string) int {
	m, _, _ := strings.Cut(version, ".")
	n, _ := strconv.Atoi(m)
	return n
}

// page is a table for each server.
func page(all []row) []byte {
	var b bytes.Buffer
	b.WriteString(`# PostgreSQL: what runs through wirewait

Each client ran twice on a fresh database: directly, and through a link that
adds 2.5 ms ± 1 ms each way. It printed the same and ended with the same exit
code, every message that passed was read, and the writes that were traced are
those of the scenario. The server has TLS on; the link declines it. Rows that name
another delay, or no writes, say what was compared instead. Who asks for protocol
3.2 gets 3.0 from servers before 18, through the link as directly.

Functions of large objects are traced, called by SELECT or by FunctionCall; of
others nobody can tell from here whether they write (docs/spans.md). They pass
like all else.

This page is made by ` + "`go test ./postgres -update-docs`" + ` in internal/interop; the
same tests run in ` + "`make interop`" + `. What the clients do is in internal/interop/clients
and internal/interop/postgres.
`)
	server := ""
	for _, r := range all {
		if r.Server != server {
			server = r.Server
			fmt.Fprintf(&b, "\n## PostgreSQL %s\n\n| client | what it did | version | writes traced |\n|---|---|---|---|\n", server)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.Client, r.Does, r.Version, cmp.Or(r.Note, counts(r.Writes)))
	}
	return b.Bytes()
}

// counts is "INSERT 3, UPDATE 1".
func counts(writes map[string]int) string {
	var parts []string
	for _, op := range slices.Sorted(maps.Keys(writes)) {
		parts = append(parts, fmt.Sprintf("%s %d", op, writes[op]))
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}
