package proxy

import (
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// bufferSize is what one read can take: also the most that is framed at once.
const bufferSize = 64 << 10

// buffers are shared by all connections: an idle one holds none.
var buffers = sync.Pool{New: func() any {
	b := make([]byte, bufferSize)
	return &b
}}

// headers keeps the pool's slice headers from being allocated anew each time.
var headers = sync.Pool{New: func() any { return new([]byte) }}

func getBuffer() []byte {
	p := buffers.Get().(*[]byte)
	b := *p
	*p = nil
	headers.Put(p)
	return b
}

func putBuffer(b []byte) {
	if cap(b) < bufferSize {
		return
	}
	p := headers.Get().(*[]byte)
	*p = b[:bufferSize]
	buffers.Put(p)
}

// budget bounds bytes over all connections. It is a wire.Budget.
type budget struct {
	limit int64
	used  atomic.Int64
}

func (b *budget) Take(n int) bool {
	if b.used.Add(int64(n)) > b.limit {
		b.used.Add(-int64(n))
		return false
	}
	return true
}

func (b *budget) Give(n int) { b.used.Add(-int64(n)) }

// defaultLineLimit is the bound of all lines together: the smaller of 1 GiB and
// half of what the process may use, by GOMEMLIMIT or its control group.
func defaultLineLimit() int64 {
	limit := int64(1 << 30)
	if m := debug.SetMemoryLimit(-1); m != math.MaxInt64 {
		limit = min(limit, m/2)
	}
	// Version 2's memory.max as a container sees its own group; "max" is none.
	// https://docs.kernel.org/admin-guide/cgroup-v2.html#memory-interface-files
	for _, f := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if b, err := os.ReadFile(f); err == nil {
			if m, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && m > 0 {
				limit = min(limit, m/2)
			}
		}
	}
	return limit
}
