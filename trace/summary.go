package trace

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/wirewait/wirewait/wire"
)

// maxRows bounds a summary: names of operations come from the wire.
const maxRows = 256

// Other stands for the operations that found no row left.
const Other = "_OTHER"

// Summary is a Consumer that adds up waits by protocol, operation and what the
// write waited for. Monitoring and replication are left out. The zero value is
// ready to use. It is safe to read while it runs, and its memory is bounded.
type Summary struct {
	mu   sync.Mutex
	rows map[rowKey]*rowData
}

type rowKey struct {
	protocol           wire.Protocol
	operation, concern string
	write              bool
}

type rowData struct {
	count, errors uint64
	total         histogram
	parts         [5]histogram
}

// Row is one line of a summary.
type Row struct {
	Protocol, Operation string
	// Concern is what the writes waited for; see Finished.Concern.
	Concern string
	Write   bool
	// Errors counts those of Count that failed or were not replicated as asked.
	Count, Errors uint64
	// Total and the parts that it divides into, of all that did not lose their
	// reply. Means add up, quantiles don't.
	Total, Receive, Request, Server, Replication, Reply Quantiles
}

// Quantiles describe many durations: the mean exactly, the others to 1 %.
type Quantiles struct{ P50, P95, P99, Mean time.Duration }

// Consume adds one exchange.
func (s *Summary) Consume(f *Finished) {
	if f.Background() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.row(rowKey{f.Protocol, f.Operation, f.Concern(), f.Write})
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
}

func (s *Summary) row(k rowKey) *rowData {
	r := s.rows[k]
	if r == nil && len(s.rows) >= maxRows {
		k = rowKey{protocol: k.protocol, operation: Other, write: k.write}
		r = s.rows[k]
	}
	if r == nil {
		if s.rows == nil {
			s.rows = make(map[rowKey]*rowData)
		}
		r = new(rowData)
		s.rows[k] = r
	}
	return r
}

// Rows is a snapshot: by protocol, writes before reads, then by operation and
// by how much the write waited for.
func (s *Summary) Rows() []Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := make([]Row, 0, len(s.rows))
	for k, r := range s.rows {
		rows = append(rows, Row{
			Protocol: string(k.protocol), Operation: k.operation, Concern: k.concern, Write: k.write,
			Count: r.count, Errors: r.errors,
			Total:   r.total.quantiles(),
			Receive: r.parts[0].quantiles(), Request: r.parts[1].quantiles(), Server: r.parts[2].quantiles(),
			Replication: r.parts[3].quantiles(), Reply: r.parts[4].quantiles(),
		})
	}
	slices.SortFunc(rows, compareRows)
	return rows
}

func compareRows(a, b Row) int {
	return cmp.Or(
		cmp.Compare(a.Protocol, b.Protocol),
		cmp.Compare(readsLast(a), readsLast(b)),
		cmp.Compare(a.Operation, b.Operation),
		cmp.Compare(strength(a.Concern), strength(b.Concern)),
		cmp.Compare(a.Concern, b.Concern),
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
