package trace

import (
	"cmp"
	"slices"
)

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
	// Buckets are rows' too.
	Buckets bool
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

// Rows is Group by operation, with reads.
func (s *Summary) Rows() []Row { return s.Group(By{Operation: true, Reads: true}) }

// Group is a snapshot: by link and protocol, writes before reads, then by
// operation and by how much the write waited for.
func (s *Summary) Group(by By) []Row {
	groups := s.group(by)
	rows := make([]Row, 0, len(groups))
	for k, r := range groups {
		var buckets []Bucket
		if by.Buckets {
			buckets = r.total.buckets()
		}
		rows = append(rows, Row{
			Buckets: buckets,
			Link:    k.link, Protocol: string(k.protocol), Operation: k.operation, Concern: k.concern, Basis: k.basis, ReplicationBasis: k.replication, Write: k.write,
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
