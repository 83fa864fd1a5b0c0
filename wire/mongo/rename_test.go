package mongo

import (
	"bytes"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/wire"
)

// renamed is how the members of the test's set are known to clients.
func renamed(member string) string {
	switch strings.ToLower(member) {
	case "mongo-a:27017":
		return "127.0.0.1:27101"
	case "mongo-b:27017":
		return "127.0.0.1:27102"
	}
	return member
}

// helloReply is one, by what stands for two of its members and the primary; the
// third has no link.
func helloReply(t *testing.T, a, b, primary string) []byte {
	return doc(t, bson.D{
		{Key: "topologyVersion", Value: bson.D{{Key: "processId", Value: bson.ObjectID{1, 2}}, {Key: "counter", Value: int64(7)}}},
		{Key: "hosts", Value: bson.A{a, b, "mongo-c:27017"}},
		{Key: "passives", Value: bson.A{b}},
		{Key: "arbiters", Value: bson.A{}},
		{Key: "setName", Value: "rs0"},
		{Key: "isWritablePrimary", Value: true},
		{Key: "primary", Value: primary},
		{Key: "me", Value: a},
		{Key: "tags", Value: bson.D{{Key: "me", Value: "mongo-a:27017"}}}, // whatever it's called, it's no name
		{Key: "electionId", Value: bson.ObjectID{0x7f, 0xff}},
		{Key: "ok", Value: 1.0},
	})
}

// Whatever form a hello reply comes in, its names are replaced, all else is as
// it was, and the message is whole: its length, its checksum, its compression.
func TestRewrite_NamesOfMembersInEveryForm(t *testing.T) {
	before := helloReply(t, "mongo-a:27017", "Mongo-B:27017", "mongo-a:27017")
	after := helloReply(t, "127.0.0.1:27101", "127.0.0.1:27102", "127.0.0.1:27101")
	compressed := func(id byte) func([]byte) []byte {
		return func(d []byte) []byte {
			return message(5, 1, opCompressed, pack(id, opMsg, cat(u32(flagMoreToCome), kind0(d))))
		}
	}
	forms := map[string]func([]byte) []byte{
		"OP_MSG":            func(d []byte) []byte { return msg(5, 1, 0, kind0(d)) },
		"OP_MSG, streaming": func(d []byte) []byte { return msg(5, 1, flagMoreToCome, kind0(d)) },
		"OP_MSG, checksum":  func(d []byte) []byte { return summed(msg(5, 1, 0, kind0(d))) },
		"OP_REPLY":          func(d []byte) []byte { return opReplyMsg(5, 1, 8, d) },
		"snappy":            compressed(packedSnappy),
		"zlib":              compressed(packedZlib),
		"zstd":              compressed(packedZstd),
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			s := New(wire.Options{Rename: renamed}).(wire.Rewriter)
			x := &wire.Exchange{Operation: "hello"}
			got, ok := s.Rewrite(x, form(before), []byte("before "))
			if want := append([]byte("before "), form(after)...); !ok || !bytes.Equal(got, want) {
				t.Errorf("%v\n got %q\nwant %q", ok, got, want)
			}
			if again, ok := s.Rewrite(x, form(after), nil); ok {
				t.Errorf("nothing was to change, and yet: %q", again)
			}
		})
	}
}

func TestRewrite_LeavesWhatItCannotRead(t *testing.T) {
	s := New(wire.Options{Rename: renamed}).(wire.Rewriter)
	d := helloReply(t, "mongo-a:27017", "mongo-b:27017", "mongo-a:27017")
	whole := msg(5, 1, 0, kind0(d))
	for name, b := range map[string][]byte{
		"a length that lies": msg(5, 1, 0, kind0(d[:len(d)-20])),
		"cut":                whole[:len(whole)-9],
		"no document":        msg(5, 1, 0),
		"a sequence first":   msg(5, 1, 0, kind1("x", d)),
		"not inflatable":     message(5, 1, opCompressed, u32(opMsg), u32(100), []byte{packedZstd, 1, 2, 3}),
		"nothing":            nil,
	} {
		if out, ok := s.Rewrite(&wire.Exchange{Operation: "hello"}, b, nil); ok {
			t.Errorf("%s: %q", name, out)
		}
	}
}

// Only hello's replies are rewritten: a document that happens to have hosts is
// the user's own.
func TestRewrites_HelloAlone(t *testing.T) {
	s := New(wire.Options{Rename: renamed}).(wire.Rewriter)
	for op, want := range map[string]bool{"hello": true, "isMaster": true, "ismaster": true, "find": false, "ping": false, "": false} {
		if got := s.Rewrites(&wire.Exchange{Operation: op}); got != want {
			t.Errorf("%q: %v", op, got)
		}
	}
	if New(wire.Options{}).(wire.Rewriter).Rewriting() {
		t.Error("rewriting although nobody asked")
	}
}

func FuzzRewrite(f *testing.F) {
	d, _ := bson.Marshal(bson.D{{Key: "hosts", Value: bson.A{"mongo-a:27017"}}, {Key: "me", Value: "mongo-a:27017"}})
	f.Add(msg(5, 1, 0, kind0(d)))
	f.Add(opReplyMsg(5, 1, 0, d))
	f.Add(message(5, 1, opCompressed, pack(packedSnappy, opMsg, cat(u32(0), kind0(d)))))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := New(wire.Options{Rename: renamed}).(wire.Rewriter)
		x := &wire.Exchange{Operation: "hello"}
		out, ok := s.Rewrite(x, b, nil)
		if !ok {
			return
		}
		if again, ok := s.Rewrite(x, out, nil); ok {
			t.Fatalf("%q was rewritten once more to %q", out, again)
		}
	})
}
