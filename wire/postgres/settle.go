package postgres

import "github.com/wirewait/wirewait/wire"

type settler struct{ round []*call }

// settle takes the calls whose bytes are decoded, first in, first out.
func (s *session) settle() {
	for s.ready.len() > 0 {
		it := s.ready.front()
		reqEnd, repEnd := it.reqEnd, it.repEnd
		if it.c != nil {
			reqEnd, repEnd = it.c.reqEnd, it.c.repEnd
		}
		if !s.ended && (s.decoders[wire.ToServer].off < reqEnd || s.decoders[wire.ToClient].off < repEnd) {
			return
		}
		t := s.ready.pop()
		if t.c != nil {
			s.round = append(s.round, t.c)
			continue
		}
		for i, c := range s.round {
			s.round[i] = nil
			c.x.Answered = c.result != 0
			c.x.OK = c.x.Answered && c.result != 'E'
			if c.result == 0 && (c.kind == kindPrepare || c.kind == kindLone || c.kind == kindSync) || c.cut {
				s.open.Discard(c.x)
			} else {
				s.open.Complete(c.x)
			}
			s.free(c)
		}
		s.round = s.round[:0]
		if t.tail != nil {
			s.open.CloseTail(t.tail)
		}
	}
}
