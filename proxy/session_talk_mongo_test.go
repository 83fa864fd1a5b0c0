package proxy

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/wire"
)

// Flag bits of OP_MSG:
// https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/#flag-bits
const (
	checksumPresent = 1 << 0
	moreToCome      = 1 << 1
	exhaustAllowed  = 1 << 16
)

// mongoLabel is what a request and its reply say of each other. The collection
// and the request's id come from the request; n, the error's code and the size
// from the reply.
func mongoLabel(x *wire.Exchange) string {
	return fmt.Sprintf("%s %s id=%d n=%d error=%s noreply=%v answered=%v exhaust=%v compressor=%s bytes=%d/%d",
		x.Operation, x.Collection, x.Mongo.RequestID, x.Mongo.N, x.ErrorCode, x.NoReply, x.Answered, x.Mongo.Exhaust,
		x.Compressor, x.Sides[wire.ToServer].Bytes, x.Sides[wire.ToClient].Bytes)
}

// mongoTalk is windows of pipelined commands, which the server answers in any
// order: replies say by id what they answer.
func mongoTalk(d *dice) *talk {
	k := &talk{dice: d}
	for range 1 + k.n(12) {
		var replies []func()
		for range 1 + k.n(5) {
			if reply := k.mongoCommand(); reply != nil {
				replies = append(replies, reply)
			}
		}
		for len(replies) > 0 {
			i := k.n(len(replies))
			replies[i]()
			replies = slices.Delete(replies, i, i+1)
		}
		if k.one(2) {
			k.wait()
		}
	}
	return k
}

// mongoCommand says a command and returns what says its reply; nil: none comes.
func (k *talk) mongoCommand() (reply func()) {
	id := k.id()
	name := []string{"insert", "update", "delete", "find", "aggregate"}[k.n(5)]
	cmd := bson.D{{Key: name, Value: fmt.Sprint("c", id)}, {Key: "pad", Value: make([]byte, k.bulk(150_000))}, {Key: "$db", Value: "d"}}
	flags, kind := uint32(0), k.n(8)
	switch kind {
	case 0:
		cmd[0].Key, flags = "insert", moreToCome
		cmd = append(cmd, bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 0}}})
	case 1:
		cmd[0].Key, flags = "find", exhaustAllowed
	}
	request, compressor := k.mongoMessage(id, 0, flags, cmd)
	end := k.ask(request)
	label := func(n int, code string, size int, replyCompressor string) {
		if compressor == "" {
			compressor = replyCompressor
		}
		k.expect("%s c%d id=%d n=%d error=%s noreply=%v answered=%v exhaust=%v compressor=%s bytes=%d/%d",
			cmd[0].Key, id, id, n, code, kind == 0, kind != 0, kind == 1 && size > 0, compressor, len(request), size)
	}
	if kind == 0 {
		label(-1, "", 0, "")
		return nil
	}
	return func() {
		n, code, size := -1, "", 0
		var last string
		doc := bson.D{{Key: "pad", Value: make([]byte, k.bulk(150_000))}}
		switch {
		case kind == 1:
			size = k.mongoExhaust(id, end, doc)
			label(-1, "", size, "")
			return
		case kind == 2:
			code = fmt.Sprint(id)
			doc = append(doc, bson.E{Key: "ok", Value: 0.0}, bson.E{Key: "code", Value: int32(id)})
		case name == "find" || name == "aggregate":
			doc = append(doc, bson.E{Key: "ok", Value: 1.0})
		default:
			n = id
			doc = append(doc, bson.E{Key: "n", Value: int32(id)}, bson.E{Key: "ok", Value: 1.0})
		}
		var m []byte
		m, last = k.mongoMessage(500_000+id, id, 0, doc)
		k.answer(end, m)
		label(n, code, len(m), last)
	}
}

// mongoExhaust answers by at least two messages, each of which but the last
// announces one that responds to it.
func (k *talk) mongoExhaust(id, after int, doc bson.D) (size int) {
	doc = append(doc, bson.E{Key: "ok", Value: 1.0})
	to := id
	for i := range 2 + k.n(4) {
		own := 500_000 + 10*id + i
		m := opMsg(int32(own), int32(to), moreToCome, doc)
		k.answer(after, m)
		size, to = size+len(m), own
	}
	m := opMsg(int32(500_000+10*id+9), int32(to), 0, doc)
	k.answer(after, m)
	return size + len(m)
}

// mongoMessage is an OP_MSG in one of the ways to send it, and its compressor.
func (k *talk) mongoMessage(id, responseTo int, flags uint32, doc bson.D) (m []byte, compressor string) {
	m = opMsg(int32(id), int32(responseTo), flags, doc)
	if way := k.n(8); way < 4 && len(m) < 200<<10 { // more is not inflated
		name := []string{"noop", "snappy", "zlib", "zstd"}[way]
		return compressed(m, byte(way)), name
	} else if way == 4 && flags == 0 {
		binary.LittleEndian.PutUint32(m, uint32(len(m)+4))
		binary.LittleEndian.PutUint32(m[16:], checksumPresent)
		sum := crc32.Checksum(m, crc32.MakeTable(crc32.Castagnoli))
		m = binary.LittleEndian.AppendUint32(m, sum)
	}
	return m, ""
}

var zstdWriter, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))

// compressed is m as an OP_COMPRESSED:
// https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/#op_compressed
func compressed(m []byte, compressor byte) []byte {
	body := append([]byte(nil), m[12:16]...)
	body = binary.LittleEndian.AppendUint32(body, uint32(len(m)-16))
	body = append(body, compressor)
	switch plain := m[16:]; compressor {
	case 0:
		body = append(body, plain...)
	case 1:
		body = append(body, snappy.Encode(nil, plain)...)
	case 2:
		var z bytes.Buffer
		w := zlib.NewWriter(&z)
		_, _ = w.Write(plain)
		_ = w.Close()
		body = append(body, z.Bytes()...)
	case 3:
		body = zstdWriter.EncodeAll(plain, body)
	}
	return mongoMessage(int32(binary.LittleEndian.Uint32(m[4:])), int32(binary.LittleEndian.Uint32(m[8:])), 2012, body)
}
