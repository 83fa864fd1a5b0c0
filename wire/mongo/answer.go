package mongo

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"strconv"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/wire"
)

// answer is a reply that is made up here.
type answer struct {
	id, to     int32 // requestID, responseTo
	op         int32
	flags      uint32 // of OP_REPLY
	doc        bson.D
	compressor string
	checksum   bool
}

// replyOp is the opcode of the reply to a request with another.
func replyOp(op int32) int32 {
	switch op {
	case opQuery, opGetMore:
		return opReply
	case opCommand:
		return opCommandReply
	}
	return opMsg
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode appends the message to out:
//
//	OP_MSG           flags | 0x00 document | [CRC-32C of all before it]
//	OP_REPLY         flags | int64 cursor | int32 from | int32 number | document
//	OP_COMMANDREPLY  document | {}
func (a *answer) encode(out []byte) []byte {
	doc, err := bson.Marshal(a.doc)
	if err != nil {
		return out // there is nothing in it that could not be
	}
	var body []byte
	switch op := a.op; {
	case op == opReply:
		body = binary.LittleEndian.AppendUint32(body, a.flags)
		body = append(body, make([]byte, 12)...)
		body = binary.LittleEndian.AppendUint32(body, 1)
		body = append(body, doc...)
	case op == opCommandReply:
		body = append(append(body, doc...), 5, 0, 0, 0, 0)
	default:
		var flags uint32
		if a.checksum && a.compressor == "" {
			flags = flagChecksum
		}
		body = append(binary.LittleEndian.AppendUint32(body, flags), 0)
		body = append(body, doc...)
	}
	op := a.op
	if id, ok := compressorID(a.compressor); ok {
		body, op = pack(id, op, body), opCompressed
	}
	return a.frame(out, op, body)
}

// frame puts the header before a body, and behind it the checksum if one is due.
func (a *answer) frame(out []byte, op int32, body []byte) []byte {
	begin := len(out)
	n := headerLen + len(body)
	sum := op == opMsg && a.checksum
	if sum {
		n += 4
	}
	for _, v := range []int32{int32(n), a.id, a.to, op} {
		out = binary.LittleEndian.AppendUint32(out, uint32(v))
	}
	out = append(out, body...)
	if sum {
		out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(out[begin:], castagnoli))
	}
	return out
}

func compressorID(name string) (byte, bool) {
	for id := byte(packedNoop); id <= packedZstd; id++ {
		if compressorName(id) == name {
			return id, true
		}
	}
	return 0, false
}

// pack is the body of an OP_COMPRESSED that holds another.
func pack(id byte, op int32, body []byte) []byte {
	out := binary.LittleEndian.AppendUint32(nil, uint32(op))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(body)))
	out = append(out, id)
	switch id {
	case packedSnappy:
		return append(out, snappy.Encode(nil, body)...)
	case packedZlib:
		b := bytes.NewBuffer(out)
		w := zlib.NewWriter(b)
		_, _ = w.Write(body) // a bytes.Buffer takes all
		_ = w.Close()
		return b.Bytes()
	case packedZstd:
		w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return out
		}
		defer w.Close()
		return w.EncodeAll(body, out)
	}
	return append(out, body...)
}

// Fail implements wire.Inspector: the reply in b, but with an error.
func (s *session) Fail(x *wire.Exchange, f *wire.Failure, b, out []byte) []byte {
	a, was := s.opened(b)
	a.doc = s.errorDocument(x, f)
	if f.ConcernError {
		a.doc = s.concernDocument(x, f, was)
	}
	return a.encode(out)
}

// opened is an envelope like that of a reply of the server's, and the document in
// it; nil if it can't be read whole.
func (s *session) opened(b []byte) (a answer, doc bson.Raw) {
	a, body := s.unpacked(b)
	return a, documentOf(a.op, body)
}

