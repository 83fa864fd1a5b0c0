//go:build unix

package proxy_test

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"runtime"
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

// heapPeak watches the heap until it is asked for the most it grew by.
func heapPeak() func() int64 {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	read := func() int64 {
		metrics.Read(sample)
		return int64(sample[0].Value.Uint64())
	}
	start, peak := read(), int64(0)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			peak = max(peak, read()-start)
			select {
			case <-tick.C:
			case <-stop:
				tick.Stop()
				return
			}
		}
	}()
	return func() int64 { close(stop); <-done; return peak }
}

func TestCopy_200MBBothWays(t *testing.T) {
	if testing.Short() {
		t.Skip("moves 200 MB four times: run without -short")
	}
	const size, most = 200 << 20, 64 << 20
	pg := startPostgres(t, lab.PostgresOptions{Settings: map[string]string{"synchronize_seqscans": "off"}})
	for name, delay := range map[string]inject.Settings{"undelayed": {}, "delayed": inject.Symmetric(8*time.Millisecond, time.Millisecond)} {
		t.Run(name, func(t *testing.T) {
			psql(t, pg, pg.Addr(), "postgres", "-qc", "drop table if exists bulk; create unlogged table bulk (n int, s text)").must(t)
			lc := postgresLink(pg)
			lc.Delay = delay
			r := newRig(t, lc)

			in := newRows(size)
			c := psql(t, pg, r.addr(), "postgres", "-c", "copy bulk from stdin")
			c.Stdin = in
			peak := heapPeak()
			began := time.Now()
			out := c.must(t)
			grew := peak()
			t.Logf("in: %v, heap grew by %d MB", time.Since(began), grew>>20)
			if want := fmt.Sprintf("COPY %d\n", in.n); out != want {
				t.Errorf("psql says %q, want %q", out, want)
			}
			if grew > most {
				t.Errorf("the heap grew by %d MB during COPY FROM", grew>>20)
			}

			back := sha256.New()
			c = psql(t, pg, r.addr(), "postgres", "-c", "copy bulk to stdout")
			c.Stdout = back
			peak = heapPeak()
			began = time.Now()
			c.must(t)
			grew = peak()
			t.Logf("out: %v, heap grew by %d MB", time.Since(began), grew>>20)
			if string(back.Sum(nil)) != string(in.sum.Sum(nil)) {
				t.Error("what came back is not what was sent")
			}
			if grew > most {
				t.Errorf("the heap grew by %d MB during COPY TO", grew>>20)
			}
			if got := r.writes(t); got["COPY"] != 1 || len(got) != 1 {
				t.Errorf("writes %v, want the one COPY", got)
			}
		})
	}
}
