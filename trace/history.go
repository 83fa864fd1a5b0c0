package trace

import (
	"slices"
	"time"

	"github.com/wirewait/wirewait/wire"
)

// A history is when a member first had come to each position:
//
//	at         100     140     180        both grow
//	position   0/50    0/80    0/A0       0/60 was reached at 140
//
// Its memory is bounded; what is older than the oldest entry is forgotten.
type history struct {
	entries   []reach
	forgotten wire.Position // nothing is known up to here
}

type reach struct {
	at       wire.Stamp
	position wire.Position
	late     time.Duration // by how much it may have been later
}

const maxHistory = 8192

// add notes that a position was reached at at, or earlier. Reports of several
// connections may come out of order.
func (h *history) add(at wire.Stamp, p wire.Position, late time.Duration) {
	if p.IsZero() || h.forgotten.Reaches(p) {
		return
	}
	i := len(h.entries)
	for i > 0 && h.entries[i-1].at > at {
		i--
	}
	if i > 0 && h.entries[i-1].position.Reaches(p) {
		return
	}
	end := i // those that come later and say no more
	for end < len(h.entries) && p.Reaches(h.entries[end].position) {
		end++
	}
	h.entries = slices.Replace(h.entries, i, end, reach{at, p, late})
	if len(h.entries) > maxHistory {
		half := len(h.entries) / 2
		h.forgotten = h.entries[half-1].position
		h.entries = slices.Delete(h.entries, 0, half)
	}
}

// reached is when p was first reached; not ok: not yet, or nobody remembers.
func (h *history) reached(p wire.Position) (at wire.Stamp, ok bool) {
	e, ok := h.find(p)
	return e.at, ok
}

// latest is the position that was reached last.
func (h *history) latest() wire.Position {
	if n := len(h.entries); n > 0 {
		return h.entries[n-1].position
	}
	return h.forgotten
}

func (h *history) find(p wire.Position) (reach, bool) {
	if h.forgotten.Reaches(p) {
		return reach{}, false
	}
	i, _ := slices.BinarySearchFunc(h.entries, p, func(e reach, p wire.Position) int { return e.position.Compare(p) })
	if i == len(h.entries) {
		return reach{}, false
	}
	return h.entries[i], true
}
