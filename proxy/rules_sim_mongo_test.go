package proxy

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// mongoForm is how an OP_MSG comes.
type mongoForm uint8

const (
	formPlain mongoForm = iota
	formChecksum
	formNoop
	formSnappy
)

// mongoWire makes a message: OP_MSG (2013), alone or within OP_COMPRESSED (2012).
func mongoWire(form mongoForm, id, to int32, flags uint32, doc bson.D) []byte {
	raw, err := bson.Marshal(doc)
	if err != nil {
		panic(err)
	}
	if form == formChecksum {
		flags |= 1
	}
	body := append(binary.LittleEndian.AppendUint32(nil, flags), 0)
	body = append(body, raw...)
	op := int32(2013)
	if form >= formNoop {
		head := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 2013), uint32(len(body)))
		if op = 2012; form == formNoop {
			body = append(append(head, 0), body...)
		} else {
			body = append(append(head, 1), snappy.Encode(nil, body)...)
		}
	}
	n := 16 + len(body)
	if form == formChecksum {
		n += 4
	}
	var m []byte
	for _, v := range []int32{int32(n), id, to, op} {
		m = binary.LittleEndian.AppendUint32(m, uint32(v))
	}
	if m = append(m, body...); form == formChecksum {
		m = binary.LittleEndian.AppendUint32(m, crc32.Checksum(m, crc32.MakeTable(crc32.Castagnoli)))
	}
	return m
}

// mongoRead takes a message apart again.
func mongoRead(t *testing.T, m []byte) (form mongoForm, to int32, flags uint32, doc bson.Raw) {
	t.Helper()
	to = int32(binary.LittleEndian.Uint32(m[8:]))
	body := m[16:]
	if binary.LittleEndian.Uint32(m[12:]) == 2012 {
		if form = formNoop; body[8] == 1 {
			form = formSnappy
			var err error
			if body, err = snappy.Decode(nil, body[9:]); err != nil {
				t.Fatal(err)
			}
		} else {
			body = body[9:]
		}
	}
	if flags = binary.LittleEndian.Uint32(body); flags&1 != 0 {
		form = formChecksum
		sum := binary.LittleEndian.Uint32(m[len(m)-4:])
		if sum != crc32.Checksum(m[:len(m)-4], crc32.MakeTable(crc32.Castagnoli)) {
			t.Fatal("a wrong checksum")
		}
		body = body[:len(body)-4]
	}
	if doc = bson.Raw(body[5:]); body[4] != 0 || doc.Validate() != nil {
		t.Fatalf("not a reply: %x", body)
	}
	return form, to, flags, doc
}

// mongoMessages cuts a stream into messages.
type mongoMessages struct{ left []byte }

func (m *mongoMessages) feed(b []byte, each func([]byte)) {
	m.left = append(m.left, b...)
	for len(m.left) >= 4 {
		n := int(binary.LittleEndian.Uint32(m.left))
		if len(m.left) < n {
			return
		}
		each(m.left[:n])
		m.left = m.left[n:]
	}
}

// asked is a request of the client's and what has become of it.
type asked struct {
	form    mongoForm
	bytes   []byte
	command string
	noReply bool
	reached bool // the server
	reply   []byte
}

