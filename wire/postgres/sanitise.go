package postgres

// placeholder stands for a literal in sanitised text. It's not the usual ?,
// which is an operator of PostgreSQL (jsonb), nor $1, which is a parameter;
// outside of quotes $? is no SQL at all, so that it can't be mistaken.
const placeholder = "$?"

// sanitise appends text to dst with its literals replaced, without comments and
// with runs of white space as one space. Strings, dollar-quoted bodies, numbers
// and whatever has no end are literals; parameters and identifiers stay.
func sanitise(dst, text []byte, q quoting) []byte {
	l := lexer{text: text, quoting: q}
	end, word := 0, false
	for {
		t := l.next()
		if t.kind == tokenEnd {
			return dst
		}
		literal := t.kind == tokenString || t.kind == tokenNumber
		if t.kind == tokenComment {
			continue
		}
		if len(dst) > 0 && (t.start > end || word && literal) {
			dst = append(dst, ' ')
		}
		if literal {
			dst = append(dst, placeholder...)
		} else {
			dst = append(dst, text[t.start:t.end]...)
		}
		end, word = t.end, t.kind != tokenPunct || text[t.start] == '$'
	}
}
