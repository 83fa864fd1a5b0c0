package trace

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wirewait/wirewait/wire"
)

func TestHistogram_QuantilesAreRightToOnePercent(t *testing.T) {
	t.Parallel()
	const seed = 7
	r := rand.New(rand.NewPCG(seed, seed))
	for name, draw := range map[string]func() time.Duration{
		"microseconds": func() time.Duration { return time.Duration(r.Int64N(50_000)) },
		"exponential":  func() time.Duration { return time.Duration(r.ExpFloat64() * float64(40*time.Millisecond)) },
		"one value":    func() time.Duration { return 81_234_567 },
		"wide":         func() time.Duration { return time.Duration(math.Exp(r.Float64() * 29)) }, // 1 ns to 1 h
	} {
		t.Run(name, func(t *testing.T) {
			var h histogram
			all := make([]time.Duration, 10_001)
			for i := range all {
				all[i] = draw()
				h.add(all[i])
			}
			slices.Sort(all)
			for _, q := range []float64{0.001, 0.5, 0.95, 0.99, 1} {
				want := all[int(math.Ceil(q*float64(len(all))))-1]
				if got := h.quantile(q); math.Abs(float64(got-want)) > 0.01*float64(want) {
					t.Errorf("quantile %v is %v, want %v", q, got, want)
				}
			}
		})
	}
}

func TestHistogram_EveryValueHasABucketThatHoldsIt(t *testing.T) {
	t.Parallel()
	for shift := range 63 {
		for _, v := range []time.Duration{1<<shift - 1, 1 << shift, 1<<shift + 1, math.MaxInt64} {
			o, b := bucket(v)
			if o < 0 || o >= octaves || b < 0 || b >= perOctave {
				t.Fatalf("%d falls into bucket %d of octave %d", v, b, o)
			}
			if m := middle(o, b); v < 1<<43 && math.Abs(float64(m-v)) > 0.01*float64(v) {
				t.Errorf("%d is represented by %d", v, m)
			}
		}
	}
}