// playMongoRules: what passes is intact, replies come in the order of their
// requests, in their form, and those that were made up are well formed.
func playMongoRules(t *testing.T, script []byte) map[string]*ruleCount {
	t.Helper()
	d := newDice(script)
	insert := inject.When{Command: []string{"insert"}, Collection: []string{"orders"}}
	rules := []inject.Rule{
		{Name: "a", Effect: inject.EffectRefuse, When: insert, With: inject.With{Code: "10107"}, Limit: inject.Limit{Probability: 0.3}},
		{Name: "b", Effect: inject.EffectFailReply, When: insert, With: inject.With{Code: "64", WriteConcernError: true}, Limit: inject.Limit{Probability: 0.3}},
		{Name: "c", Effect: inject.EffectFailReply, When: inject.When{Command: []string{"find"}}, With: inject.With{Code: "112"}, Limit: inject.Limit{Probability: 0.3}},
		{Name: "d", Effect: inject.EffectHold, When: insert, Limit: inject.Limit{Nth: 5}},
		{Name: "e", Effect: inject.EffectLatency, When: inject.When{Command: []string{"find"}}, With: inject.With{Delay: 30}},
		{Name: "f", Effect: inject.EffectSlicer, When: inject.When{Direction: inject.OnlyToClient}, With: inject.With{Size: 200, Variation: 100, Delay: 1}},
	}
	if d.one(4) {
		rules = append(rules, inject.Rule{Name: "g", Effect: inject.EffectLoseReply, When: insert, Limit: inject.Limit{Nth: uint64(1 + d.n(5))}})
	}
	s := newSim(t, d, wire.MongoDB, rules)
	var all []*asked
	for range 1 + d.n(30) {
		a := &asked{form: mongoForm(d.n(4)), command: []string{"insert", "find", "ping"}[d.n(3)]}
		doc := bson.D{{Key: a.command, Value: "orders"}, {Key: "$db", Value: "shop"}, {Key: "pad", Value: make([]byte, d.bulk(80_000))}}
		var flags uint32
		if a.noReply = a.command == "insert" && d.one(4); a.noReply {
			flags = 2 // moreToCome
		}
		a.bytes = mongoWire(a.form, int32(len(all)), 0, flags, doc)
		all = append(all, a)
		s.in[wire.ToServer] = append(s.in[wire.ToServer], a.bytes...)
	}
	server, client := &mongoMessages{}, &mongoMessages{}
	at := 0
	s.got[wire.ToServer] = func(b []byte) {
		server.feed(b, func(m []byte) {
			for at < len(all) && !bytes.Equal(m, all[at].bytes) {
				at++ // it was refused
			}
			if at == len(all) {
				t.Fatalf("the server got what nobody sent, or in another order: %d bytes", len(m))
			}
			a := all[at]
			a.reached = true
			if !a.noReply {
				ok := 1.0
				if d.one(6) {
					ok = 0
				}
				a.reply = mongoWire(a.form, 1000+int32(at), int32(at), 0, bson.D{{Key: "n", Value: int32(1)}, {Key: "ok", Value: ok}, {Key: "pad", Value: make([]byte, d.size(80_000))}})
				s.in[wire.ToClient] = append(s.in[wire.ToClient], a.reply...)
			}
			at++
		})
	}
	heard := -1
	s.got[wire.ToClient] = func(b []byte) {
		client.feed(b, func(m []byte) {
			form, to, _, doc := mongoRead(t, m)
			if int(to) <= heard || int(to) >= len(all) || all[to].noReply {
				t.Fatalf("a reply to %d after one to %d", to, heard)
			}
			for _, a := range all[heard+1 : to] {
				if !a.noReply {
					t.Fatalf("the reply to %d comes before an earlier one", to)
				}
			}
			heard = int(to)
			a := all[to]
			text, failed := doc.Lookup("errmsg").StringValueOK()
			switch {
			case form != a.form:
				t.Fatalf("a request in form %d is answered in form %d", a.form, form)
			case a.reached == strings.Contains(text, "rule a"):
				t.Fatalf("reached %v, and answered %s", a.reached, doc)
			case bytes.Equal(m, a.reply):
			case !failed && doc.Lookup("writeConcernError").Type == 0:
				t.Fatalf("the reply to %d is not the server's: %s", to, doc)
			}
		})
	}
	s.run()
	if !s.over {
		if i := slices.IndexFunc(all[heard+1:], func(a *asked) bool { return !a.noReply }); i >= 0 {
			t.Errorf("%d is not answered", heard+1+i)
		}
		if len(s.xs) != len(all) {
			t.Errorf("%d exchanges of %d", len(s.xs), len(all))
		}
	}
	s.finish()
	return s.hits
}

func TestRules_MongoStaysInStep(t *testing.T) { playSeeds(t, "abcdefg", playMongoRules) }

func FuzzMongoRules(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("in step, whatever is refused"))
	f.Fuzz(func(t *testing.T, script []byte) { playMongoRules(t, script) })
}
