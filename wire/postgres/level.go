package postgres

// belief is what synchronous_commit is thought to be, and why: "default" (the
// server's own, whose value isn't told: ""), "startup", "set", "set_local", or
// "unknown" after what can't be followed.
type belief struct{ value, source string }

// levels follow synchronous_commit through a session's statements. A commit is
// made at the level of that moment.
type levels struct {
	start   belief // what RESET goes back to
	session belief
	local   belief // of SET LOCAL, while isLocal
	isLocal bool
	base    belief // session as the transaction began
	saved   []savedLevel
}

type savedLevel struct {
	name           string
	session, local belief
	isLocal        bool
}

// maxSavepoints bounds those that are followed.
const maxSavepoints = 1_000

func (l *levels) begin(b belief) {
	*l = levels{start: b, session: b, base: b}
}

func (l *levels) now() belief {
	if l.isLocal {
		return l.local
	}
	return l.session
}

func (l *levels) set(b belief) { l.session, l.isLocal = b, false }

func (l *levels) setLocal(b belief) { l.local, l.isLocal = b, true }

// committed ends a transaction that is kept.
func (l *levels) committed() {
	l.base, l.isLocal = l.session, false
	l.saved = l.saved[:0]
}

// rolledBack ends a transaction that is not.
func (l *levels) rolledBack() {
	l.session = l.base
	l.committed()
}

func (l *levels) savepoint(name string) {
	if len(l.saved) < maxSavepoints {
		l.saved = append(l.saved, savedLevel{name, l.session, l.local, l.isLocal})
	}
}

// find is the index of the newest savepoint of a name, -1 if there is none.
func (l *levels) find(name string) int {
	for i := len(l.saved) - 1; i >= 0; i-- {
		if l.saved[i].name == name {
			return i
		}
	}
	return -1
}

func (l *levels) rollbackTo(name string) {
	i := l.find(name)
	if i < 0 {
		l.set(belief{source: "unknown"})
		return
	}
	v := l.saved[i]
	l.session, l.local, l.isLocal = v.session, v.local, v.isLocal
	l.saved = l.saved[:i+1]
}

func (l *levels) release(name string) {
	if i := l.find(name); i >= 0 {
		l.saved = l.saved[:i]
	}
}
