package postgres

import (
	"strings"

	"github.com/wirewait/wirewait/wire"
)

// How a request is refused:
//
//	FATAL                     the error, and the end of the connection
//	Query, nothing under way  the error and ReadyForQuery, without the server
//	Query, else               Query of a statement that raises the error
//	Execute                   Close, Parse, Bind, Execute of such a statement; what
//	                          answers the first three is taken out again
//
// An error that the server never heard of would leave its transaction healthy: a
// later COMMIT would commit what the client believes to have failed.

// raiser is the name of the statement and of the portal that raise an error. The
// statement stays prepared until the next of its kind, which closes it.
const raiser = "wirewait_refusal"

// CanRefuse implements wire.Inspector.
func (s *session) CanRefuse(f *wire.Failure) wire.Reason {
	c := s.askedCall()
	switch {
	case c == nil:
		return wire.Unread
	case !sqlState(f.Code):
		return wire.NoSuchReply
	case f.Fatal:
		return wire.Applies
	case s.inCopy:
		return wire.InCopy
	case s.askedFor == 'F', s.peer != nil && s.peer.Replication != "":
		return wire.NoSuchReply
	}
	return wire.Applies
}

// sqlState reports whether a code is the SQLSTATE of an error: classes 00, 01 and
// 02 are none (https://www.postgresql.org/docs/current/errcodes-appendix.html).
func sqlState(code string) bool {
	if len(code) != 5 || code[:2] == "00" || code[:2] == "01" || code[:2] == "02" {
		return false
	}
	return !strings.ContainsFunc(code, func(r rune) bool { return (r < '0' || r > '9') && (r < 'A' || r > 'Z') })
}

// Refuse implements wire.Inspector.
func (s *session) Refuse(f *wire.Failure) wire.Refusal {
	c := s.askedCall()
	switch {
	case f.Fatal:
		r := wire.Refusal{Answer: EncodeError("FATAL", f.Code, messageOf(f)), Cut: true}
		if s.requests.Len() > 1 || s.askedFor == 'E' {
			// Without the Sync that was to follow, the server would keep the
			// answers to what came before.
			r.Forward = encodeFlush()
		}
		return r
	case s.askedFor == 'E':
		c.refused = true
		s.refusing++
		return wire.Refusal{Forward: encodeExtended(raiser, raising(f))}
	case s.atRest():
		return wire.Refusal{Answer: append(EncodeError("ERROR", f.Code, messageOf(f)), encodeReady('I')...)}
	}
	return wire.Refusal{Forward: encodeQuery(raising(f))}
}

// atRest reports whether the server has nothing to do but the request at hand,
// and no transaction is open.
func (s *session) atRest() bool {
	return s.requests.Len() == 1 && s.building == nil && s.ready.Len() == 0 && s.status == 'I' && !s.inBlock
}

func messageOf(f *wire.Failure) string {
	if f.Message != "" {
		return f.Message
	}
	return "injected by wirewait rule " + f.Rule
}

// raising is a statement that raises an error. Its text is quoted so that neither
// its own quotes nor backslashes (standard_conforming_strings) end anything.
func raising(f *wire.Failure) string {
	quote := strings.NewReplacer(`'`, `''`, `\`, `/`, "\x00", "", "$", "")
	return "DO $wirewait$ BEGIN RAISE EXCEPTION USING ERRCODE = '" + f.Code + "', MESSAGE = '" + quote.Replace(messageOf(f)) + "'; END $wirewait$"
}

// removes reports whether a message of type t answers what Refuse put in: the
// client's own Parse, Bind, Describe and Close are answered before it.
func (s *session) removes(dir wire.Direction, t byte) bool {
	if s.refusing == 0 || dir == wire.ToServer || t != '1' && t != '2' && t != '3' {
		return false
	}
	r := s.head()
	return r != nil && r.c != nil && r.c.refused && r.c.expected == 0
}

// CanFail implements wire.Inspector.
func (s *session) CanFail(x *wire.Exchange, f *wire.Failure) wire.Reason {
	if f.ConcernError || !sqlState(f.Code) {
		return wire.NoSuchReply
	}
	for i := range s.acks {
		if s.acks[i].Exchange == x && s.failable[i] {
			return wire.Applies
		}
	}
	return wire.NoSuchReply
}

// Fail implements wire.Inspector: an error in place of CommandComplete, or before
// ReadyForQuery, as of a commit that failed.
func (s *session) Fail(_ *wire.Exchange, f *wire.Failure, b, out []byte) []byte {
	out = append(out, EncodeError("ERROR", f.Code, messageOf(f))...)
	if len(b) > 0 && b[0] == 'Z' {
		out = append(out, b...)
	}
	return out
}
