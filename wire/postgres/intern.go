package postgres

// interned keeps the short strings that a connection repeats (tags, names,
// codes, keywords), so that reading them again allocates nothing. It forgets
// all when full: its size is bounded whatever is sent.
type interned map[string]string

const (
	maxInterned    = 512
	maxInternedLen = 256
)

func (s *interned) text(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if t, ok := (*s)[string(b)]; ok {
		return t
	}
	t := string(b)
	if len(b) > maxInternedLen {
		return t
	}
	if *s == nil {
		*s = make(map[string]string)
	}
	if len(*s) >= maxInterned {
		clear(*s)
	}
	(*s)[t] = t
	return t
}
