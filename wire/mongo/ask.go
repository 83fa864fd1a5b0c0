package mongo

import (
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/wire"
)

// HelloRequest is a message that asks a server what it is. It may be the first
// one of a connection, and needs no authentication
// (https://github.com/mongodb/specifications, mongodb-handshake).
func HelloRequest() []byte {
	a := answer{id: 1, op: opMsg, doc: bson.D{
		{Key: "hello", Value: int32(1)},
		{Key: "client", Value: bson.D{
			{Key: "application", Value: bson.D{{Key: "name", Value: "wirewait"}}},
			{Key: "driver", Value: bson.D{{Key: "name", Value: "wirewait"}, {Key: "version", Value: "1"}}},
			{Key: "os", Value: bson.D{{Key: "type", Value: "unknown"}}},
		}},
		{Key: "$db", Value: "admin"},
	}}
	return a.encode(nil)
}

// HelloSize is how long a whole message is, by the first four bytes of it. An
// error: it's no reply to HelloRequest.
func HelloSize(head []byte) (int, error) {
	if n := le32(head); n >= headerLen && n <= 64<<10 {
		return n, nil
	}
	return 0, errors.New("what answers is no MongoDB server")
}

// HelloName is what the server calls itself, as a member of its set, by its
// reply to HelloRequest; empty if it's in none.
func HelloName(reply []byte) (string, error) {
	s := &session{open: wire.NewOpen(wire.MongoDB)}
	a, body := s.unpacked(reply)
	doc := documentOf(a.op, body)
	if doc == nil {
		return "", errors.New("its answer to hello can't be read")
	}
	if v, err := doc.LookupErr("errmsg"); err == nil {
		text, _ := v.StringValueOK()
		return "", errors.New("it refuses hello: " + text)
	}
	name, _ := doc.Lookup("me").StringValueOK()
	return name, nil
}
