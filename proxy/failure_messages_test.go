package proxy

import (
	"encoding/binary"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// opMsg is a MongoDB message: OP_MSG with one section of kind 0.
func opMsg(id, responseTo int32, flags uint32, doc any) []byte {
	raw, err := bson.Marshal(doc)
	if err != nil {
		panic(err)
	}
	body := binary.LittleEndian.AppendUint32(nil, flags)
	return mongoMessage(id, responseTo, 2013, append(append(body, 0), raw...))
}

func mongoMessage(id, responseTo, opcode int32, body []byte) []byte {
	var b []byte
	for _, n := range []int32{int32(16 + len(body)), id, responseTo, opcode} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return append(b, body...)
}

// pgMessage is a PostgreSQL message after the start-up.
func pgMessage(kind byte, body string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(4+len(body))), body...)
}

// pgStartup is the first packet of a client, version 3.0.
func pgStartup(user string) []byte {
	body := "\x00\x03\x00\x00user\x00" + user + "\x00\x00"
	return append(binary.BigEndian.AppendUint32(nil, uint32(4+len(body))), body...)
}

// conversation is a request, its whole answer, and one more message each way of
// which the test sends as much as it likes.
type conversation struct {
	request, reply, nextRequest, nextReply []byte
}

// conversations are one for each protocol, by its name.
func conversations(tb testing.TB) map[string]conversation {
	tb.Helper()
	blob := make([]byte, 400_000)
	for i := range blob {
		blob[i] = byte(i * 7)
	}
	insert := bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "b", Value: blob}}}}, {Key: "$db", Value: "d"}}
	return map[string]conversation{
		"mongodb": {
			opMsg(1, 0, 0, insert), opMsg(1, 1, 0, bson.D{{Key: "n", Value: 1}, {Key: "ok", Value: 1.0}}),
			opMsg(2, 0, 0, insert), opMsg(2, 2, 0, bson.D{{Key: "cursor", Value: blob}, {Key: "ok", Value: 1.0}}),
		},
		"postgres": {
			append(pgStartup("u"), pgMessage('Q', "SELECT 1\x00")...),
			join(pgMessage('R', "\x00\x00\x00\x00"), pgMessage('Z', "I"), pgMessage('C', "SELECT 0\x00"), pgMessage('Z', "I")),
			pgMessage('Q', "SELECT '"+string(blob)+"'\x00"), pgMessage('D', "\x00\x01\x00\x06\x1a\x80"+string(blob)),
		},
	}
}

func join(parts ...[]byte) (b []byte) {
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}
