package postgres

// Codes of the start-up phase (src/include/libpq/pqcomm.h).
const (
	codeCancel = 1234<<16 | 5678
	codeSSL    = 1234<<16 | 5679
	codeGSS    = 1234<<16 | 5680
)

// The types of messages to the server and to the client
// (src/include/libpq/protocol.h). One letter may mean two things.
const (
	toServerTypes = "BCDEFHPQSXcdfp"
	toClientTypes = "123ACDEGHIKNRSTVWZcdnstv"
)

// known says, by direction, which bytes are types.
var known = func() (t [2][256]bool) {
	for dir, types := range [2]string{toServerTypes, toClientTypes} {
		for _, c := range []byte(types) {
			t[dir][c] = true
		}
	}
	return t
}()

// asynchronous reports whether the server may send a message of this type at
// any time, asked or not (ErrorResponse apart).
func asynchronous(t byte) bool { return t == 'N' || t == 'A' || t == 'S' }
