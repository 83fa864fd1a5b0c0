//go:build unix

package proxy_test

import (
	"sync"
	"testing"
	"time"
)

// gathered is what was said of writes, until a test takes it.
type gathered[W any] struct {
	mu   sync.Mutex
	seen []W
}

func (g *gathered[W]) add(w W) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen = append(g.seen, w)
}

// take waits for n writes to be judged and takes them.
func (g *gathered[W]) take(t *testing.T, n int) []W {
	t.Helper()
	for {
		g.mu.Lock()
		seen := g.seen
		if len(seen) >= n {
			g.seen = nil
		}
		g.mu.Unlock()
		if len(seen) == n {
			return seen
		}
		if len(seen) > n || t.Context().Err() != nil {
			t.Fatalf("%d writes were judged, want %d", len(seen), n)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
