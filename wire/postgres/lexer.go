package postgres

import "bytes"

// tokenKind is what a stretch of SQL is.
type tokenKind uint8

const (
	tokenEnd     tokenKind = iota
	tokenWord              // a keyword or an identifier
	tokenQuoted            // "an identifier", U&"..."
	tokenString            // '..', E'..', B'..', X'..', N'..', U&'..', $tag$..$tag$
	tokenNumber            // 1, 1.5e3, 0xff
	tokenParam             // $1
	tokenPunct             // one other byte
	tokenComment           // -- to the end of the line, /* nested */
)

// token is a stretch of the text, from start up to end.
type token struct {
	kind       tokenKind
	start, end int
}

// quoting says what a backslash in '..' is: PostgreSQL's setting
// standard_conforming_strings, which it reports.
type quoting uint8

const (
	quotingUnknown   quoting = iota // not reported: take no chances
	quotingStandard                 // an ordinary character
	quotingBackslash                // an escape
)

// lexer cuts SQL into tokens by the lexical rules of PostgreSQL
// (src/backend/parser/scan.l). It accepts any bytes: what is not terminated
// reaches to the end.
type lexer struct {
	text    []byte
	pos     int
	quoting quoting
}

// next returns the token that comes next; tokenEnd at the end, for ever.
func (l *lexer) next() token {
	for l.pos < len(l.text) && isSpace(l.text[l.pos]) {
		l.pos++
	}
	start := l.pos
	if start == len(l.text) {
		return token{tokenEnd, start, start}
	}
	kind := l.scan(l.text[start])
	return token{kind, start, l.pos}
}

// at is the byte that is n after the present one; 0 past the end.
func (l *lexer) at(n int) byte {
	if l.pos+n < len(l.text) {
		return l.text[l.pos+n]
	}
	return 0
}

func (l *lexer) scan(c byte) tokenKind {
	switch {
	case c == '-' && l.at(1) == '-':
		l.line()
		return tokenComment
	case c == '/' && l.at(1) == '*':
		l.block()
		return tokenComment
	case c == '\'':
		return l.plain(0)
	case c == '"':
		return l.identifier(0)
	case c == '$':
		return l.dollar()
	case isDigit(c) || c == '.' && isDigit(l.at(1)):
		l.number()
		return tokenNumber
	case isWordStart(c):
		return l.word(c)
	}
	l.pos++
	return tokenPunct
}

func (l *lexer) word(c byte) tokenKind {
	switch q := l.at(1); {
	case q == '\'':
		switch c | 0x20 {
		case 'e':
			return l.escaped(1)
		case 'b', 'x', 'n':
			return l.plain(1)
		}
	case q == '&' && c|0x20 == 'u':
		switch l.at(2) {
		case '\'':
			return l.plain(2)
		case '"':
			return l.identifier(2)
		}
	}
	for l.pos < len(l.text) && isWord(l.text[l.pos]) {
		l.pos++
	}
	return tokenWord
}

func (l *lexer) line() {
	n := bytes.IndexAny(l.text[l.pos:], "\n\r")
	if n < 0 {
		l.pos = len(l.text)
		return
	}
	l.pos += n
}

func (l *lexer) block() {
	depth := 0
	for l.pos < len(l.text) {
		switch {
		case l.text[l.pos] == '/' && l.at(1) == '*':
			depth++
			l.pos += 2
		case l.text[l.pos] == '*' && l.at(1) == '/':
			depth--
			l.pos += 2
			if depth == 0 {
				return
			}
		default:
			l.pos++
		}
	}
}

// plain reads a string whose quote is skip bytes on. Two quotes are one.
func (l *lexer) plain(skip int) tokenKind {
	l.pos += skip
	if l.quoting == quotingBackslash {
		return l.escaped(0)
	}
	from := l.pos
	for l.pos++; ; l.pos += 2 {
		n := bytes.IndexByte(l.text[l.pos:], '\'')
		if n < 0 {
			l.pos = len(l.text)
			break
		}
		l.pos += n
		if l.at(1) != '\'' {
			l.pos++
			break
		}
	}
	if l.quoting == quotingUnknown && bytes.IndexByte(l.text[from:l.pos], '\\') >= 0 {
		l.pos = len(l.text) // where it ends isn't known
	}
	return tokenString
}

// escaped reads a string with backslashes whose quote is skip bytes on.
func (l *lexer) escaped(skip int) tokenKind {
	l.pos += skip + 1
	for l.pos < len(l.text) {
		switch l.text[l.pos] {
		case '\\':
			l.pos++
		case '\'':
			if l.at(1) != '\'' {
				l.pos++
				return tokenString
			}
			l.pos++
		}
		l.pos++
	}
	l.pos = len(l.text)
	return tokenString
}

// identifier reads a quoted identifier. One without an end isn't known to be
// one: it counts as a string.
func (l *lexer) identifier(skip int) tokenKind {
	for l.pos += skip + 1; ; l.pos += 2 {
		n := -1
		if l.pos <= len(l.text) {
			n = bytes.IndexByte(l.text[l.pos:], '"')
		}
		if n < 0 {
			l.pos = len(l.text)
			return tokenString
		}
		l.pos += n
		if l.at(1) != '"' {
			l.pos++
			return tokenQuoted
		}
	}
}

// dollar reads $1, $tag$..$tag$, or a dollar that is neither.
func (l *lexer) dollar() tokenKind {
	if isDigit(l.at(1)) {
		for l.pos++; l.pos < len(l.text) && isDigit(l.text[l.pos]); l.pos++ {
		}
		return tokenParam
	}
	n := 1
	for c := l.at(n); c != '$' && isWord(c) && (n > 1 || !isDigit(c)); c = l.at(n) {
		n++
	}
	if l.at(n) != '$' {
		l.pos++
		return tokenPunct
	}
	tag := l.text[l.pos : l.pos+n+1]
	l.pos += len(tag)
	if end := bytes.Index(l.text[l.pos:], tag); end >= 0 {
		l.pos += end + len(tag)
	} else {
		l.pos = len(l.text)
	}
	return tokenString
}

// number takes more than PostgreSQL does ("12ab" whole), so that nothing of it
// can pass for a word.
func (l *lexer) number() {
	for l.pos < len(l.text) {
		c := l.text[l.pos]
		exponent := (c == '+' || c == '-') && l.text[l.pos-1]|0x20 == 'e' && isDigit(l.at(1))
		if !isWord(c) && c != '.' && !exponent || c == '$' {
			return
		}
		l.pos++
	}
}

func isSpace(c byte) bool {
	return c == ' ' || c >= '\t' && c <= '\r'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWordStart(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= 0x80
}

func isWord(c byte) bool { return isWordStart(c) || isDigit(c) || c == '$' }
