package mongod

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// The parts of the wire protocol that the peer speaks. All integers are
// little-endian (mongodb/specifications, source/message/OP_MSG.md):
//
//	header         length  requestID  responseTo  opCode       4 x int32
//	OP_MSG         flags uint32, sections, [crc32c uint32]
//	  section 0    byte 0, document
//	  section 1    byte 1, int32 size, cstring name, documents
//	OP_QUERY       flags int32, cstring collection, skip, return int32, document
//	OP_REPLY       flags int32, cursor int64, from, count int32, documents
//	OP_COMPRESSED  inner opCode int32, size int32, compressor byte, bytes
const (
	opReply      = 1
	opQuery      = 2004
	opCompressed = 2012
	opMsg        = 2013

	headerLen  = 16
	maxMessage = 48_000_000
	maxBSON    = 16 << 20

	flagChecksum   = 1 << 0
	flagMoreToCome = 1 << 1
	flagExhaust    = 1 << 16 // the reply may set moreToCome
	requiredFlags  = 0xffff  // unknown ones among these are an error

	queryReplyAwaitCapable = 8
)

var errProtocol = errors.New("protocol error")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// message is one that was read. Its body holds the sections of kind 1 as
// arrays, as if they had been sent within it.
type message struct {
	id         int32
	legacy     bool   // came as OP_QUERY
	database   string // of an OP_QUERY
	flags      uint32 // of an OP_MSG
	checksum   bool   // it carried one, and it was right
	compressor byte   // 0: not compressed
	body       bson.Raw
}

// codec reads and writes messages. Safe for concurrent use.
type codec struct {
	compression
	lastID atomic.Int32
}

func newCodec() (*codec, error) {
	c := &codec{}
	return c, c.compression.open()
}

// read returns the next message. After an error the connection must be closed.
func (c *codec) read(r *bufio.Reader) (*message, error) {
	var head [headerLen]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	length := int32(binary.LittleEndian.Uint32(head[:]))
	if length < headerLen || length > maxMessage {
		return nil, fmt.Errorf("%w: message of %d bytes", errProtocol, length)
	}
	// The buffer grows with what arrives: a length alone allocates nothing.
	var whole bytes.Buffer
	whole.Write(head[:])
	if _, err := io.CopyN(&whole, r, int64(length-headerLen)); err != nil {
		return nil, err
	}
	m := &message{id: int32(binary.LittleEndian.Uint32(head[4:]))}
	op := int32(binary.LittleEndian.Uint32(head[12:]))
	body := whole.Bytes()[headerLen:]
	if op == opCompressed {
		var err error
		if op, m.compressor, body, err = c.inflate(body); err != nil {
			return nil, err
		}
	}
	var err error
	switch op {
	case opMsg:
		err = m.readMsg(body, whole.Bytes())
	case opQuery:
		err = m.readQuery(body)
	default:
		err = fmt.Errorf("%w: opcode %d", errProtocol, op)
	}
	return m, err
}

// readMsg reads an OP_MSG. whole is the message with its header, which a
// checksum covers; within OP_COMPRESSED there is none.
func (m *message) readMsg(b, whole []byte) error {
	if len(b) < 4 {
		return fmt.Errorf("%w: short OP_MSG", errProtocol)
	}
	m.flags = binary.LittleEndian.Uint32(b)
	b = b[4:]
	if m.flags&requiredFlags&^(flagChecksum|flagMoreToCome) != 0 {
		return fmt.Errorf("%w: flags %#x", errProtocol, m.flags)
	}
	if m.flags&flagChecksum != 0 && m.compressor == 0 {
		if len(b) < 4 {
			return fmt.Errorf("%w: no checksum", errProtocol)
		}
		end := len(whole) - 4
		if binary.LittleEndian.Uint32(whole[end:]) != crc32.Checksum(whole[:end], castagnoli) {
			return fmt.Errorf("%w: wrong checksum", errProtocol)
		}
		m.checksum = true
		b = b[:len(b)-4]
	}
	return m.readSections(b)
}

func (m *message) readSections(b []byte) error {
	var sequences []byte // elements to append to the body
	for len(b) > 0 {
		kind := b[0]
		size, ok := sectionSize(b[1:])
		if !ok {
			return fmt.Errorf("%w: section %d is cut", errProtocol, kind)
		}
		section := b[1 : 1+size]
		b = b[1+size:]
		switch {
		case kind == 0 && m.body == nil:
			m.body = bson.Raw(section)
		case kind == 1:
			element, err := arrayElement(section)
			if err != nil {
				return err
			}
			sequences = append(sequences, element...)
		default:
			return fmt.Errorf("%w: section of kind %d", errProtocol, kind)
		}
	}
	if m.body == nil {
		return fmt.Errorf("%w: no body", errProtocol)
	}
	if !wellFormed(m.body, maxNesting) {
		return fmt.Errorf("%w: the body is no document", errProtocol)
	}
	if sequences != nil {
		elements := m.body[4 : len(m.body)-1]
		m.body = bson.Raw(bsoncore.BuildDocument(nil, elements, sequences))
	}
	return nil
}

