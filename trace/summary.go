package trace

import (
	"io"
	"sync"
	"time"
)

// Summary is a Consumer that adds up waits by protocol, operation and what the
// write waited for. The zero value is ready to use. It is safe to read while
// it runs, and its memory is bounded.
type Summary struct {
	mu sync.Mutex
}

// Row is one line of a summary.
type Row struct {
	Protocol, Operation string
	// Concern is the write concern or commit level, in a word or two.
	Concern       string
	Write         bool
	Count, Errors uint64
	// Total and the parts that it divides into.
	Total, Receive, Request, Server, Replication, Reply Quantiles
}

// Quantiles describe many durations. They are right to 1 %.
type Quantiles struct{ P50, P95, P99, Mean time.Duration }

// Consume adds one exchange.
func (s *Summary) Consume(f *Finished) {}

// Rows is a snapshot, sorted for reading.
func (s *Summary) Rows() []Row { return nil }

// Table prints the waits in ms.
func (s *Summary) Table(w io.Writer) {}
