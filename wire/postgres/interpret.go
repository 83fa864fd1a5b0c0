package postgres

// begin starts what is believed of a connection, from its StartupMessage.
func (s *session) begin(st *startup) {
	if st == nil {
		return
	}
	p := st.peer
	s.peer = &p
	s.application(p.Application)
	b := belief{source: "default"}
	if st.set {
		b = belief{st.level, "startup"}
		if st.level == "" {
			b.source = "unknown"
		}
	}
	s.levels.begin(b)
}

// describe fills in what a call was and how it ended.
func (s *session) describe(c *call, st *statement, r said) {
	x := c.x
	x.Peer = s.peer
	if s.peer != nil {
		x.Database = s.peer.Database
	}
	x.Answered = c.result != 0
	x.OK = x.Answered && c.result != 'E'
	x.ErrorCode = r.code
	p := &x.Postgres
	if st != nil {
		p.Keyword, p.Summary, p.Parameterised = st.keyword, st.summary, st.params
		x.Statement = st.text
		s.parentOf(c, st)
	}
	switch c.kind {
	case kindStartup:
		x.Operation = "startup"
	case kindCancel:
		x.Operation = "cancel"
	case kindFunction:
		x.Operation = "function_call"
	default:
		p.Tag = r.tag
		if x.Operation = operation(r.tag); x.Operation == "" {
			x.Operation = p.Keyword
		}
	}
}

// parentOf gives an exchange its trace: of its statement's comment, else of the
// application's name. Given once, it's only linked to afterwards.
func (s *session) parentOf(c *call, st *statement) {
	switch {
	case c.skipped || c.kind == kindPrepare:
	case st.parent != "":
		c.x.Traceparent, c.x.TraceparentReused = st.parent, st.used
		st.used = true
	case s.parent != "":
		c.x.Traceparent, c.x.TraceparentReused = s.parent, s.given
		s.given = true
	}
}

// operation is a command tag without its numbers.
func operation(tag string) string {
	for i := 1; i < len(tag); i++ {
		if tag[i-1] == ' ' && isDigit(tag[i]) {
			return tag[:i-1]
		}
	}
	return tag
}

// interpret decides what a result means for what follows, and whether it's a
// write.
func (s *session) interpret(c *call, st *statement) {
	switch c.kind {
	case kindExecute, kindQuery, kindFunction, kindLone:
	case kindPrepare: // it may fail, and does nothing else
		if c.result == 'E' && !s.inBlock {
			s.rollBack(false)
		}
		return
	default:
		return
	}
	if c.skipped {
		return
	}
	if !c.x.OK {
		s.interpretFailure(c, st)
		return
	}
	act := actionOf(c.x.Operation, st)
	c.x.Postgres.InBlock = s.inBlock && act != actCommit && act != actRollback && act != actBegin
	s.findWrite(c, st, act)
	s.apply(act, st)
}

// actionOf is what a statement did, going by its tag where its text and its tag
// differ or the text isn't known.
func actionOf(tag string, st *statement) action {
	switch tag {
	case "ROLLBACK":
		if st != nil && st.act == actRollbackTo {
			return actRollbackTo
		}
		return actRollback
	case "COMMIT", "PREPARE TRANSACTION":
		return actCommit
	case "BEGIN", "START TRANSACTION":
		return actBegin
	}
	switch {
	case st != nil:
		return st.act
	case tag == "SET", tag == "RESET":
		return actObscure
	case tag == "DISCARD ALL":
		return actDiscardAll
	case tag == "DEALLOCATE ALL":
		return actDeallocateAll
	}
	return actNone
}

// findWrite decides whether a statement that succeeded may have changed data,
// and what commits it.
func (s *session) findWrite(c *call, st *statement, act action) {
	tag := c.x.Operation
	if c.result != 'C' {
		tag = ""
	}
	target := s.executed(st)
	switch {
	case writeTag(tag, c.copyIn):
		s.isWrite(c, true, "tag")
	case tag == "COMMIT":
		s.isWrite(c, s.wrote || len(s.group) > 0, "block")
	case target != nil && (target.hides || c.result == 's'):
		s.isWrite(c, target.writes, target.basis())
	}
	switch {
	case !c.x.Write:
	case act == actCommit:
		s.ungroup(true)
	case c.x.Postgres.InBlock:
		s.wrote = true
	case commitsAlone(tag, target):
	default:
		c.grouped = true
		s.group = append(s.group, c)
	}
}

