package postgres

// names are the prepared statements and portals of a connection. SQL's PREPARE
// and the protocol's Parse share one name space, as DECLARE and Bind do.
type names struct {
	statements map[string]*statement
	portals    map[string]*statement
}

// maxPrepared bounds how many are remembered; beyond it all are forgotten.
const maxPrepared = 10_000

func (s *session) prepareStatement(name string, st *statement) {
	old, replaces := s.statements[name]
	s.kept -= textOf(old)
	if len(s.statements) >= maxPrepared && !replaces {
		s.closeAll()
		s.trouble("statements")
	}
	if s.statements == nil {
		s.statements = make(map[string]*statement)
	}
	s.statements[name] = st
}

func (s *session) bindPortal(name string, st *statement) {
	if _, replaces := s.portals[name]; len(s.portals) >= maxPrepared && !replaces {
		clear(s.portals)
		s.trouble("portals")
	}
	if s.portals == nil {
		s.portals = make(map[string]*statement)
	}
	s.portals[name] = st
}

// close forgets a statement (S) or a portal (P).
func (s *session) close(what byte, name string) {
	if what == 'P' {
		delete(s.portals, name)
		return
	}
	s.kept -= textOf(s.statements[name])
	delete(s.statements, name)
}

// closeAll forgets all statements.
func (s *session) closeAll() {
	for _, st := range s.statements {
		s.kept -= textOf(st)
	}
	clear(s.statements)
}

// textOf is the size of a statement's text.
func textOf(st *statement) int {
	if st == nil {
		return 0
	}
	return len(st.text)
}

// endPortals forgets the portals at the end of a transaction, but for cursors
// WITH HOLD.
func (s *session) endPortals() {
	for name, st := range s.portals {
		if st == nil || !st.hold {
			delete(s.portals, name)
		}
	}
}
