package mongod

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// journal puts oplog entries on disk: an append-only file of
//
//	crc32c of the document  uint32, little-endian
//	the entry               a BSON document, which says its own length
//
// One flusher writes and syncs, so that all who wait for the disk at a time wait
// for the same sync, or the next: group commit, as in mongod
// (src/mongo/db/storage/control/journal_flusher.cpp). A nil journal holds
// nothing, and everything is as durable as it gets at once.
type journal struct {
	file    *os.File
	durable func(mark) // told after each sync, outside of mu
	wake    chan struct{}
	stats   journalStats
	slower  atomic.Int64 // nanoseconds that a sync takes longer

	disk    sync.Mutex // held while the file is written, synced or cut
	mu      sync.Mutex
	pending []byte
	last    mark  // of pending
	end     int64 // where the file will end once pending is written
}

// journalStats count since the member's start.
type journalStats struct{ entries, bytes, syncs, syncMicros atomic.Int64 }

// journalInterval is how long an entry for which nobody waits may stay in memory
// (storage.journal.commitIntervalMs).
const journalInterval = 100 * time.Millisecond

// openJournal reads what a file has and is ready to go on at its end. An entry
// that was cut short by a crash is dropped.
func openJournal(path string, durable func(mark)) (*journal, oplog, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, err
	}
	j := &journal{file: f, durable: durable, wake: make(chan struct{}, 1)}
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	entries, end := readJournal(b)
	if err := j.truncate(end); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return j, entries, nil
}

// readJournal returns the entries up to the first that isn't whole, and where
// that begins.
func readJournal(b []byte) (entries oplog, end int64) {
	for len(b)-int(end) >= 9 {
		sum := binary.LittleEndian.Uint32(b[end:])
		rest := b[end+4:]
		n := int(int32(binary.LittleEndian.Uint32(rest)))
		if n < 5 || n > len(rest) || crc32.Checksum(rest[:n], castagnoli) != sum || bson.Raw(rest[:n]).Validate() != nil {
			break
		}
		e, err := parseEntry(bson.Raw(rest[:n]))
		if err != nil {
			break
		}
		end += int64(4 + n)
		e.end = end
		entries = append(entries, e)
	}
	return entries, end
}

// append adds an entry to what the next sync covers. It reports whether there is
// a disk to wait for.
func (j *journal) append(e *entry) bool {
	if j == nil {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pending = binary.LittleEndian.AppendUint32(j.pending, crc32.Checksum(e.raw, castagnoli))
	j.pending = append(j.pending, e.raw...)
	j.end += int64(4 + len(e.raw))
	e.end = j.end
	j.last = e.mark
	j.stats.entries.Add(1)
	return true
}

// flushSoon asks for a sync now. Whoever asks during one gets the next.
func (j *journal) flushSoon() {
	if j == nil {
		return
	}
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// run is the flusher. It ends with the context, or when the disk fails.
func (j *journal) run(ctx context.Context, g *gate) error {
	tick := time.NewTicker(journalInterval)
	defer tick.Stop()
	for {
		select {
		case <-j.wake:
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		if g.pass(ctx) != nil {
			return nil
		}
		if err := j.flush(); err != nil {
			return err
		}
	}
}

func (j *journal) flush() error {
	j.disk.Lock()
	defer j.disk.Unlock()
	j.mu.Lock()
	b, last := j.pending, j.last
	j.pending = nil
	j.mu.Unlock()
	if len(b) == 0 {
		return nil
	}
	if _, err := j.file.Write(b); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	start := time.Now()
	if err := j.file.Sync(); err != nil {
		return fmt.Errorf("sync the journal: %w", err)
	}
	time.Sleep(time.Duration(j.slower.Load()))
	j.stats.syncs.Add(1)
	j.stats.syncMicros.Add(time.Since(start).Microseconds())
	j.stats.bytes.Add(int64(len(b)))
	j.durable(last)
	return nil
}

// truncate drops what stands after end, and goes on there. Nothing may be
// appended meanwhile, and all that was must have been flushed.
func (j *journal) truncate(end int64) error {
	j.disk.Lock()
	defer j.disk.Unlock()
	if err := j.file.Truncate(end); err != nil {
		return err
	}
	_, err := j.file.Seek(end, io.SeekStart)
	j.end = end
	return err
}

// close ends it. With lose, what no sync has covered is lost, as when the
// process is killed; the flusher must have ended.
func (j *journal) close(lose bool) error {
	if j == nil {
		return nil
	}
	var err error
	if !lose {
		j.durable = func(mark) {}
		err = j.flush()
	}
	return errors.Join(err, j.file.Close())
}
