package trace

import (
	"sync"
	"time"

	"github.com/wirewait/wirewait/wire"
)

// maxRows bounds what a summary keeps of each link: names of operations come
// from the wire, links from the configuration.
const maxRows = 256

// Other stands for the operations that found no row left.
const Other = "_OTHER"

// Summary is a Consumer that adds up waits by link, operation and what the
// write waited for, and the errors of the delay by link and direction.
// Monitoring and replication are left out. The zero value is ready to use. It
// is safe to read while it runs, and its memory is bounded.
type Summary struct {
	mu     sync.Mutex
	rows   map[rowKey]*rowData
	links  map[string]int // their rows
	delays map[string]*[2]histogram
	// latest is the row that was used last: writes are seldom alone.
	latest    *rowData
	latestKey rowKey
}

type rowKey struct {
	link                      string
	protocol                  wire.Protocol
	operation, concern, basis string
	replication               string // its basis
	write                     bool
}

type rowData struct {
	count, errors uint64
	total         histogram
	parts         [5]histogram
	releasedBy    tally
	releasedBasis tally
}

// Row is one line of a summary. What wasn't told apart is empty.
type Row struct {
	Link, Protocol, Operation string
	// Concern is what the writes waited for; see Finished.Concern. Basis is how
	// that is known; see Finished.Basis.
	Concern, Basis string
	// ReplicationBasis is how it is known for whom they waited; see Replication.
	ReplicationBasis string
	Write            bool
	// Errors counts those of Count that failed or were not replicated as asked,
	// and Missing those that lost their reply, whose times are in no figure.
	Count, Errors, Missing uint64
	// Total and the parts that it divides into, of all that did not lose their
	// reply. Means add up, quantiles don't.
	Total, Receive, Request, Server, Replication, Reply Quantiles
	// ReleasedBy counts the members whose acknowledgements released the writes, and
	// ReleasedBasis how that is known; see Replication. Nil where no links between
	// members were seen.
	ReleasedBy, ReleasedBasis map[string]uint64
	// Buckets are what Total is worked out from, from the shortest; nil: not asked
	// for. They only ever grow, so that whoever subtracts earlier ones has those of
	// the time between.
	Buckets []Bucket
}

// Bucket is how often a duration was seen, which Time is to 1 %.
type Bucket struct {
	Time  time.Duration
	Count uint64
}

// Quantiles describe many durations: the mean exactly, the others to 1 %.
type Quantiles struct{ P50, P95, P99, Mean time.Duration }

// Consume adds one exchange.
func (s *Summary) Consume(f *Finished) {
	if f.Background() {
		return
	}
	k := rowKey{protocol: f.Protocol, operation: f.Operation, concern: f.Concern(), basis: f.Basis(), replication: f.Replication.Basis, write: f.Write}
	if f.Conn != nil {
		k.link = f.Conn.Link
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.row(k)
	if f.Failed() || f.Unreplicated() {
		r.errors++
	}
	r.count++
	if f.Missing() {
		return // its parts end where its connection did
	}
	r.total.add(f.Waits.Total)
	for i, p := range f.Waits.Parts() {
		r.parts[i].add(p.Time)
	}
	s.delayed(k.link, f.Exchange)
	if f.Replication.Basis != "" {
		r.releasedBasis.add(f.Replication.Basis, 1)
		if by := f.Replication.ReleasedBy; by != "" {
			r.releasedBy.add(by, 1)
		}
	}
}

func (s *Summary) row(k rowKey) *rowData {
	if s.latest == nil || k != s.latestKey {
		s.latest, s.latestKey = s.find(k), k
	}
	return s.latest
}

func (s *Summary) find(k rowKey) *rowData {
	r := s.rows[k]
	if r == nil && s.links[k.link] >= maxRows {
		k = rowKey{link: k.link, protocol: k.protocol, operation: Other, write: k.write}
		r = s.rows[k]
	}
	if r == nil {
		if s.rows == nil {
			s.rows, s.links = make(map[rowKey]*rowData), make(map[string]int)
		}
		r = new(rowData)
		s.rows[k] = r
		s.links[k.link]++
	}
	return r
}

// Reset begins to count afresh.
func (s *Summary) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows, s.links, s.delays, s.latest = nil, nil, nil, nil
}
