//go:build unix

package proxy_test

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"

	"github.com/wirewait/wirewait/wire"
)

// document is BSON of strings.
func document(pairs ...string) []byte {
	b := make([]byte, 4)
	for i := 0; i < len(pairs); i += 2 {
		b = append(append(append(b, 2), pairs[i]...), 0)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(pairs[i+1])+1))
		b = append(append(b, pairs[i+1]...), 0)
	}
	b = append(b, 0)
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	return b
}

func opMsgBody(doc []byte) []byte { return append([]byte{0, 0, 0, 0, 0}, doc...) }

// compressed is an OP_COMPRESSED of an OP_MSG whose body inflates to n zeros,
// and which says that it inflates to so many.
func compressed(n, says int) []byte {
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	_, _ = w.Write(make([]byte, n))
	_ = w.Close()
	b := binary.LittleEndian.AppendUint32(nil, 2013)
	b = binary.LittleEndian.AppendUint32(b, uint32(says))
	return mongoMessage(2012, append(append(b, 2), z.Bytes()...))
}

func mongoBadInputs() []badInput {
	// lie changes a length inside an insert.
	lie := func(at int, length uint32) []byte {
		b := mongoMessage(2013, opMsgBody(document("insert", "orders", "$db", "shop")))
		binary.LittleEndian.PutUint32(b[16+5+at:], length)
		return b
	}
	var in []badInput
	for name, b := range map[string][]byte{
		"length 15":         mongoHeader(15),
		"length 0":          mongoHeader(0),
		"length -1":         mongoHeader(0xffffffff),
		"length 48,000,001": mongoHeader(48_000_001),
		"unknown opcode":    mongoMessage(4242, []byte("something")),
	} {
		in = append(in, badInput{wire.MongoDB, name, b, "opaque"})
	}
	const first = 4 + 1 + len("insert\x00") // of the string's length in the document
	return append(in,
		badInput{wire.MongoDB, "header cut", mongoHeader(200)[:9], ""},
		badInput{wire.MongoDB, "message cut", mongoHeader(40_000_000), ""},
		badInput{wire.MongoDB, "document longer than its message", lie(0, 1<<20), "bson"},
		badInput{wire.MongoDB, "document of 4 bytes", lie(0, 4), "bson"},
		badInput{wire.MongoDB, "document of -5 bytes", lie(0, 0xfffffffb), "bson"},
		badInput{wire.MongoDB, "string longer than its document", lie(first, 1<<24), "bson"},
		badInput{wire.MongoDB, "string of 0 bytes", lie(first, 0), "bson"},
		badInput{wire.MongoDB, "compressed bomb", compressed(40_000_000, 100), "compressed_bomb"},
		badInput{wire.MongoDB, "compressed size of 2 GB", compressed(1000, 2_000_000_000), "compressed_size"},
		badInput{wire.MongoDB, "compressed zeros", bytes.Repeat(compressed(47_000_000, 47_000_000), 10), "bson"},
	)
}