// ungroup takes the writes back that the end of the round was to commit.
// inBlock: they are part of an explicit block now. Else they are rolled back,
// and end with their own results.
func (s *session) ungroup(inBlock bool) {
	for _, c := range s.group {
		c.grouped = false
		if inBlock {
			c.x.Postgres.InBlock, s.wrote = true, true
		} else {
			c.x.Postgres.RolledBack = true
		}
	}
	clear(s.group)
	s.group = s.group[:0]
}

// rollBack undoes a transaction, explicit or not. chain: another begins.
func (s *session) rollBack(chain bool) {
	s.ungroup(false)
	s.inBlock, s.wrote = chain, false
	s.levels.rolledBack()
}

// interpretFailure is for a statement that failed, or whose answer never came:
// a write as far as its words tell.
func (s *session) interpretFailure(c *call, st *statement) {
	p := &c.x.Postgres
	p.InBlock = s.inBlock
	commits := st != nil && st.act == actCommit
	switch target := s.executed(st); {
	case commits && !st.writes:
		p.InBlock = false
		s.isWrite(c, s.wrote, "block")
	case target != nil:
		s.isWrite(c, target.writes, target.basis())
	}
	if c.result == 'E' && (!s.inBlock || commits) {
		s.rollBack(false)
	}
}

// isWrite notes that a call is a write, if it is, and the level of the moment.
func (s *session) isWrite(c *call, yes bool, basis string) {
	if !yes {
		return
	}
	b := s.levels.now()
	c.x.Write, c.x.WriteBasis = true, basis
	c.x.Postgres.SynchronousCommit, c.x.Postgres.SyncSource = b.value, b.source
}

// executed is the statement that st runs: itself, but for an SQL EXECUTE.
func (s *session) executed(st *statement) *statement {
	if st != nil && st.act == actExecute {
		if inner := s.statements[st.name]; inner != nil {
			return inner
		}
	}
	return st
}

// apply does what a statement that succeeded does to what is followed.
func (s *session) apply(act action, st *statement) {
	switch act {
	case actBegin:
		if !s.inBlock {
			s.wrote = false
			s.ungroup(true) // it takes in what came before it
			s.inBlock = true
		}
	case actCommit:
		s.inBlock, s.wrote = st != nil && st.chain, false
		s.levels.committed()
	case actRollback:
		s.rollBack(st != nil && st.chain)
	case actDiscardAll:
		s.levels.set(s.levels.start)
		s.closeAll()
	case actDeallocateAll:
		s.closeAll()
	case actReset:
		s.levels.set(s.levels.start)
	case actObscure:
		s.levels.set(belief{source: "unknown"})
	default:
		if st != nil {
			s.applyNamed(act, st)
		}
	}
}

func (s *session) applyNamed(act action, st *statement) {
	switch act {
	case actSet:
		s.levels.set(belief{st.level, "set"})
	case actSetLocal:
		s.levels.setLocal(belief{st.level, "set_local"})
	case actSavepoint:
		s.levels.savepoint(st.name)
	case actRollbackTo:
		s.levels.rollbackTo(st.name)
	case actRelease:
		s.levels.release(st.name)
	case actPrepare:
		if st.inner != nil {
			inner := *st.inner
			s.prepareStatement(st.name, &inner)
		}
	case actDeallocate:
		s.close('S', st.name)
	case actDeclare:
		cursor := *st
		s.bindPortal(st.name, &cursor)
	}
}

// endTransaction takes in what ReadyForQuery said: whether a transaction goes
// on. It overrules what was made of the statements.
func (s *session) endTransaction(status byte) {
	s.status = status
	switch status {
	case 'I':
		if s.inBlock {
			s.inBlock, s.wrote = false, false
		}
		s.levels.committed()
		s.endPortals()
	case 'T', 'E':
		s.inBlock = true
	}
}
