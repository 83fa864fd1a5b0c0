package postgres

import "github.com/wirewait/wirewait/wire"

// takeRequest uses the facts of a call's request: what it did to the names, and
// which statement it ran; nil if its text isn't known.
//
// The server reports what succeeded in order, so that with c.parsed
// ParseCompletes the first c.parsed Parses took effect. Without an error the
// rest are taken to have too: their answers may not be in the capture.
func (s *session) takeRequest(c *call) (st *statement) {
	if c.further {
		s.index++
		return s.script.at(s.index)
	}
	facts := &s.decoders[wire.ToServer].facts
	parsed, bound := 0, 0
	failed := c.result == 'E'
	var own, described *statement // of a Parse, of a Bind or Describe
	ownName := ""
	for facts.len() > 0 && facts.front().end <= c.reqEnd {
		f := facts.pop()
		switch f.kind {
		case 0:
			s.begin(f.startup)
		case 'Q':
			s.dropScript()
			s.script, s.index = f.script, 0
			st = s.script.at(0)
		case 'P':
			own, ownName = f.script.at(0), f.name
			if c.skipped || failed && parsed >= c.parsed {
				s.kept -= textOf(own)
			} else {
				s.prepareStatement(f.name, own)
			}
			parsed++
			described = own
		case 'B':
			described = s.statements[f.name]
			if own != nil && f.name == ownName {
				described = own
			}
			if !c.skipped && !(failed && bound >= c.bound) {
				s.bindPortal(f.text, described)
			}
			bound++
		case 'D':
			if described == nil && f.what == 'S' {
				described = s.statements[f.name]
			}
		case 'C':
			if !c.skipped {
				s.close(f.what, f.name)
			}
		case 'E':
			if st = s.portals[f.text]; bound > 0 {
				st = described
			}
		}
	}
	if c.kind == kindPrepare {
		return described
	}
	return st
}

// textOf is the size of a statement's text.
func textOf(st *statement) int {
	if st == nil {
		return 0
	}
	return len(st.text)
}

func (s *session) prepareStatement(name string, st *statement) {
	s.kept -= textOf(s.statements[name])
	if s.names.prepare(name, st) {
		s.forgotten(st)
	}
}

func (s *session) bindPortal(name string, st *statement) {
	if s.names.bind(name, st) {
		s.trouble("portals")
	}
}

// forgotten counts the text that is left after all statements but one were
// forgotten.
func (s *session) forgotten(only *statement) {
	s.kept = textOf(only)
	s.trouble("statements")
}

func (s *session) close(what byte, name string) {
	if what == 'P' {
		delete(s.portals, name)
		return
	}
	s.kept -= textOf(s.statements[name])
	delete(s.statements, name)
}

func (s *session) closeAll() {
	for _, st := range s.statements {
		s.kept -= textOf(st)
	}
	clear(s.statements)
}

// newScript is an empty script, used again if possible.
func (s *session) newScript() *script {
	n := len(s.spare)
	if n == 0 {
		return new(script)
	}
	sc := s.spare[n-1]
	s.spare = s.spare[:n-1]
	return sc
}

// dropScript gives up the script of the Query at hand.
func (s *session) dropScript() {
	sc := s.script
	if sc == nil {
		return
	}
	s.script = nil
	for i := range sc.stmts {
		s.kept -= len(sc.stmts[i].text)
	}
	clear(sc.stmts)
	if cap(sc.stmts) <= 64 && len(s.spare) < 16 {
		sc.stmts = sc.stmts[:0]
		s.spare = append(s.spare, sc)
	}
}
