package trace

import "github.com/wirewait/wirewait/wire"

// DelayErrors are how much longer requests and replies of a link were held than
// they were to be, indexed by wire.Direction: how exact the delay is. They are
// of exchanges, so a link that reads no messages (tcp) has none.
type DelayErrors struct {
	Count [2]uint64
	Error [2]Quantiles
}

func (s *Summary) delayed(link string, x *wire.Exchange) {
	for d := range x.Sides {
		planned, achieved, ok := Held(&x.Sides[d])
		if !ok {
			continue
		}
		h := s.delays[link]
		if h == nil {
			if s.delays == nil {
				s.delays = make(map[string]*[2]histogram)
			}
			h = new([2]histogram)
			s.delays[link] = h
		}
		h[d].add(achieved - planned) // never negative: nothing leaves before it's due
	}
}

// DelayErrors are those of each link that delayed an exchange.
func (s *Summary) DelayErrors() map[string]DelayErrors {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]DelayErrors, len(s.delays))
	for link, h := range s.delays {
		var e DelayErrors
		for d := range h {
			e.Count[d], e.Error[d] = h[d].count, h[d].quantiles()
		}
		all[link] = e
	}
	return all
}
