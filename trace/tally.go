package trace

// A tally counts by name. Names come from the wire, so there is a bound.
type tally map[string]uint64

const maxTally = 64

func (t *tally) add(name string, n uint64) {
	if *t == nil {
		*t = tally{}
	}
	if _, ok := (*t)[name]; !ok && len(*t) >= maxTally {
		name = Other
	}
	(*t)[name] += n
}

func (t *tally) merge(o tally) {
	for name, n := range o {
		t.add(name, n)
	}
}
