// Package ferret runs FerretDB for tests: MongoDB's protocol on SQLite. It
// ignores write concerns, takes no compressor, and answers w: 0.
package ferret

import (
	"context"
	"log/slog"
	"net/url"
	"testing"

	"github.com/FerretDB/FerretDB/ferretdb"
)

// Start runs an empty FerretDB in this process until the test's end and returns
// its address.
//
// Its SQLite is in files that are never synced, not in memory: an in-memory
// database has one connection (internal/backends/sqlite/metadata/pool/opendb.go),
// and an update that matches many documents holds it for its cursor while it
// waits for it to write.
func Start(t *testing.T) string {
	t.Helper()
	f, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: "127.0.0.1:0"},
		Logger:    slog.New(slog.DiscardHandler),
		Handler:   "sqlite",
		SQLiteURL: "file:" + t.TempDir() + "/?_pragma=synchronous(off)",
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(f.MongoDBURI())
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}
