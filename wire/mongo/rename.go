package mongo

import (
	"bytes"
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/wire"
)

// A hello reply names the members of the set, and drivers dial those names
// (server-discovery-and-monitoring.md). So that they stay on the proxy, each
// name is replaced by the address of the link that leads there:
//
//	hosts, passives, arbiters   arrays of names
//	primary, me                 names
//
// All else is as it was, byte for byte: flags (moreToCome above all), order,
// topologyVersion, electionId. A message that can't be read passes as it is.

// Rewriting implements wire.Rewriter.
func (s *session) Rewriting() bool { return s.options.Rename != nil }

// Rewrites implements wire.Rewriter.
func (s *session) Rewrites(x *wire.Exchange) bool {
	return s.options.Rename != nil && isHello(x.Operation)
}

// Rewrite implements wire.Rewriter.
func (s *session) Rewrite(x *wire.Exchange, b, out []byte) ([]byte, bool) {
	a, body := s.unpacked(b)
	doc := documentOf(a.op, body)
	if doc == nil {
		return out, false
	}
	renamed, changed := renameMembers(doc, s.options.Rename)
	if !changed {
		return out, false
	}
	at := documentAt(a.op)
	end := len(body)
	if a.checksum && a.compressor == "" {
		end -= checksumLen
	}
	if end < at+len(doc) {
		return out, false
	}
	body = append(append(bytes.Clone(body[:at]), renamed...), body[at+len(doc):end]...)
	op := a.op
	if id, ok := compressorID(a.compressor); ok {
		body, op = pack(id, op, body), opCompressed
	}
	return a.frame(out, op, body), true
}

// renameMembers replaces the names of members in a hello reply.
func renameMembers(doc bson.Raw, rename func(string) string) (out bson.Raw, changed bool) {
	elements, err := doc.Elements()
	if err != nil {
		return nil, false
	}
	out = binary.LittleEndian.AppendUint32(nil, 0)
	for _, e := range elements {
		switch v := e.Value(); e.Key() {
		case "primary", "me":
			if name, ok := v.StringValueOK(); ok {
				if to := rename(name); to != name {
					out, changed = appendText(out, e.Key(), to), true
					continue
				}
			}
		case "hosts", "passives", "arbiters":
			if list, ok := v.ArrayOK(); ok {
				if to, ok := renameList(list, rename); ok {
					out = append(append(append(out, byte(bson.TypeArray)), e.Key()...), 0)
					out, changed = append(out, to...), true
					continue
				}
			}
		}
		out = append(out, e...)
	}
	return closeDocument(out), changed
}

// renameList replaces the names in an array.
func renameList(list bson.RawArray, rename func(string) string) (out []byte, changed bool) {
	elements, err := bson.Raw(list).Elements()
	if err != nil {
		return nil, false
	}
	out = binary.LittleEndian.AppendUint32(nil, 0)
	for _, e := range elements {
		if name, ok := e.Value().StringValueOK(); ok {
			if to := rename(name); to != name {
				out, changed = appendText(out, e.Key(), to), true
				continue
			}
		}
		out = append(out, e...)
	}
	return closeDocument(out), changed
}

func appendText(out []byte, key, value string) []byte {
	out = append(append(append(out, byte(bson.TypeString)), key...), 0)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(value)+1))
	return append(append(out, value...), 0)
}

func closeDocument(d []byte) []byte {
	d = append(d, 0)
	binary.LittleEndian.PutUint32(d, uint32(len(d)))
	return d
}
