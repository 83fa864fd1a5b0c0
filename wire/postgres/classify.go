package postgres

import "bytes"

// classify reads the form of the statement whose tokens begin at i.
func (p *parser) classify(i int, sc *scan) statement {
	for i < len(p.toks) && p.text[p.toks[i].start] == '(' {
		i++
	}
	st := statement{keyword: p.upper(i)}
	st.writes = writers[st.keyword]
	st.concurrently = sc.concurrently && st.keyword != "REFRESH" // which is like any other
	switch st.keyword {
	case "WITH", "EXPLAIN", "SELECT", "TABLE", "VALUES":
		p.query(i, &st, sc)
	case "INSERT", "MERGE":
		st.summary = p.summary(st.keyword, p.skip(i+1, "INTO"))
	case "UPDATE":
		st.summary = p.summary(st.keyword, p.skip(i+1, "ONLY"))
		if n := len(st.summary); n >= 11 && st.summary[n-11:] == "pg_settings" {
			st.act = actObscure
		}
	case "DELETE":
		st.summary = p.summary(st.keyword, p.skip(i+1, "FROM", "ONLY"))
	case "TRUNCATE":
		st.summary = p.summary(st.keyword, p.skip(i+1, "TABLE", "ONLY"))
	case "CALL":
		st.summary = p.summary(st.keyword, i+1)
	case "COPY":
		st.writes = sc.from >= 0
		st.summary = p.summary(st.keyword, i+1)
	case "CREATE", "ALTER", "DROP":
		p.define(i, &st)
	case "REFRESH":
		st.summary = p.summary("REFRESH MATERIALIZED VIEW", p.skip(i+1, "MATERIALIZED", "VIEW", "CONCURRENTLY"))
	case "SET", "RESET", "DISCARD":
		p.setting(i, &st)
	default:
		p.control(i, &st, sc)
	}
	return st
}

// query reads a statement whose tag may hide a write.
func (p *parser) query(i int, st *statement, sc *scan) {
	switch st.keyword {
	case "EXPLAIN", "TABLE":
		return
	case "SELECT":
		// SELECT ... INTO makes a table, and so does CREATE TABLE AS; both
		// answer with the tag of a SELECT.
		st.writes = sc.into
		if sc.from >= 0 {
			st.summary = p.summary(st.keyword, p.skip(sc.from+1, "ONLY"))
		}
	case "WITH":
		st.writes = sc.writes || sc.into
		if m := sc.main; m >= 0 {
			st.summary = p.mainSummary(m, sc)
		}
	}
	if f := sc.function; f.end > 0 && !st.writes {
		st.writes, st.function = true, true
		if st.summary == "" {
			st.summary = p.strings.text(append(append(p.out[:0], "SELECT "...), foldASCII(p.text[f.start:f.end])...))
		}
	}
	st.hides = st.writes
}

// mainSummary is the summary of a WITH by its main verb, token m.
func (p *parser) mainSummary(m int, sc *scan) string {
	switch verb := p.upper(m); verb {
	case "SELECT":
		if sc.from > m {
			return p.summary(verb, p.skip(sc.from+1, "ONLY"))
		}
		return ""
	default:
		return p.summary(verb, p.skip(m+1, "INTO", "FROM", "ONLY"))
	}
}

// define reads CREATE, ALTER and DROP of the things that have one name.
func (p *parser) define(i int, st *statement) {
	st.hides = st.keyword == "CREATE" // TABLE ... AS
	j := p.skip(i+1, "OR", "REPLACE", "GLOBAL", "LOCAL", "TEMP", "TEMPORARY", "UNLOGGED", "UNIQUE", "RECURSIVE")
	what := p.upper(j)
	switch what {
	case "MATERIALIZED", "FOREIGN":
		j++
		what += " " + p.upper(j)
	case "SYSTEM":
		st.writes = st.keyword != "ALTER"
		return
	case "TABLE", "INDEX", "VIEW", "SEQUENCE", "SCHEMA", "TYPE", "DOMAIN", "FUNCTION", "PROCEDURE",
		"DATABASE", "TABLESPACE", "EXTENSION", "PUBLICATION", "SUBSCRIPTION", "AGGREGATE", "TRIGGER":
	default:
		return // ROLE and USER too: they are people
	}
	j = p.skip(j+1, "CONCURRENTLY", "IF", "NOT", "EXISTS", "ONLY")
	st.summary = p.summary(st.keyword+" "+what, j)
}

// maxSummary is what OpenTelemetry allows for db.query.summary.
const maxSummary = 255

