package mongo

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/wire"
)

func TestSections_Troubles(t *testing.T) {
	command := kind0(doc(t, bson.D{{Key: "insert", Value: "c"}, {Key: "$db", Value: "d"}}))
	one := doc(t, bson.D{{Key: "a", Value: 1}})
	short := msg(1, 0, flagChecksum, []byte{0, 0})
	lying := kind1("documents", one)
	lying[1]++
	for name, c := range map[string]struct {
		m         []byte
		reason    string
		operation string
	}{
		"good":                      {msg(1, 0, 0, command), "", "insert"},
		"checksum":                  {summed(msg(1, 0, 0, command)), "", "insert"},
		"optional flags":            {msg(1, 0, 0xffff0000, command), "", "insert"},
		"sequence first":            {msg(1, 0, 0, kind1("documents", one), command), "", "insert"},
		"empty sequence":            {msg(1, 0, 0, command, kind1("documents")), "", "insert"},
		"no room for the checksum":  {short, troubleChecksum, ""},
		"header only":               {message(1, 0, opMsg), troubleShort, ""},
		"no sections":               {msg(1, 0, 0), troubleSections, ""},
		"no command":                {msg(1, 0, 0, kind1("documents", one)), troubleSections, ""},
		"two commands":              {msg(1, 0, 0, command, command), troubleSections, "insert"},
		"security token":            {msg(1, 0, 0, []byte{2, 'x', 0}, command), troubleKind, ""},
		"unknown kind":              {msg(1, 0, 0, command, []byte{4}), troubleKind, "insert"},
		"unknown flag":              {msg(1, 0, 1<<5, command), troubleFlags, "insert"},
		"sequence past the message": {msg(1, 0, 0, command, lying), troubleBSON, "insert"},
		"sequence too short":        {msg(1, 0, 0, command, []byte{1, 3, 0, 0, 0}), troubleBSON, "insert"},
		"name without end":          {msg(1, 0, 0, command, []byte{1, 6, 0, 0, 0, 'a', 'b'}), troubleBSON, "insert"},
		"document cut":              {msg(1, 0, 0, command[:len(command)-1]), troubleBSON, ""},
		"empty document":            {msg(1, 0, 0, []byte{0, 4, 0, 0, 0}), troubleBSON, ""},
		"telemetry too large":       {msg(1, 0, 0, command, []byte{3}, doc(t, bson.D{{Key: "x", Value: make([]byte, maxTelemetry)}})), troubleBSON, "insert"},
		"a reply's opcode":          {opReplyMsg(1, 0, 0, one), troubleDirection, "OP_REPLY"},
	} {
		x, troubles := exchange(t, c.m, nil)
		want := []string{c.reason}
		if c.reason == "" {
			want = nil
		}
		if !slices.Equal(troubles, want) || x.Operation != c.operation {
			t.Errorf("%s: troubles %v, operation %q; want %v, %q", name, troubles, x.Operation, want, c.operation)
		}
	}
}

// A message that can't be read still takes its part in the pairing.
func TestSections_UnreadableMessagesStillPair(t *testing.T) {
	h := newHarness(t, wire.Options{})
	h.feed(wire.ToServer, msg(1, 0, 1<<7|flagMoreToCome, []byte{7}))
	if h.s.Quiet() {
		t.Error("a request with unknown flags awaits a reply")
	}
	h.feed(wire.ToClient, msg(2, 1, 1<<7|flagMoreToCome, []byte{7}))
	if !h.s.Quiet() {
		t.Error("a reply with unknown flags is the last")
	}
	if all := h.end(); len(all) != 1 || !all[0].Answered || all[0].OK || len(h.troubles) != 2 {
		t.Errorf("%+v, %v", all, h.troubles)
	}
}

func TestSession_StreamCutInAMessage(t *testing.T) {
	m := insert(t, 1)
	for n := 1; n < len(m); n++ {
		h := newHarness(t, wire.Options{})
		h.feed(wire.ToServer, m[:n])
		if h.s.Quiet() {
			t.Fatalf("quiet after %d bytes of a message", n)
		}
		all := h.end()
		if (len(all) == 1) != (n >= 20) || len(h.troubles) > 0 {
			t.Fatalf("after %d bytes: %d exchanges, %v", n, len(all), h.troubles)
		}
		if n > 100 && (all[0].Operation != "insert" || all[0].Collection != "orders" || all[0].Answered) {
			t.Fatalf("after %d bytes: %s", n, said(all[0]))
		}
	}
}

// Nothing of documents, filters, users or comments may get into an exchange.
func TestSession_KeepsNoContents(t *testing.T) {
	const secret = "s3cret"
	hidden := bson.D{{Key: secret, Value: secret}}
	requests := []bson.D{
		{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{hidden}}, {Key: "comment", Value: secret}, {Key: "$db", Value: "d"}},
		{{Key: "find", Value: "c"}, {Key: "filter", Value: hidden}, {Key: "comment", Value: hidden}, {Key: "$db", Value: "d"}},
		{{Key: "createUser", Value: secret}, {Key: "pwd", Value: secret}, {Key: "$db", Value: "d"}},
		{{Key: "saslStart", Value: 1}, {Key: "payload", Value: []byte(secret)}, {Key: "$db", Value: "d"}},
		{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$match", Value: hidden}}}}, {Key: "$db", Value: "d"}},
	}
	reply := bson.D{{Key: "value", Value: hidden}, {Key: "errmsg", Value: secret}, {Key: "writeErrors", Value: bson.A{
		bson.D{{Key: "code", Value: 11000}, {Key: "keyValue", Value: hidden}, {Key: "errmsg", Value: secret}}}}, {Key: "ok", Value: 1}}
	for _, d := range requests {
		x, _ := exchange(t, msg(1, 0, 0, kind0(doc(t, d))), msg(2, 1, 0, kind0(doc(t, reply))))
		if s := fmt.Sprintf("%+v", x); strings.Contains(s, secret) {
			t.Errorf("%s keeps contents: %s", d[0].Key, s)
		}
	}
}
