package mongod

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"
)

// checkpoints count a member's since its start; times are in milliseconds.
type checkpoints struct {
	count, running             atomic.Int64
	last, longest, least, time atomic.Int64

	upTo int // so many entries are in the last; the checkpointer's
}

// checkpointer makes a checkpoint again and again
// (src/mongo/db/storage/checkpointer.cpp).
func (s *Server) checkpointer() {
	for sleep(s.ctx, s.options.Engine.checkpointEvery(), nil) == nil && s.gate.pass(s.ctx) == nil {
		if err := s.checkpoint(); err != nil {
			s.fail(fmt.Errorf("make a checkpoint: %w", err))
			return
		}
	}
}

// checkpoint puts what has changed since the last on the disk: as much as the
// oplog's entries hold. Nothing reads it: a member comes back by its journal,
// which is never shortened. What it costs is real.
func (s *Server) checkpoint() error {
	c, e, begun := &s.checkpoints, s.options.Engine, time.Now()
	c.running.Store(1)
	s.journal.slower.Store(int64(e.CheckpointSync))
	defer func() {
		s.journal.slower.Store(0)
		took := time.Since(begun).Milliseconds()
		c.last.Store(took)
		c.longest.Store(max(c.longest.Load(), took))
		if least := c.least.Load(); c.count.Load() == 0 || took < least {
			c.least.Store(took)
		}
		c.time.Add(took)
		c.count.Add(1)
		c.running.Store(0)
	}()
	s.mu.Lock()
	changed := slices.Clone(s.set.oplog[min(c.upTo, len(s.set.oplog)):])
	c.upTo = len(s.set.oplog)
	s.mu.Unlock()
	if err := writeEntries(filepath.Join(s.dir, "checkpoint"), changed); err != nil {
		return err
	}
	if rest := e.CheckpointLasts - time.Since(begun); rest > 0 {
		_ = sleep(s.ctx, rest, nil)
	}
	return nil
}

func writeEntries(path string, entries []*entry) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	for _, e := range entries {
		if _, err := w.Write(e.raw); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Sync()
}