// sectionSize reads the length that both kinds of section begin with.
func sectionSize(b []byte) (int, bool) {
	if len(b) < 5 {
		return 0, false
	}
	n := int32(binary.LittleEndian.Uint32(b))
	return int(n), n >= 5 && int(n) <= len(b)
}

// arrayElement turns a section of kind 1 into the array that it stands for.
func arrayElement(b []byte) ([]byte, error) {
	name, docs, ok := bytes.Cut(b[4:], []byte{0})
	if !ok {
		return nil, fmt.Errorf("%w: a sequence without a name", errProtocol)
	}
	at, out := bsoncore.AppendArrayElementStart(nil, string(name))
	for i := 0; len(docs) > 0; i++ {
		doc, rest, ok := bsoncore.ReadDocument(docs)
		if !ok {
			return nil, fmt.Errorf("%w: sequence %s is cut", errProtocol, name)
		}
		if !wellFormed(bson.Raw(doc), maxNesting) {
			return nil, fmt.Errorf("%w: sequence %s holds no document", errProtocol, name)
		}
		out = bsoncore.AppendDocumentElement(out, strconv.Itoa(i), doc)
		docs = rest
	}
	return bsoncore.AppendArrayEnd(out, at)
}

// readQuery reads an OP_QUERY, which drivers still use for their first hello.
func (m *message) readQuery(b []byte) error {
	m.legacy = true
	if len(b) < 4 {
		return fmt.Errorf("%w: short OP_QUERY", errProtocol)
	}
	name, rest, ok := bytes.Cut(b[4:], []byte{0})
	db, isCommand := bytes.CutSuffix(name, []byte(".$cmd"))
	if !ok || !isCommand || len(rest) < 8 {
		return fmt.Errorf("%w: OP_QUERY on %q", errProtocol, name)
	}
	doc, _, ok := bsoncore.ReadDocument(rest[8:])
	if !ok || !wellFormed(bson.Raw(doc), maxNesting) {
		return fmt.Errorf("%w: OP_QUERY without a document", errProtocol)
	}
	if inner, ok := doc.Lookup("$query").DocumentOK(); ok {
		doc = inner
	}
	m.database, m.body = string(db), bson.Raw(doc)
	return nil
}

// frame is how a message is to be written.
type frame struct {
	op         int32 // opMsg or opReply
	responseTo int32
	flags      uint32 // without that of the checksum
	checksum   bool
	compressor byte // 0: none
}

// reply is the frame that answers m: in the same opcode, with a checksum or the
// same compressor if m had one, as servers do. With more another reply follows.
func (m *message) reply(more bool) frame {
	f := frame{op: opMsg, responseTo: m.id, checksum: m.checksum, compressor: m.compressor}
	if m.legacy {
		f.op = opReply
	}
	if more {
		f.flags = flagMoreToCome
	}
	return f
}

// encode makes a message of a document.
func (c *codec) encode(f frame, raw bson.Raw) (b []byte, id int32, err error) {
	op, body := f.op, []byte(nil)
	if op == opReply {
		body = binary.LittleEndian.AppendUint32(body, queryReplyAwaitCapable)
		body = append(body, make([]byte, 12)...) // cursor, starting from
		body = binary.LittleEndian.AppendUint32(body, 1)
		body = append(body, raw...)
	} else {
		if f.checksum {
			f.flags |= flagChecksum
		}
		body = binary.LittleEndian.AppendUint32(body, f.flags)
		body = append(append(body, 0), raw...)
	}
	if f.compressor != 0 {
		if body, err = c.deflate(f.compressor, op, body); err != nil {
			return nil, 0, err
		}
		op = opCompressed
	}
	length := headerLen + len(body)
	if f.checksum {
		length += 4
	}
	id = c.lastID.Add(1)
	out := make([]byte, 0, length)
	for _, v := range [4]int32{int32(length), id, f.responseTo, op} {
		out = binary.LittleEndian.AppendUint32(out, uint32(v))
	}
	out = append(out, body...)
	if f.checksum {
		out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(out, castagnoli))
	}
	return out, id, nil
}
