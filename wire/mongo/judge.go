package mongo

import (
	"bytes"

	"github.com/wirewait/wirewait/wire"
)

// end draws the conclusions from a request that was read, as far as it was.
func (r *request) end(b *body) {
	x := r.x
	if !r.valid {
		b.note(troubleBSON)
	}
	if b.complete() {
		x.Batch = r.batch
	}
	r.judge()
	r.source(b)
	r.introduce()
	if r.call.plain && r.call.replied {
		r.call.plainReply()
	}
}

// judge says whether the request may change data. endSessions changes none,
// though the Node.js driver gives it a write concern, w: 0 (src/mongo_client.ts).
func (r *request) judge() {
	x := r.x
	switch op := x.Operation; {
	case op == "getlasterror" || op == "getLastError" || op == "endSessions" || r.explain || op == "explain":
	case writes(op), mayOutput(op) && r.output, isLegacyWrite(op):
		x.Write, x.WriteBasis = true, "command"
	case r.concern:
		x.Write, x.WriteBasis = true, "write_concern"
	}
}

func isLegacyWrite(operation string) bool {
	return operation == "OP_INSERT" || operation == "OP_UPDATE" || operation == "OP_DELETE"
}

// source says where a write's concern comes from. Inside a transaction no
// write has one: they wait with the commit. Of a command that was not read to its
// end nobody knows.
func (r *request) source(b *body) {
	wc := &r.x.Mongo.WriteConcern
	ends := r.x.Operation == "commitTransaction" || r.x.Operation == "abortTransaction"
	switch {
	case r.concern && ends, r.x.Mongo.InTransaction && !ends && r.x.Write:
		wc.Source = "transaction"
	case r.concern:
		wc.Source = "command"
	case r.x.Write && !b.whole && !isLegacyWrite(r.x.Operation):
		wc.Source = wire.UnknownConcern
	case r.x.Write:
		wc.Source = wire.AssumedConcern
	}
}

// introduce keeps what a hello said of the client.
func (r *request) introduce() {
	driver := r.driver
	if r.version != "" {
		driver += " " + r.version
	}
	if r.application == "" && driver == "" && r.user == "" {
		return
	}
	var p wire.Peer
	if r.s.peer != nil {
		p = *r.s.peer
	}
	was := p
	p.Application, p.Driver = or(r.application, p.Application), or(driver, p.Driver)
	p.User = or(r.user, p.User)
	if p != was {
		r.s.peer = &p
	}
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// metadataText keeps what a client says of itself within the size that servers
// allow the whole of it (specifications/source/mongodb-handshake/handshake.md).
func metadataText(v []byte) string { return string(v[:min(len(v), 512)]) }

// afterDot is the user of saslSupportedMechs' "database.user".
func afterDot(v []byte) string {
	_, user, _ := bytes.Cut(v, []byte{'.'})
	return metadataText(user)
}

// validTraceparent reports whether v is a W3C traceparent of version 00 with
// ids that are not zero (https://www.w3.org/TR/trace-context/#traceparent-header).
func validTraceparent(v []byte) bool {
	const form = "00-tttttttttttttttttttttttttttttttt-ssssssssssssssss-ff"
	if len(v) != len(form) {
		return false
	}
	trace, span := false, false
	for i, c := range v {
		f := form[i]
		if f == '0' || f == '-' {
			if c != f {
				return false
			}
			continue
		}
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
		trace = trace || f == 't' && c != '0'
		span = span || f == 's' && c != '0'
	}
	return trace && span
}

// lastLSID keeps the text of the session id seen last: drivers use one again
// and again.
type lastLSID struct {
	id  [16]byte
	hex string
}

// text reads a binary value (its subtype first) that is a UUID; empty if not.
func (l *lastLSID) text(v []byte) string {
	if len(v) != 1+len(l.id) {
		return ""
	}
	if l.hex == "" || !bytes.Equal(l.id[:], v[1:]) {
		copy(l.id[:], v[1:])
		l.hex = wire.HexLSID(v[1:])
	}
	return l.hex
}
