package trace

import (
	"sync"

	"github.com/wirewait/wirewait/wire"
)

// Marker names what was going on when an exchange began: a scenario and its
// step. It's immutable.
type Marker struct{ Scenario, Step string }

// maxMarkers is how many are kept: writes that began before the oldest are
// long since handled.
const maxMarkers = 64

// markers are the latest ones, by when they began.
type markers struct {
	mu   sync.Mutex
	list []markedFrom
}

type markedFrom struct {
	from wire.Stamp
	m    *Marker // nil: nothing goes on
}

// Mark says what is going on from the stamp on; nil: nothing in particular.
// Finished.Marker of exchanges that begin later tells it. Stamps must not
// decrease.
func (t *Tracer) Mark(from wire.Stamp, m *Marker) {
	t.markers.mu.Lock()
	defer t.markers.mu.Unlock()
	if n := len(t.markers.list); n == maxMarkers {
		copy(t.markers.list, t.markers.list[1:])
		t.markers.list = t.markers.list[:n-1]
	}
	t.markers.list = append(t.markers.list, markedFrom{from, m})
}

// at is what went on at a moment.
func (s *markers) at(now wire.Stamp) *Marker {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.list) - 1; i >= 0; i-- {
		if s.list[i].from <= now {
			return s.list[i].m
		}
	}
	return nil
}