// unpacked is the same, with the body that the document is in: behind the
// header, and inflated; empty if it can't be.
func (s *session) unpacked(b []byte) (a answer, body []byte) {
	var h header
	if ok, err := h.read(b, false); !ok || err != nil {
		return a, nil
	}
	a = answer{id: h.requestID, to: h.responseTo, op: h.op}
	body = b[headerLen:]
	if h.op == opCompressed && len(body) > packedHead {
		a.op, a.compressor = int32(le32(body)), compressorName(body[8])
		size := le32(body[4:])
		if size < 0 || size > maxInflate {
			return a, nil
		}
		z := borrowInflater(maxInflate)
		defer z.giveBack()
		out, reason := z.inflate(body[8], body[packedHead:], size, true)
		if reason != "" || len(out) < size {
			return a, nil
		}
		body = bytes.Clone(out)
	}
	a.checksum = h.op == opMsg && h.flags&flagChecksum != 0
	return a, body
}

// documentAt is where the first document of a reply's body begins.
func documentAt(op int32) int {
	switch op {
	case opMsg:
		return flagsLen + 1
	case opReply:
		return 20
	}
	return 0
}

// documentOf is the first document of a reply's body.
func documentOf(op int32, body []byte) bson.Raw {
	skip := documentAt(op)
	if op == opMsg && (len(body) <= skip || body[flagsLen] != 0) {
		return nil
	}
	if len(body) < skip+minDocument {
		return nil
	}
	n := le32(body[skip:])
	if n < minDocument || n > len(body)-skip {
		return nil
	}
	doc := bson.Raw(body[skip : skip+n])
	if doc.Validate() != nil {
		return nil
	}
	return doc
}

// errorDocument is a command's reply that says it failed.
func (s *session) errorDocument(x *wire.Exchange, f *wire.Failure) bson.D {
	code := codeOf(f)
	d := bson.D{{Key: "ok", Value: 0.0}, {Key: "errmsg", Value: messageOf(f, code)}, {Key: "code", Value: code}}
	if name := codeNames[code]; name != "" {
		d = append(d, bson.E{Key: "codeName", Value: name})
	}
	return s.withLabels(d, x, f, code)
}

// concernDocument is the server's reply with a writeConcernError. Where that
// reply can't be read, it's made of what is known of it.
func (s *session) concernDocument(x *wire.Exchange, f *wire.Failure, was bson.Raw) bson.D {
	code := codeOf(f)
	e := bson.D{{Key: "code", Value: code}}
	if name := codeNames[code]; name != "" {
		e = append(e, bson.E{Key: "codeName", Value: name})
	}
	e = append(e, bson.E{Key: "errmsg", Value: messageOf(f, code)})
	if code == writeConcernTimeout {
		e = append(e, bson.E{Key: "errInfo", Value: bson.D{{Key: "wtimeout", Value: true}}})
	}
	var d bson.D
	elements, err := was.Elements()
	if was == nil || err != nil {
		d = bson.D{{Key: "n", Value: int32(max(x.Mongo.N, 0))}, {Key: "ok", Value: 1.0}}
	}
	for _, el := range elements {
		if k := el.Key(); k != "writeConcernError" && k != "errorLabels" {
			d = append(d, bson.E{Key: k, Value: el.Value()})
		}
	}
	d = append(d, bson.E{Key: "writeConcernError", Value: e})
	return s.withLabels(d, x, f, code)
}

func (s *session) withLabels(d bson.D, x *wire.Exchange, f *wire.Failure, code int32) bson.D {
	labels := f.Labels
	if labels == nil {
		labels = s.labels(x, code, f.ConcernError)
	}
	if len(labels) == 0 {
		return d
	}
	return append(d, bson.E{Key: "errorLabels", Value: labels})
}

// queryFailure is the document of an OP_REPLY that says that a query failed.
func queryFailure(f *wire.Failure) bson.D {
	code := codeOf(f)
	return bson.D{{Key: "$err", Value: messageOf(f, code)}, {Key: "code", Value: code}}
}

func codeOf(f *wire.Failure) int32 {
	n, _ := strconv.ParseInt(f.Code, 10, 32)
	return int32(n)
}
