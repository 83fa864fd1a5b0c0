package mongodb

import (
	"encoding/json"

	"os"
	"path/filepath"
	"sync"
	"testing"
)

// result is one client on one server.
type result struct {
	Client        string `json:"client"`
	ClientVersion string `json:"client_version"`
	Server        string `json:"server"`
	ServerVersion string `json:"server_version"`
	Steps         int    `json:"steps"`    // that printed the same
	Commands      int    `json:"commands"` // seen, without monitors
	Writes        int    `json:"writes"`
	Equal         bool   `json:"equal"`
}

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

// TestMatrixResults comes after TestMatrix: tests run in the order of files'
// names and then of their text, and this file's is later.
func writeResults(t *testing.T) {
	dir := os.Getenv("WIREWAIT_MATRIX_OUT")
	if dir == "" {
		return
	}
	b, err := json.MarshalIndent(results.all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mongodb.json"), append(b, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
