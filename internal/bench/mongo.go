package main

import (
	"encoding/binary"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// The MongoDB bytes of the ping-pong: an OP_MSG that inserts a document, and
// the reply of a replica set's primary, 128 bytes each.
//
//	int32 length | int32 requestID | int32 responseTo | int32 2013 | int32 flags | 0 | document
//
// https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/#op_msg

func opMsg(document bson.D) []byte {
	body, err := bson.Marshal(document)
	if err != nil {
		panic(err) // the two documents below are constants
	}
	var b []byte
	for _, n := range []uint32{uint32(21 + len(body)), 1, 0, 2013, 0} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return append(append(b, 0), body...)
}

func mongoInsert() []byte {
	insert := func(body string) []byte {
		return opMsg(bson.D{{Key: "insert", Value: "notes"}, {Key: "$db", Value: "bench"},
			{Key: "writeConcern", Value: bson.D{{Key: "w", Value: int32(1)}}},
			{Key: "documents", Value: bson.A{bson.D{{Key: "body", Value: body}}}}})
	}
	return insert(strings.Repeat("x", pingSize-len(insert(""))))
}

func mongoInsertReply() []byte {
	at := bson.Timestamp{T: 1_700_000_000, I: 1}
	return opMsg(bson.D{{Key: "n", Value: int32(1)},
		{Key: "opTime", Value: bson.D{{Key: "ts", Value: at}, {Key: "t", Value: int64(1)}}},
		{Key: "electionId", Value: bson.ObjectID{1}},
		{Key: "ok", Value: 1.0}, {Key: "operationTime", Value: at}})
}