// summary is the operation and the name at token i, which may be qualified.
func (p *parser) summary(op string, i int) string {
	p.out = append(append(p.out[:0], op...), ' ')
	bare := len(p.out)
	for i < len(p.toks) {
		t := p.toks[i]
		if t.kind != tokenWord && t.kind != tokenQuoted {
			break
		}
		p.out = append(p.out, p.text[t.start:t.end]...)
		i++
		if i >= len(p.toks) || p.text[p.toks[i].start] != '.' || p.toks[i].kind != tokenPunct {
			break
		}
		p.out = append(p.out, '.')
		i++
	}
	if len(p.out) == bare || len(p.out) > maxSummary {
		return ""
	}
	return p.strings.text(p.out)
}

// setting reads SET, RESET and DISCARD as far as they touch synchronous_commit.
func (p *parser) setting(i int, st *statement) {
	local := p.word(i+1, "LOCAL")
	j := i + 1
	if st.keyword == "SET" {
		j = p.skip(j, "SESSION", "LOCAL")
	}
	switch {
	case p.word(j, "ALL") && st.keyword == "DISCARD":
		st.act = actDiscardAll
	case p.word(j, "ALL") && st.keyword == "RESET":
		st.act = actReset
	case st.keyword == "DISCARD" || p.ident(j) != "synchronous_commit":
	case st.keyword == "RESET":
		st.act = actReset
	default:
		p.set(j+1, st, local)
	}
}

// set reads the value at token i: after TO or =.
func (p *parser) set(i int, st *statement, local bool) {
	st.act = actSet
	if local {
		st.act = actSetLocal
	}
	if i+1 >= len(p.toks) || !p.word(i, "TO") && p.text[p.toks[i].start] != '=' {
		st.act = actObscure // FROM CURRENT, or no SQL
		return
	}
	if p.word(i+1, "DEFAULT") && !local {
		st.act = actReset
		return
	}
	t := p.toks[i+1]
	v, ok := levelOf(bytes.Trim(p.text[t.start:t.end], `'"`))
	if !ok {
		st.act = actObscure
	}
	st.level = v
}

// control reads what rules transactions, prepared statements and cursors.
func (p *parser) control(i int, st *statement, sc *scan) {
	switch st.keyword {
	case "BEGIN":
		st.act = actBegin
	case "START":
		if p.word(i+1, "TRANSACTION") {
			st.act = actBegin
		}
	case "COMMIT", "END":
		p.ending(i, st, actCommit)
	case "ROLLBACK", "ABORT":
		p.ending(i, st, actRollback)
	case "SAVEPOINT":
		st.act, st.name = actSavepoint, p.ident(i+1)
	case "RELEASE":
		st.act, st.name = actRelease, p.ident(p.skip(i+1, "SAVEPOINT"))
	case "PREPARE":
		p.prepare(i, st, sc)
	case "EXECUTE":
		st.act, st.name = actExecute, p.ident(i+1)
	case "DEALLOCATE":
		j := p.skip(i+1, "PREPARE")
		st.act, st.name = actDeallocate, p.ident(j)
		if p.word(j, "ALL") {
			st.act = actDeallocateAll
		}
	case "DECLARE":
		st.act, st.name = actDeclare, p.ident(i+1)
		for j := i + 2; j+1 < len(p.toks) && j < i+12; j++ {
			st.hold = st.hold || p.word(j, "WITH") && p.word(j+1, "HOLD")
		}
	}
}

func (p *parser) ending(i int, st *statement, act action) {
	if p.word(i+1, "PREPARED") {
		st.writes = true
		return
	}
	j := p.skip(i+1, "WORK", "TRANSACTION")
	st.act = act
	switch {
	case act == actRollback && p.word(j, "TO"):
		st.act, st.name = actRollbackTo, p.ident(p.skip(j+1, "SAVEPOINT"))
	case p.word(j, "AND") && p.word(j+1, "CHAIN"):
		st.chain = true
	}
}

// prepare reads PREPARE name [(types)] AS statement, and PREPARE TRANSACTION,
// which ends the block.
func (p *parser) prepare(i int, st *statement, sc *scan) {
	if p.word(i+1, "TRANSACTION") && i+2 < len(p.toks) && p.toks[i+2].kind == tokenString {
		st.act, st.writes = actCommit, true
		return
	}
	st.act, st.name = actPrepare, p.ident(i+1)
	for j := i + 2; j < len(p.toks); j++ {
		if p.word(j, "AS") {
			inner := p.classify(j+1, sc)
			st.inner = &inner
			return
		}
	}
}
