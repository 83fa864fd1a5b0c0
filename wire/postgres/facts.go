package postgres

import (
	"bytes"
	"encoding/binary"

	"github.com/wirewait/wirewait/wire"
)

// fact is what one message said, to be used when its turn comes.
type fact struct {
	end  int64 // offset in the stream, one past the message
	kind byte  // its type; 0 is a StartupMessage
	what byte  // S or P of Close and Describe; the status of ReadyForQuery
	// text and name: the portal and the statement of Bind; the portal of
	// Execute (text); the name of Parse, Close and Describe (name); a tag, a
	// SQLSTATE, an application's name (text).
	text, name string
	number     int32 // a backend's process id, a function's OID
	script     *script
	startup    *startup
}

// learn keeps a fact. What a peer makes us keep is bounded: a session that has
// lost one can't tell what later ones belong to, and is opaque.
func (s *session) learn(dir wire.Direction, f fact) {
	d := &s.decoders[dir]
	if s.memory.full || s.flooded() {
		s.overflow(dir)
		if f.script != nil {
			s.kept -= textOf(f.script.at(0))
		}
		return
	}
	f.end = d.off
	d.facts.Push(f)
}

func (s *session) trouble(reason string) {
	if s.options.Trouble != nil {
		s.options.Trouble(reason)
	}
}

// readRequest reads a message to the server. cut: body isn't all of it.
func (s *session) readRequest(kind int32, body []byte, cut bool) {
	var f fact
	var err error
	switch kind {
	case 'Q':
		f.script = s.newScript()
		text, _, ok := bytes.Cut(body, []byte{0})
		if !ok && !cut {
			err = errBody
		}
		s.readScript(f.script, text, false)
		if s.open.WantsReports() || s.peer != nil && s.peer.Replication != "" {
			s.noteReplication(text)
		}
	case 'P':
		f.script = new(script)
		f.name, err = s.readParse(f.script, body, cut)
	case 'B':
		portal, rest, ok := bytes.Cut(body, []byte{0})
		name, _, named := bytes.Cut(rest, []byte{0})
		if !ok || !named {
			err = errBody
		}
		f.text, f.name = s.strings.text(portal), s.strings.text(name)
	case 'E':
		f.text, err = s.codec.executed(body)
	case 'C':
		f.what, f.name, err = s.codec.closedName(body)
	case 'D':
		f.what, f.name, err = s.codec.described(body)
	case 'F':
		if len(body) < 4 {
			err = errBody
			break
		}
		f.number = int32(binary.BigEndian.Uint32(body))
	default:
		kind = 0
		f.startup, err = readParameters(body)
	}
	if err != nil {
		s.trouble("body")
	}
	f.kind = byte(kind)
	s.learn(wire.ToServer, f)
}

// readParse reads a Parse: by the codec if all of it is there.
func (s *session) readParse(sc *script, body []byte, cut bool) (name string, err error) {
	n, text, ok := bytes.Cut(body, []byte{0})
	if !cut {
		if name, _, err = s.codec.parsed(body); err == nil {
			text, _, _ = bytes.Cut(text, []byte{0})
			s.readScript(sc, text[:min(len(text), maxText)], true)
			return name, nil
		}
	}
	if !ok {
		return "", errBody
	}
	text, _, _ = bytes.Cut(text, []byte{0})
	s.readScript(sc, text[:min(len(text), maxText)], true)
	return string(n), err
}

func (s *session) readScript(sc *script, text []byte, extended bool) {
	s.parser.mode, s.parser.strings = s.options.Text, &s.strings
	s.parser.budget = maxKept - s.kept
	s.parser.parse(sc, text, extended)
	if extended && len(sc.stmts) > 1 { // which the server refuses
		sc.stmts = sc.stmts[:1]
	}
	for i := range sc.stmts {
		s.kept += len(sc.stmts[i].text)
	}
}

// maxKept bounds the statement texts that a session holds.
const maxKept = 4 << 20

