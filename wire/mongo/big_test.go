package mongo

import (
	"runtime"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/wire"
)

// lateConcern is a 40 MB insert whose write concern stands at its very end,
// given in reads of n bytes; documents in the body or in a sequence.
func lateConcern(t *testing.T, inBody bool, n int) (wire.Exchange, []string) {
	t.Helper()
	one := doc(t, bson.D{{Key: "pad", Value: make([]byte, 1<<20)}})
	const count = 40
	command := bson.D{{Key: "insert", Value: "c"}}
	var m []byte
	if inBody {
		array := bson.A{}
		for range 14 {
			array = append(array, bson.Raw(one))
		}
		command = append(command, bson.E{Key: "documents", Value: array})
	}
	command = append(command, bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}}, bson.E{Key: "$db", Value: "d"})
	if inBody {
		m = msg(1, 0, 0, kind0(doc(t, command)))
	} else {
		docs := make([][]byte, count)
		for i := range docs {
			docs[i] = one
		}
		m = msg(1, 0, 0, kind1("documents", docs...), kind0(doc(t, command)))
	}
	var got wire.Exchange
	var troubles []string
	s := New(wire.Options{Trouble: func(r string) { troubles = append(troubles, r) }})
	s.Open().Emit = func(x *wire.Exchange) bool { got = *x; return true }
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var pieces []wire.Piece
	for off := 0; off < len(m); off += n {
		b := m[off:min(off+n, len(m))]
		pieces = s.Frame(wire.ToServer, b, 1, pieces[:0])
		s.Decode(wire.ToServer, b, pieces)
	}
	s.Open().Departed(wire.ToServer, int64(len(m)), 2)
	s.End()
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 64<<10 {
		t.Errorf("reading %d MB allocated %d bytes", len(m)>>20, used)
	}
	return got, troubles
}

func TestBig_ConcernBehindAllDocuments(t *testing.T) {
	for _, inBody := range []bool{false, true} {
		for _, n := range []int{64 << 10, 32<<10 + 1} {
			x, troubles := lateConcern(t, inBody, n)
			batch := 40
			if inBody {
				batch = 14
			}
			if x.Operation != "insert" || x.Mongo.WriteConcern.W != "majority" || x.Database != "d" || x.Batch != batch || len(troubles) > 0 {
				t.Errorf("in body %v, reads of %d: %s, %v", inBody, n, said(x), troubles)
			}
		}
	}
}

// A big message, compressed: what is kept of it is what is read.
func TestBig_CompressedInBoundedMemory(t *testing.T) {
	docs := make([][]byte, 20)
	for i := range docs {
		docs[i] = doc(t, bson.D{{Key: "a", Value: noise(1 << 20)}})
	}
	command := kind0(doc(t, bson.D{{Key: "insert", Value: "c"}, {Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}}, {Key: "$db", Value: "d"}}))
	for name, c := range map[string]struct {
		m     []byte
		bound uint64
	}{
		"the concern in front": {msg(1, 0, 0, command, kind1("documents", docs...)), 4 << 20},
		"the concern behind":   {msg(1, 0, 0, kind1("documents", docs...), command), 64 << 20},
	} {
		m := compress(t, packedNoop, c.m)
		s := New(wire.Options{})
		s.Open().Emit = func(*wire.Exchange) bool { return true }
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var pieces []wire.Piece
		for b := m; len(b) > 0; {
			n := min(64<<10, len(b))
			pieces = s.Frame(wire.ToServer, b[:n], 1, pieces[:0])
			s.Decode(wire.ToServer, b[:n], pieces)
			b = b[n:]
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > c.bound {
			t.Errorf("%s: reading %d MB allocated %d KB", name, len(m)>>20, used>>10)
		} else {
			t.Logf("%s: %d KB", name, used>>10)
		}
		s.End()
	}
}
