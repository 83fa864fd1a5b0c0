package trace

import (
	"slices"

	"github.com/wirewait/wirewait/wire"
)

// observations are which session was seen in which transaction, and when: the
// link between a client's write and a commit in the log that the wire doesn't
// show.
type observations map[int32][]observation

type observation struct {
	xid      uint32
	from, to wire.Stamp // of the query that saw it
}

const (
	maxObserved   = 1 << 14 // sessions
	maxOfABackend = 32
)

func (o *observations) add(r *wire.Report) {
	if *o == nil || len(*o) > maxObserved {
		*o = observations{}
	}
	for _, b := range r.Backends {
		list := (*o)[b.PID]
		// The first query may have begun before the write, the second didn't.
		if n := len(list); n > 1 && list[n-1].xid == b.XID && list[n-2].xid == b.XID {
			continue
		}
		if len(list) >= maxOfABackend {
			list = slices.Delete(list, 0, 1)
		}
		(*o)[b.PID] = append(list, observation{b.XID, r.In, r.Out})
	}
}

// of is the transaction that a session was in, as seen by a query that began
// after from and was answered before to; 0: nobody looked meanwhile.
func (o observations) of(pid int32, from, to wire.Stamp) uint32 {
	for _, x := range slices.Backward(o[pid]) {
		if x.from >= from && x.to <= to {
			return x.xid
		}
	}
	return 0
}