// readReply reads a message to the client.
func (s *session) readReply(t byte, body []byte, cut bool) {
	f := fact{kind: t}
	var err error
	switch t {
	case 'C':
		tag, _, ok := bytes.Cut(body, []byte{0})
		if !ok {
			err = errBody
		}
		f.text = s.strings.text(tag)
	case 'Z':
		f.what, err = s.codec.readyStatus(body)
	case 'E':
		var code string
		if code, err = s.codec.errorCode(body); cut {
			code, err = string(field(body, 'C')), nil
		}
		f.text = s.strings.text([]byte(code))
	case 'N':
		if !s.notReplicated(body, cut) {
			return
		}
	case 'S':
		if !s.parameter(&f, body) {
			return
		}
	case 'R':
		s.offered(body)
		return
	case 'K':
		if len(body) < 4 {
			err = errBody
			break
		}
		f.number = int32(binary.BigEndian.Uint32(body))
	}
	if err != nil {
		s.trouble("body")
	}
	s.learn(wire.ToClient, f)
}

// authenticationSASL is the code of the authentication request that lists
// mechanisms, each ended by a NUL (src/include/libpq/protocol.h, AUTH_REQ_SASL).
const authenticationSASL = 10

// offered says so if the server offers SCRAM that is bound to the TLS channel.
func (s *session) offered(body []byte) {
	if s.options.ChannelBinding == nil || len(body) < 4 || binary.BigEndian.Uint32(body) != authenticationSASL {
		return
	}
	for mechanism := range bytes.SplitSeq(body[4:], []byte{0}) {
		if string(mechanism) == "SCRAM-SHA-256-PLUS" {
			s.options.ChannelBinding()
			return
		}
	}
}

// notReplicated reports whether a notice says that a commit no longer waits for
// its standbys: the wait was cancelled (01000), or the backend is terminated
// (57P01). 01000 has other uses and texts are translated, so that the server's
// function tells (src/backend/replication/syncrep.c).
func (s *session) notReplicated(body []byte, cut bool) bool {
	c := field(body, 'C')
	if cut || string(c) != "01000" && string(c) != "57P01" {
		return false
	}
	severity, code, routine, message, err := s.codec.noticed(body)
	switch {
	case err != nil:
		s.trouble("body")
		return false
	case severity != "" && severity != "WARNING":
		return false
	case routine != "":
		return routine == "SyncRepWaitForLSN"
	}
	return code == "57P01" || message == "canceling wait for synchronous replication due to user request"
}

// field is the first field of a type in an ErrorResponse or a NoticeResponse.
func field(body []byte, t byte) []byte {
	for len(body) > 1 && body[0] != 0 {
		v, rest, _ := bytes.Cut(body[1:], []byte{0})
		if body[0] == t {
			return v
		}
		body = rest
	}
	return nil
}

// parameter reads a ParameterStatus; false if nothing is to be remembered for
// its turn. What tells how text is to be read is used at once: it isn't known
// which statements were sent before it.
func (s *session) parameter(f *fact, body []byte) bool {
	name, value, err := s.codec.parameterStatus(body)
	if err != nil {
		s.trouble("body")
		return false
	}
	switch name {
	case "standard_conforming_strings":
		s.parser.quoting = quotingStandard
		if value == "off" {
			s.parser.quoting = quotingBackslash
		}
	case "client_encoding":
		s.parser.garbles = garbles[value]
	case "application_name":
		f.text = value
		q := &s.decoders[wire.ToClient].facts
		if n := q.Len(); n > 0 && q.At(n-1).kind == 'S' {
			q.At(n-1).text, q.At(n-1).end = value, s.decoders[wire.ToClient].off
			return false
		}
		return true
	}
	return false
}

// garbles are the client encodings in which a backslash may be the second byte
// of a character (src/include/mb/pg_wchar.h, those that are client-only).
var garbles = map[string]bool{
	"SJIS": true, "SHIFT_JIS_2004": true, "BIG5": true, "GBK": true, "UHC": true, "GB18030": true, "JOHAB": true,
}
