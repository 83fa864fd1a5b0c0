package mongodb

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/wirewait/wirewait/internal/interop/rig"
)

const page = "../../../docs/compatibility-mongodb.md"

// result is one client on one server.
type result struct {
	Client        string `json:"client"`
	ClientVersion string `json:"client_version"`
	Server        string `json:"server"`
	ServerVersion string `json:"server_version"`
	Equal         bool   `json:"equal"` // all that it printed, and its exit code
	Steps         int    `json:"steps"`
	Commands      int    `json:"commands"` // seen by the proxy, without monitors
	Writes        int    `json:"writes"`
}

// results are in the order in which clients and servers are listed.
var results struct {
	mu  sync.Mutex
	all []result
}

func record(t *testing.T, r result) {
	r.Equal = !t.Failed()
	results.mu.Lock()
	defer results.mu.Unlock()
	results.all = append(results.all, r)
}

// publish writes the results to a file and holds them against the
// page in docs, or writes it.
func publish(t *testing.T) {
	t.Helper()
	if err := rig.WriteResults("mongodb.json", results.all); err != nil {
		t.Error(err)
	}
	want := render(results.all)
	if *rig.UpdateDocs {
		if err := os.WriteFile(page, want, 0o644); err != nil {
			t.Error(err)
		}
		return
	}
	if got, err := os.ReadFile(page); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not of this run (%v): look what changed, then write it with go test ./mongodb -update-docs", page, err)
	}
}

func render(all []result) []byte {
	var b bytes.Buffer
	b.WriteString(intro)
	var servers []string
	cells := map[string]map[string]string{}
	var rows []string
	for _, r := range all {
		row, server := r.Client+" "+r.ClientVersion, strings.TrimPrefix(r.Server+" "+r.ServerVersion, "the scripted ")
		if cells[row] == nil {
			cells[row] = map[string]string{}
			rows = append(rows, row)
		}
		if len(rows) == 1 {
			servers = append(servers, server)
		}
		cells[row][server] = "differs"
		if r.Equal {
			cells[row][server] = fmt.Sprintf("equal: %d steps", r.Steps)
		}
	}
	fmt.Fprintf(&b, "| | %s |\n|---%s|\n", strings.Join(servers, " | "), strings.Repeat("|---", len(servers)))
	for _, row := range rows {
		fmt.Fprintf(&b, "| %s ", row)
		for _, s := range servers {
			fmt.Fprintf(&b, "| %s ", cells[row][s])
		}
		b.WriteString("|\n")
	}
	b.WriteString(notes)
	return b.Bytes()
}