func TestSummary_Table(t *testing.T) {
	t.Parallel()
	var s Summary
	add := func(n int, x *wire.Exchange, set func(*wire.Exchange)) {
		set(x)
		for range n {
			s.Consume(&Finished{Exchange: x, Conn: &Conn{}, Waits: Split(x)})
		}
	}
	mongo := func(op, w string, write bool) func(*wire.Exchange) {
		return func(x *wire.Exchange) {
			x.Protocol, x.Operation, x.Write = wire.MongoDB, op, write
			x.Mongo.WriteConcern.W = w
		}
	}
	add(3, exchange(10, 12, 52, 55, 56, 96), mongo("insert", "majority", true))
	add(2, exchange(10, 10, 50, 51, 51, 91), mongo("insert", "1", true))
	add(1, exchange(10, 10, 50, 51, 51, 91), mongo("find", "", false))
	add(1, exchange(10, 10, 50), func(x *wire.Exchange) {
		mongo("insert", "0", true)(x)
		x.NoReply, x.Answered, x.OK = true, false, false
	})
	add(1, exchange(10, 10, 11), func(x *wire.Exchange) {
		mongo("insert", "majority", true)(x)
		x.Answered, x.OK = false, false // lost: an error, and no time of its own
	})
	add(1, exchange(10, 10, 50, 51, 51, 91), func(x *wire.Exchange) {
		mongo("update", "1", true)(x)
		x.Mongo.InTransaction = true
	})
	add(1, exchange(10, 10, 50, 51, 51, 91), func(x *wire.Exchange) {
		mongo("commitTransaction", "majority", true)(x)
		x.Mongo.InTransaction = true
	})
	add(1, exchange(10, 10, 50, 51, 51, 91), func(x *wire.Exchange) { mongo("hello", "", false)(x); x.Mongo.Monitor = true })
	add(2, exchange(10, 10, 50, 52, 52, 92), func(x *wire.Exchange) {
		x.Protocol, x.Operation, x.Postgres.SynchronousCommit = wire.Postgres, "INSERT", "remote_apply"
		x.OK, x.ErrorCode = false, "23505"
	})
	add(1, exchange(10, 10, 50, 51, 51, 91), func(x *wire.Exchange) {
		x.Protocol, x.Operation, x.Postgres.SynchronousCommit, x.Postgres.InBlock = wire.Postgres, "INSERT", "on", true
	})

	var b strings.Builder
	s.Table(&b)
	want := `
operation          waits for       count  errors  p50 ms  p99 ms  mean ms  receive  request  server  replication  reply
commitTransaction  majority            1       0   81.00   81.00    81.00        0    40.00   1.000            0  40.00
insert             w:0                 1       0   40.00   40.00    40.00        0    40.00       0            0      0
insert             w:1                 2       0   81.00   81.00    81.00        0    40.00   1.000            0  40.00
insert             majority            4       1   86.00   86.00    86.00    2.000    40.00   4.000            0  40.00
update             in transaction      1       0   81.00   81.00    81.00        0    40.00   1.000            0  40.00
find               -                   1       0   81.00   81.00    81.00        0    40.00   1.000            0  40.00
INSERT             in transaction      1       0   81.00   81.00    81.00        0    40.00   1.000            0  40.00
INSERT             remote_apply        2       2   82.00   82.00    82.00        0    40.00   2.000            0  40.00
`
	if got := "\n" + b.String(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestSummary_MemoryIsBounded(t *testing.T) {
	t.Parallel()
	var s Summary
	for i := range 10_000 {
		x := exchange(10, 12, 52, 55, 56, 96)
		x.Protocol, x.Operation = wire.MongoDB, fmt.Sprint("unheard-of-", i)
		s.Consume(&Finished{Exchange: x, Conn: &Conn{}, Waits: Split(x)})
	}
	rows := s.Rows()
	var count uint64
	for _, r := range rows {
		count += r.Count
	}
	if len(rows) > maxRows+2 || count != 10_000 {
		t.Errorf("%d rows with %d exchanges, want at most %d rows with 10000", len(rows), count, maxRows+2)
	}
	if !slices.ContainsFunc(rows, func(r Row) bool { return r.Operation == Other }) {
		t.Errorf("no row is called %s", Other)
	}
}

func TestSummary_ReadWhileRunning(t *testing.T) {
	t.Parallel()
	var s Summary
	var wg sync.WaitGroup
	x := exchange(10, 12, 52, 55, 56, 96)
	wg.Go(func() {
		for range 2000 {
			s.Consume(&Finished{Exchange: x, Conn: &Conn{}, Waits: Split(x)})
		}
	})
	var last uint64
	for last < 2000 {
		if rows := s.Rows(); len(rows) > 0 {
			if rows[0].Count < last {
				t.Fatalf("the count went from %d back to %d", last, rows[0].Count)
			}
			last = rows[0].Count
		}
	}
	wg.Wait()
}

func TestWaterfall(t *testing.T) {
	t.Parallel()
	delayed := exchange(10, 12, 52, 55, 56, 96)
	delayed.Protocol, delayed.Operation, delayed.Collection = wire.MongoDB, "insert", "orders"
	delayed.Mongo.WriteConcern.W = "majority"
	delayed.Sides[wire.ToServer].Planned = 40 * time.Millisecond
	delayed.Sides[wire.ToClient].Planned = 40 * time.Millisecond

	failed := exchange(10, 10, 10, 15, 15, 15)
	failed.Protocol, failed.Operation, failed.Postgres.Summary = wire.Postgres, "INSERT", "INSERT orders"
	failed.OK, failed.ErrorCode = false, "23505"

	unacknowledged := exchange(10, 10, 50)
	unacknowledged.Protocol, unacknowledged.Operation, unacknowledged.NoReply = wire.MongoDB, "insert", true
	unacknowledged.Mongo.WriteConcern.W = "0"

	var b strings.Builder
	for _, x := range []*wire.Exchange{delayed, failed, unacknowledged, {}} {
		b.WriteByte('\n')
		Waterfall(&b, &Finished{Exchange: x, Conn: &Conn{}, Waits: Split(x)}, 80)
	}
	want := `
insert orders   majority   86.00 ms
receive        2.000 ms  |=                                |
request        40.00 ms  | ###############                 |  injected 40.00 ms
server         4.000 ms  |                ==               |
reply          40.00 ms  |                  ###############|  injected 40.00 ms

INSERT orders   5.000 ms   error 23505
request            0 ms  |                                 |
server         5.000 ms  |=================================|
reply              0 ms  |                                 |

insert   w:0   40.00 ms   no reply expected
request        40.00 ms  |#################################|

0 ms   no reply came
request            0 ms  |                                 |
server             0 ms  |                                 |
reply              0 ms  |                                 |
`
	if b.String() != want {
		t.Errorf("got %s\nwant %s", b.String(), want)
	}
}

func BenchmarkSummary(b *testing.B) {
	var s Summary
	x := exchange(10, 12, 52, 55, 56, 96)
	f := &Finished{Exchange: x, Conn: &Conn{}, Waits: Split(x)}
	b.ReportAllocs()
	for b.Loop() {
		s.Consume(f)
	}
}
