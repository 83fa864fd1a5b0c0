package postgres

import (
	"bytes"

	"github.com/wirewait/wirewait/wire"
)

// parser makes scripts of SQL text: no tree, only first words and the plain
// forms of a few statements. Its buffers are used again.
type parser struct {
	mode    wire.TextMode
	quoting quoting
	garbles bool // the client's encoding has bytes that look like a backslash
	strings *interned

	text     []byte
	extended bool
	toks     []token // of the statement at hand, the first maxTokens
	out      []byte
	budget   int // bytes of text that may still be kept
}

// maxTokens bounds what of a statement is looked at for its form.
const maxTokens = 256

// scan is what is found out about a statement while its tokens pass by.
type scan struct {
	start, end   int
	depth        int // of parentheses
	atomic       int // of BEGIN ATOMIC ... END, CASE ... END within
	writes       bool
	params       bool
	obscure      bool
	main         int // token of WITH's main verb, SELECT's INTO
	from         int // token of the first FROM outside of parentheses
	into         bool
	concurrently bool
	function     token // the name of a function that writes a large object
	prev         token
}

// parse fills sc with the statements of text. extended: it came with Parse.
func (p *parser) parse(sc *script, text []byte, extended bool) {
	p.text, p.extended = text, extended
	sc.stmts = sc.stmts[:0]
	l := lexer{text: text, quoting: p.quoting}
	if p.quoting == quotingUnknown && p.mode == wire.TextRaw {
		l.quoting = quotingStandard // the default, and there is nothing to hide
	}
	var parent []byte
	for {
		st, found, more := p.one(&l, &parent)
		if found {
			sc.stmts = append(sc.stmts, st)
		}
		if !more {
			break
		}
	}
	if parent != nil {
		header := string(parent)
		for i := range sc.stmts {
			sc.stmts[i].parent = header
		}
	}
	if len(sc.stmts) == 1 && sc.stmts[0].text != "" && p.mode == wire.TextRaw {
		sc.stmts[0].text = string(text) // with what stands around it
	}
	p.text = nil
	if cap(p.toks) > maxTokens/2 {
		p.toks = nil
	}
	if cap(p.out) > keepBuffer {
		p.out = nil
	}
}

// one reads a statement up to its semicolon. more: there was one.
func (p *parser) one(l *lexer, parent *[]byte) (st statement, found, more bool) {
	p.toks = p.toks[:0]
	sc := scan{main: -1, from: -1}
	for {
		t := l.next()
		switch t.kind {
		case tokenEnd:
			return p.finish(&sc)
		case tokenComment:
			if v := traceparentIn(p.text[t.start:t.end]); v != nil {
				*parent = v
			}
			continue
		case tokenPunct:
			if p.text[t.start] == ';' && sc.depth <= 0 && sc.atomic == 0 {
				st, found, _ = p.finish(&sc)
				return st, found, true
			}
		}
		if len(p.toks) == 0 {
			sc.start = t.start
		}
		p.watch(&sc, t)
		sc.end, sc.prev = t.end, t
		if len(p.toks) < maxTokens {
			p.toks = append(p.toks, t)
		}
	}
}

// watch looks at a token for what may stand anywhere in a statement.
func (p *parser) watch(sc *scan, t token) {
	n := len(p.toks)
	switch t.kind {
	case tokenPunct:
		switch p.text[t.start] {
		case '(':
			sc.depth++
			if p.writesLargeObject(sc.prev) {
				sc.function = sc.prev
			}
		case ')':
			sc.depth--
		}
	case tokenParam:
		sc.params = true
	case tokenWord:
		p.watchWord(sc, t, n)
	}
}

