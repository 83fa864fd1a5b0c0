package postgres

import "github.com/wirewait/wirewait/wire"

// taking is the reading of one call's request.
type taking struct {
	c             *call
	parsed, bound int
	own           *statement // of its last Parse, whose name is ownName
	ownName       string
	described     *statement // of its last Parse, Bind or Describe
	run           *statement // of its Query or Execute
}

// takeRequest uses the facts of a call's request: what it did to the names, and
// which statement it ran; nil if its text isn't known.
func (s *session) takeRequest(c *call) *statement {
	if c.further {
		s.index++
		return s.script.at(s.index)
	}
	facts := &s.decoders[wire.ToServer].facts
	t := taking{c: c}
	for facts.Len() > 0 && facts.Front().end <= c.reqEnd {
		f := facts.Pop()
		s.take(&t, &f)
	}
	if c.kind == kindPrepare {
		return t.described
	}
	return t.run
}

func (s *session) take(t *taking, f *fact) {
	switch f.kind {
	case 0:
		s.begin(f.startup)
	case 'Q':
		s.dropScript()
		s.script, s.index = f.script, 0
		t.run = s.script.at(0)
	case 'P':
		t.own, t.ownName = f.script.at(0), f.name
		t.described = t.own
		if t.succeeded(&t.parsed, t.c.parsed) {
			s.prepareStatement(f.name, t.own)
		} else {
			s.kept -= textOf(t.own)
		}
	case 'B':
		if t.described = s.statements[f.name]; t.own != nil && f.name == t.ownName {
			t.described = t.own
		}
		if t.succeeded(&t.bound, t.c.bound) {
			s.bindPortal(f.text, t.described)
		}
	case 'D':
		if t.described == nil && f.what == 'S' {
			t.described = s.statements[f.name]
		}
	case 'C':
		if !t.c.skipped {
			s.close(f.what, f.name)
		}
	case 'F':
		t.run = loFunctions[f.number]
	case 'E':
		if t.run = s.portals[f.text]; t.bound > 0 {
			t.run = t.described
		}
	}
}

// succeeded counts one more Parse or Bind and reports whether it took effect.
// The server answers in order: of a call that failed, as many did as it
// confirmed. Of others all did; their answers may not be in the capture.
func (t *taking) succeeded(n *int, confirmed int) bool {
	*n++
	return !t.c.skipped && (t.c.result != 'E' || *n <= confirmed)
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
