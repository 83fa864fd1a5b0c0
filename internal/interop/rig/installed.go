package rig

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/wirewait/wirewait/internal/testenv"
)

// Installed is a path below what clients/install.sh installs for a client.
// Where it isn't, the test is skipped; in CI it fails.
func Installed(t *testing.T, client, path string) string {
	t.Helper()
	dir := filepath.Join(clientsDir(t), client)
	for _, p := range []string{"installed", path} { // the first is made last
		if _, err := os.Stat(filepath.Join(dir, p)); err != nil {
			testenv.Missing(t, "no "+client+" here: run internal/interop/clients/install.sh "+client)
		}
	}
	return filepath.Join(dir, path)
}

// clientsDir is where install.sh installs.
func clientsDir(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("WIREWAIT_CLIENTS"); dir != "" {
		return dir
	}
	if os.Getuid() == 0 {
		return "/var/cache/wirewait-clients"
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(home, ".cache", "wirewait-clients")
}
