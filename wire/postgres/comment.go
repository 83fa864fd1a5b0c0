package postgres

import "bytes"

const traceparentLen = 55 // 00-<32 hex>-<16 hex>-<2 hex>

// traceparentIn finds traceparent='...' in a comment, as sqlcommenter writes it
// (https://google.github.io/sqlcommenter/spec/): the value is URL-encoded. Nil
// if there is none or it isn't a W3C header.
func traceparentIn(comment []byte) []byte {
	const key = "traceparent="
	i := bytes.Index(comment, []byte(key))
	if i < 0 || i > 0 && isWord(comment[i-1]) {
		return nil
	}
	v := comment[i+len(key):]
	if len(v) > 0 && (v[0] == '\'' || v[0] == '"') {
		v = v[1:]
	}
	var out [traceparentLen]byte
	n := 0
	for ; n < traceparentLen && len(v) > 0; n++ {
		c := v[0]
		v = v[1:]
		if c == '%' && len(v) >= 2 && isHex(v[0]) && isHex(v[1]) {
			c = unhex(v[0])<<4 | unhex(v[1])
			v = v[2:]
		}
		out[n] = c
	}
	if len(v) > 0 && isHex(v[0]) || !validTraceparent(out[:n]) {
		return nil
	}
	return bytes.Clone(out[:])
}

// validTraceparent checks the form of https://www.w3.org/TR/trace-context/.
func validTraceparent(b []byte) bool {
	if len(b) != traceparentLen || b[2] != '-' || b[35] != '-' || b[52] != '-' {
		return false
	}
	for i, c := range b {
		if i != 2 && i != 35 && i != 52 && !(isDigit(c) || c >= 'a' && c <= 'f') {
			return false
		}
	}
	zero := func(part []byte) bool { return len(bytes.Trim(part, "0")) == 0 }
	return string(b[:2]) != "ff" && !zero(b[3:35]) && !zero(b[36:52])
}

func isHex(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

func unhex(c byte) byte {
	if isDigit(c) {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}
