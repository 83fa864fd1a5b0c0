//go:build unix

package proxy_test

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/internal/lab"
)

// rows is COPY text of a given number of bytes, about: numbered lines of 1 KB.
type rows struct {
	left  int
	n     int
	noise []byte
	line  []byte
	sum   hash.Hash
}

func newRows(size int) *rows {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/"
	r := &rows{left: size, noise: make([]byte, 64<<10), sum: sha256.New()}
	_, _ = rand.NewChaCha8([32]byte{7}).Read(r.noise)
	for i, b := range r.noise {
		r.noise[i] = letters[b%64]
	}
	return r
}

// Read gives whole lines only to those who ask for more than one.
func (r *rows) Read(b []byte) (n int, err error) {
	for n < len(b) {
		if len(r.line) == 0 {
			if r.left <= 0 {
				break
			}
			at := r.n * 61 % (len(r.noise) - 1000)
			r.line = strconv.AppendInt(r.line, int64(r.n), 10)
			r.line = append(append(append(r.line, '\t'), r.noise[at:at+1000]...), '\n')
			r.left -= len(r.line)
			r.n++
		}
		m := copy(b[n:], r.line)
		r.line = r.line[m:]
		n += m
	}
	if n == 0 {
		return 0, io.EOF
	}
	r.sum.Write(b[:n])
	return n, nil
}

// peak is the most that this process, in which the proxy runs, grew by.
type peak struct{ heap, resident int64 }

func (p peak) String() string {
	return fmt.Sprintf("the heap grew by %d MB, the process by %d MB", p.heap>>20, p.resident>>20)
}

// watchMemory looks at the process until it is asked.
func watchMemory() func() peak {
	debug.FreeOSMemory()
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	read := func() peak {
		metrics.Read(sample)
		return peak{int64(sample[0].Value.Uint64()), resident()}
	}
	start, most := read(), peak{}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			now := read()
			most.heap, most.resident = max(most.heap, now.heap-start.heap), max(most.resident, now.resident-start.resident)
			select {
			case <-tick.C:
			case <-stop:
				tick.Stop()
				return
			}
		}
	}()
	return func() peak { close(stop); <-done; return most }
}

// heapPeak watches the heap until it is asked for the most it grew by.
func heapPeak() func() int64 {
	most := watchMemory()
	return func() int64 { return most().heap }
}

// resident is the memory of this process, as the kernel counts it; 0 where it
// doesn't tell (https://www.kernel.org/doc/html/latest/filesystems/proc.html).
func resident() int64 {
	var size, pages int64
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	if _, err := fmt.Sscan(string(b), &size, &pages); err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// copySize is how much is copied, in MB. The bound on memory is the same at any
// size: make copy moves a gigabyte.
func copySize(t *testing.T) int {
	t.Helper()
	v := os.Getenv("WIREWAIT_COPY_MB")
	if v == "" {
		return 200 << 20
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("WIREWAIT_COPY_MB=%q: give a number of megabytes", v)
	}
	return n << 20
}

func TestCopy_FlatMemoryBothWays(t *testing.T) {
	if testing.Short() {
		t.Skip("moves 200 MB four times: run without -short")
	}
	const mostHeap, mostResident = 64 << 20, 128 << 20
	size := copySize(t)
	pg := startPostgres(t, lab.PostgresOptions{Settings: map[string]string{"synchronize_seqscans": "off"}})
	for name, delay := range map[string]inject.Settings{"undelayed": {}, "delayed": inject.Symmetric(8*time.Millisecond, time.Millisecond)} {
		t.Run(name, func(t *testing.T) {
			psql(t, pg, pg.Addr(), "postgres", "-qc", "drop table if exists bulk; create unlogged table bulk (n int, s text)").must(t)
			lc := postgresLink(pg)
			lc.Delay = delay
			r := newRig(t, lc)
			moves := func(what string, f func()) {
				t.Helper()
				most := watchMemory()
				began := time.Now()
				f()
				grew := most()
				t.Logf("%s, %d MB: %v, %v", what, size>>20, time.Since(began).Round(time.Millisecond), grew)
				if grew.heap > mostHeap || grew.resident > mostResident {
					t.Errorf("%s: %v", what, grew)
				}
			}
			in, back := newRows(size), sha256.New()
			moves("COPY FROM", func() {
				c := psql(t, pg, r.addr(), "postgres", "-c", "copy bulk from stdin")
				c.Stdin = in
				if out, want := c.must(t), fmt.Sprintf("COPY %d\n", in.n); out != want {
					t.Errorf("psql says %q, want %q", out, want)
				}
			})
			moves("COPY TO", func() {
				c := psql(t, pg, r.addr(), "postgres", "-c", "copy bulk to stdout")
				c.Stdout = back
				c.must(t)
			})
			if string(back.Sum(nil)) != string(in.sum.Sum(nil)) {
				t.Error("what came back is not what was sent")
			}
			if got := r.writes(t); got["COPY"] != 1 || len(got) != 1 {
				t.Errorf("writes %v, want the one COPY", got)
			}
		})
	}
}
