package mongo

import "bytes"

// status is what a step of a reading machine came to.
type status uint8

const (
	going  status = iota // made progress
	hungry               // needs bytes that have not arrived
	done
	failed
)

// source is the stretch of a message at hand. It hands out values in place
// where they lie whole in the stretch and gathers only those that straddle two
// stretches, so that reading a message costs no copy and little memory.
type source struct {
	in   []byte // not yet read; not kept between calls
	part []byte // start of a value whose end has not arrived
	todo int    // bytes to step over
	pos  int    // bytes of the message read or stepped over
}

// need returns the next n bytes without consuming them. What need returned
// must be consumed, or asked for again with a larger n, before anything else.
// The bytes are valid until the next call.
func (s *source) need(n int) ([]byte, bool) {
	if !s.stepped() {
		return nil, false
	}
	if len(s.part) == 0 && len(s.in) >= n {
		return s.in[:n], true
	}
	if k := min(n-len(s.part), len(s.in)); k > 0 {
		s.part = append(s.part, s.in[:k]...)
		s.in = s.in[k:]
	}
	if len(s.part) < n {
		return nil, false
	}
	return s.part[:n], true
}

// consume takes the n bytes that need returned.
func (s *source) consume(n int) {
	s.pos += n
	if len(s.part) > 0 {
		s.part = s.part[:0]
		return
	}
	s.in = s.in[n:]
}

// discard steps over n bytes, whenever they come.
func (s *source) discard(n int) {
	s.pos += n
	s.todo += n
}

// stepped reports whether all that was to be discarded has come.
func (s *source) stepped() bool {
	k := min(s.todo, len(s.in))
	s.in = s.in[k:]
	s.todo -= k
	return s.todo == 0
}

// cstring takes a NUL-terminated string of at most limit bytes and returns it
// without its NUL, valid until the next call.
func (s *source) cstring(limit int) ([]byte, status) {
	if !s.stepped() {
		return nil, hungry
	}
	room := limit + 1 - len(s.part)
	window := s.in[:min(len(s.in), max(room, 0))]
	i := bytes.IndexByte(window, 0)
	if i < 0 {
		if len(window) >= room {
			return nil, failed
		}
		s.part = append(s.part, window...)
		s.in = s.in[len(window):]
		return nil, hungry
	}
	v := window[:i]
	if len(s.part) > 0 {
		s.part = append(s.part, v...)
		v = s.part
		s.part = s.part[:0]
	}
	s.in = s.in[i+1:]
	s.pos += len(v) + 1
	return v, done
}

// pastNUL steps over a string of any length that ends before position limit.
func (s *source) pastNUL(limit int) status {
	if !s.stepped() {
		return hungry
	}
	window := s.in[:min(len(s.in), max(limit-s.pos, 0))]
	i := bytes.IndexByte(window, 0)
	if i >= 0 {
		s.pos += i + 1
		s.in = s.in[i+1:]
		return done
	}
	s.pos += len(window)
	s.in = s.in[len(window):]
	if s.pos >= limit {
		return failed
	}
	return hungry
}

// reset makes the source ready for another message. Memory that a large value
// needed is not kept.
func (s *source) reset() {
	part := s.part[:0]
	if cap(part) > 1024 {
		part = nil
	}
	*s = source{part: part}
}
