package mongo

import "strconv"

// interned keeps the short strings that a connection repeats (commands,
// databases, collections, codes), so that reading them again allocates
// nothing. It forgets all when full: its size is bounded whatever is sent.
type interned struct {
	texts map[string]string
	codes map[int64]string
}

const (
	maxInterned    = 256
	maxInternedLen = 128
)

func (s *interned) text(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if t, ok := s.texts[string(b)]; ok {
		return t
	}
	t := string(b)
	if len(b) > maxInternedLen {
		return t
	}
	if s.texts == nil {
		s.texts = make(map[string]string)
	}
	if len(s.texts) >= maxInterned {
		clear(s.texts)
	}
	s.texts[t] = t
	return t
}

func (s *interned) code(n int64) string {
	if t, ok := s.codes[n]; ok {
		return t
	}
	if s.codes == nil {
		s.codes = make(map[int64]string)
	}
	if len(s.codes) >= maxInterned {
		clear(s.codes)
	}
	t := strconv.FormatInt(n, 10)
	s.codes[n] = t
	return t
}