func (p *parser) watchWord(sc *scan, t token, n int) {
	switch {
	case p.is(t, "INSERT"), p.is(t, "UPDATE"), p.is(t, "DELETE"), p.is(t, "MERGE"):
		// In a WITH, at the start of a query of it, or as its main verb.
		if sc.prev.kind == tokenPunct {
			if c := p.text[sc.prev.start]; c == '(' || c == ')' {
				sc.writes = true
				if sc.depth == 0 && sc.main < 0 && n < maxTokens {
					sc.main = n
				}
			}
		}
	case p.is(t, "SELECT"):
		if sc.depth == 0 && sc.main < 0 && n > 0 && n < maxTokens {
			sc.main = n
		}
	case p.is(t, "FROM"):
		if sc.depth == 0 && sc.from < 0 && n < maxTokens {
			sc.from = n
		}
	case p.is(t, "CONCURRENTLY"):
		sc.concurrently = true
	case p.is(t, "INTO"):
		sc.into = sc.into || sc.depth == 0
	case p.is(t, "set_config"):
		sc.obscure = true
	case p.is(t, "ATOMIC"):
		if p.is(sc.prev, "BEGIN") && sc.atomic == 0 && n > 2 && p.is(p.toks[0], "CREATE") {
			sc.atomic = 1
		}
	case sc.atomic > 0 && p.is(t, "CASE"):
		sc.atomic++
	case sc.atomic > 0 && p.is(t, "END"):
		sc.atomic--
	}
}

// finish makes a statement of the tokens at hand; found is false if there are
// none.
func (p *parser) finish(sc *scan) (st statement, found, more bool) {
	if len(p.toks) == 0 {
		return st, false, false
	}
	st = p.classify(0, sc)
	st.params = sc.params && p.extended
	if sc.obscure && bytes.Contains(p.text[sc.start:sc.end], []byte("synchronous_commit")) && st.act == actNone {
		st.act = actObscure
	}
	st.text = p.keep(p.text[sc.start:sc.end], st.params)
	return st, true, false
}

// keep is the text of a statement as far as it's wanted.
func (p *parser) keep(text []byte, params bool) string {
	if p.mode == wire.TextNone || p.budget < len(text) {
		return ""
	}
	if p.mode == wire.TextRaw || params {
		return string(text)
	}
	if p.garbles {
		return "" // no literal can be told for certain
	}
	p.out = sanitise(p.out[:0], text, p.quoting)
	return string(p.out)
}

// word reports whether token i is the word w (upper case).
func (p *parser) word(i int, w string) bool { return i < len(p.toks) && p.is(p.toks[i], w) }

func (p *parser) is(t token, w string) bool {
	if t.kind != tokenWord || t.end-t.start != len(w) {
		return false
	}
	for i := range len(w) {
		if p.text[t.start+i]&^0x20 != w[i]&^0x20 {
			return false
		}
	}
	return true
}

// skip passes over the words ws, one after the other, each if it is there.
func (p *parser) skip(i int, ws ...string) int {
	for _, w := range ws {
		if p.word(i, w) {
			i++
		}
	}
	return i
}

// upper is token i as an upper-case word, interned.
func (p *parser) upper(i int) string {
	if i >= len(p.toks) || p.toks[i].kind != tokenWord {
		return ""
	}
	t := p.toks[i]
	p.out = append(p.out[:0], p.text[t.start:t.end]...)
	for j, c := range p.out {
		if c >= 'a' && c <= 'z' {
			p.out[j] = c &^ 0x20
		}
	}
	if len(p.out) > maxKeyword {
		return ""
	}
	return p.strings.text(p.out)
}

// maxKeyword is longer than any of PostgreSQL's keywords: what is longer isn't
// one, and may be anything.
const maxKeyword = 24

// ident is the name that token i is: folded to lower case if it's not quoted.
// Empty if it's none.
func (p *parser) ident(i int) string {
	if i >= len(p.toks) {
		return ""
	}
	t := p.toks[i]
	b := p.text[t.start:t.end]
	switch t.kind {
	case tokenWord:
		return p.strings.text([]byte(foldASCII(b)))
	case tokenQuoted:
		if b[0] == '"' {
			return p.strings.text(bytes.ReplaceAll(b[1:len(b)-1], []byte(`""`), []byte(`"`)))
		}
	}
	return ""
}
