package trace

import (
	"cmp"
	"slices"
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

// By says what Group tells apart, besides the protocol and what writes waited
// for. The zero value has writes only, by nothing else.
type By struct {
	Link, Operation, Basis bool
	// Replication tells apart how the part of that name is known.
	Replication bool
	// Reads are rows too.
	Reads bool
	// Exact leaves out writes of which it isn't known exactly what they waited
	// for, ExactReplication besides those of which it isn't for whom.
	Exact, ExactReplication bool
}

// wants reports whether a row is counted.
func (b *By) wants(k *rowKey) bool {
	switch {
	case !k.write:
		return b.Reads
	case b.Exact && k.basis != BasisExact:
		return false
	}
	return !b.ExactReplication || Exact(k.replication)
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

// Rows is Group by operation, with reads.
func (s *Summary) Rows() []Row { return s.Group(By{Operation: true, Reads: true}) }

// Group is a snapshot: by link and protocol, writes before reads, then by
// operation and by how much the write waited for.
func (s *Summary) Group(by By) []Row {
	groups := s.group(by)
	rows := make([]Row, 0, len(groups))
	for k, r := range groups {
		rows = append(rows, Row{
			Link: k.link, Protocol: string(k.protocol), Operation: k.operation, Concern: k.concern, Basis: k.basis, ReplicationBasis: k.replication, Write: k.write,
			Count: r.count, Errors: r.errors, Missing: r.count - r.total.count,
			Total:   r.total.quantiles(),
			Receive: r.parts[0].quantiles(), Request: r.parts[1].quantiles(), Server: r.parts[2].quantiles(),
			Replication: r.parts[3].quantiles(), Reply: r.parts[4].quantiles(),
			ReleasedBy: r.releasedBy, ReleasedBasis: r.releasedBasis,
		})
	}
	slices.SortFunc(rows, compareRows)
	return rows
}

// group adds rows up that differ in nothing that is told apart. They are the
// caller's: working out quantiles shall not keep the tracer waiting.
func (s *Summary) group(by By) map[rowKey]*rowData {
	groups := make(map[rowKey]*rowData)
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, r := range s.rows {
		if !by.wants(&k) {
			continue
		}
		if !by.Link {
			k.link = ""
		}
		if !by.Operation {
			k.operation = ""
		}
		if !by.Basis {
			k.basis = ""
		}
		if !by.Replication {
			k.replication = ""
		}
		g := groups[k]
		if g == nil {
			g = new(rowData)
			groups[k] = g
		}
		g.merge(r)
	}
	return groups
}

func (r *rowData) merge(o *rowData) {
	r.count += o.count
	r.errors += o.errors
	r.total.merge(&o.total)
	for i := range r.parts {
		r.parts[i].merge(&o.parts[i])
	}
	r.releasedBy.merge(o.releasedBy)
	r.releasedBasis.merge(o.releasedBasis)
}

// Reset begins to count afresh.
func (s *Summary) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows, s.links, s.delays, s.latest = nil, nil, nil, nil
}

func compareRows(a, b Row) int {
	return cmp.Or(
		cmp.Compare(a.Link, b.Link),
		cmp.Compare(a.Protocol, b.Protocol),
		cmp.Compare(readsLast(a), readsLast(b)),
		cmp.Compare(a.Operation, b.Operation),
		cmp.Compare(strength(a.Concern), strength(b.Concern)),
		cmp.Compare(a.Concern, b.Concern),
		cmp.Compare(a.Basis, b.Basis),
		cmp.Compare(a.ReplicationBasis, b.ReplicationBasis),
	)
}

func readsLast(r Row) int {
	if r.Write {
		return 0
	}
	return 1
}

// strength orders concerns by what is waited for: nothing, this server, other
// members. Unlisted ones (w:2, tags) come between, by name.
func strength(concern string) int {
	order := [...]string{
		"", InTransaction, "w:0", "off", "w:1", "w:1 j", "local", "default",
		"remote_write", "on", "remote_apply", "majority", "majority j",
	}
	const between = 7 // after "default"
	if i := slices.Index(order[:], concern); i >= 0 {
		return 2 * i
	}
	return 2*between + 1
}
