package mongo

import (
	"runtime"
	"testing"

	"github.com/wirewait/wirewait/wire"
)

// An idle connection keeps its session and little else, whatever it has read.
func TestSession_IdleMemory(t *testing.T) {
	const n = 200
	big := compress(t, packedZstd, insert(t, 1))
	newLoop().step(wire.ToServer, big) // what sessions share
	sessions := make([]*loop, n)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range sessions {
		l := newLoop()
		for _, cut := range []int{20, len(big)} {
			l.step(wire.ToServer, big[:cut])
			l.step(wire.ToServer, big[cut:])
			l.step(wire.ToClient, okReply(t, 2, 1))
		}
		l.pieces = nil
		sessions[i] = l
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	per := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / n
	if per > 6<<10 {
		t.Errorf("an idle session holds %d bytes", per)
	}
	t.Logf("an idle session holds %d bytes", per)
	runtime.KeepAlive(sessions)
}
