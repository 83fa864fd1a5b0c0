package mongod

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"io"
	"net"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func start(t testing.TB, o Options) *Server {
	t.Helper()
	m, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Stop)
	return m
}

func rawMessage(op int32, parts ...[]byte) []byte {
	body := bytes.Join(parts, nil)
	b := binary.LittleEndian.AppendUint32(nil, uint32(headerLen+len(body)))
	b = binary.LittleEndian.AppendUint32(b, 41)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(op))
	return append(b, body...)
}

func le32(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }

func doc(t testing.TB, d bson.D) []byte {
	t.Helper()
	raw, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func section0(t testing.TB, d bson.D) []byte { return append([]byte{0}, doc(t, d)...) }

var pingCommand = bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}}

// exchange sends raw bytes and returns the whole reply, nil if the peer closed.
func exchange(t *testing.T, m *Server, b []byte) []byte {
	t.Helper()
	c, err := net.Dial("tcp", m.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
	head := make([]byte, headerLen)
	if _, err := io.ReadFull(c, head); err != nil {
		return nil
	}
	reply := make([]byte, binary.LittleEndian.Uint32(head))
	copy(reply, head)
	if _, err := io.ReadFull(c, reply[headerLen:]); err != nil {
		t.Fatal(err)
	}
	return reply
}

func TestMongo_ChecksumIsCheckedAndAnswered(t *testing.T) {
	m := start(t, Options{})
	b := rawMessage(opMsg, le32(flagChecksum), section0(t, pingCommand), le32(0))
	end := len(b) - 4
	binary.LittleEndian.PutUint32(b[end:], crc32.Checksum(b[:end], castagnoli))
	reply := exchange(t, m, b)
	if reply == nil {
		t.Fatal("closed, want a reply")
	}
	if flags := binary.LittleEndian.Uint32(reply[16:]); flags != flagChecksum {
		t.Errorf("reply's flags %#x, want a checksum", flags)
	}
	end = len(reply) - 4
	if got, want := binary.LittleEndian.Uint32(reply[end:]), crc32.Checksum(reply[:end], castagnoli); got != want {
		t.Errorf("reply's checksum %#x, want %#x", got, want)
	}
	if to := binary.LittleEndian.Uint32(reply[8:]); to != 41 {
		t.Errorf("responseTo %d, want 41", to)
	}

	b[len(b)-1]++
	if reply := exchange(t, m, b); reply != nil {
		t.Error("a wrong checksum was answered, want the connection closed")
	}
}

func TestMongo_MalformedRequestsEndTheConnection(t *testing.T) {
	m := start(t, Options{})
	body := section0(t, pingCommand)
	for name, b := range map[string][]byte{
		"length below a header": append(le32(15), make([]byte, 12)...),
		"length above 48 MB":    append(le32(48_000_001), make([]byte, 12)...),
		"unknown opcode":        rawMessage(2004+100, body),
		"unknown required flag": rawMessage(opMsg, le32(4), body),
		"unknown section":       rawMessage(opMsg, le32(0), body, []byte{7, 5, 0, 0, 0, 0}),
		"two bodies":            rawMessage(opMsg, le32(0), body, body),
		"no body":               rawMessage(opMsg, le32(0)),
		"sequence without name": rawMessage(opMsg, le32(0), body, []byte{1, 5, 0, 0, 0, 'x'}),
		"nested compression":    rawMessage(opCompressed, le32(opCompressed), le32(0), []byte{1, 0}),
		"unknown compressor":    rawMessage(opCompressed, le32(opMsg), le32(9), []byte{9, 0}),
		"bomb":                  rawMessage(opCompressed, le32(opMsg), le32(1<<31-1), []byte{1, 0}),
		"OP_QUERY on no $cmd":   rawMessage(opQuery, le32(0), []byte("a.b\x00"), le32(0), le32(1), doc(t, pingCommand)),
	} {
		t.Run(name, func(t *testing.T) {
			if reply := exchange(t, m, b); reply != nil {
				t.Error("answered, want the connection closed")
			}
		})
	}
	if exchange(t, m, rawMessage(opMsg, le32(0), body)) == nil {
		t.Error("the peer doesn't answer any more")
	}
}

func TestMongo_LegacyQueryTakesHelloOnly(t *testing.T) {
	m := start(t, Options{})
	query := func(d bson.D) bson.Raw {
		reply := exchange(t, m, rawMessage(opQuery, le32(0), []byte("admin.$cmd\x00"), le32(0), le32(0xffffffff), doc(t, d)))
		if reply == nil || binary.LittleEndian.Uint32(reply[12:]) != opReply {
			t.Fatalf("%v: no OP_REPLY", d)
		}
		return bson.Raw(reply[36:])
	}
	hello := query(bson.D{{Key: "isMaster", Value: 1}, {Key: "helloOk", Value: true}})
	for _, field := range []string{"ismaster", "helloOk"} {
		if v, _ := hello.Lookup(field).BooleanOK(); !v {
			t.Errorf("%s is missing in %v", field, hello)
		}
	}
	for _, absent := range []string{"topologyVersion", "setName", "$clusterTime"} {
		if _, err := hello.LookupErr(absent); err == nil {
			t.Errorf("a standalone peer's hello has %s", absent)
		}
	}
	if code, _ := query(bson.D{{Key: "ping", Value: 1}}).Lookup("code").AsInt64OK(); code != 352 {
		t.Errorf("ping by OP_QUERY: code %d, want 352", code)
	}
}

// A set's member says when each write was: in opTime, operationTime and
// $clusterTime, in step.
func TestMongo_RepliesOfASetsMemberCarryTimes(t *testing.T) {
	m := start(t, Options{SetName: "rs0"})
	var last bson.Timestamp
	for i := range 3 {
		reply := exchange(t, m, rawMessage(opMsg, le32(0), section0(t, bson.D{
			{Key: "insert", Value: "c"}, {Key: "$db", Value: "d"},
			{Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: i}}}},
		})))
		if reply == nil {
			t.Fatal("no reply")
		}
		var got struct {
			N      int
			OpTime struct {
				TS bson.Timestamp `bson:"ts"`
				T  int64          `bson:"t"`
			} `bson:"opTime"`
			ElectionID    bson.ObjectID  `bson:"electionId"`
			OperationTime bson.Timestamp `bson:"operationTime"`
			ClusterTime   struct {
				ClusterTime bson.Timestamp `bson:"clusterTime"`
			} `bson:"$clusterTime"`
		}
		if err := bson.Unmarshal(reply[21:], &got); err != nil {
			t.Fatal(err)
		}
		if got.N != 1 || !got.OpTime.TS.After(last) || got.OpTime.T != 1 {
			t.Errorf("write %d: %+v, last %v", i, got, last)
		}
		if got.OperationTime != got.OpTime.TS || got.ClusterTime.ClusterTime != got.OpTime.TS {
			t.Errorf("write %d: times differ: %+v", i, got)
		}
		if got.ElectionID.Hex() != "7fffffff0000000000000001" {
			t.Errorf("electionId %s", got.ElectionID.Hex())
		}
		last = got.OpTime.TS
	}
}

// A retry of a write whose acknowledgement got lost has the first one's outcome.
func TestMongo_RetriedWriteIsDoneOnce(t *testing.T) {
	m := start(t, Options{SetName: "rs0"})
	lsid := bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: make([]byte, 16)}}}
	send := func(number int64) bson.Raw {
		reply := exchange(t, m, rawMessage(opMsg, le32(0), section0(t, bson.D{
			{Key: "update", Value: "c"}, {Key: "$db", Value: "d"}, {Key: "lsid", Value: lsid}, {Key: "txnNumber", Value: number},
			{Key: "updates", Value: bson.A{bson.D{
				{Key: "q", Value: bson.D{{Key: "_id", Value: 1}}},
				{Key: "u", Value: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}},
				{Key: "upsert", Value: true},
			}}},
		})))
		if reply == nil {
			t.Fatal("no reply")
		}
		return bson.Raw(reply[21:])
	}
	count := func() int64 {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.data["d.c"].docs[0].Lookup("n").AsInt64()
	}
	first, again := send(7), send(7)
	if !first.Lookup("upserted").Equal(again.Lookup("upserted")) || !first.Lookup("opTime").Equal(again.Lookup("opTime")) {
		t.Errorf("retry answered %v, first %v", again, first)
	}
	if count() != 1 {
		t.Errorf("n = %d after a retry, want 1", count())
	}
	if send(8); count() != 2 {
		t.Errorf("n = %d after another write, want 2", count())
	}
	if code, _ := send(7).Lookup("code").AsInt64OK(); code != 225 {
		t.Errorf("an old number got code %d, want 225", code)
	}
}

func FuzzMongoPeer(f *testing.F) {
	add := func(d bson.D) { f.Add(rawMessage(opMsg, le32(0), section0(f, d))) }
	add(pingCommand)
	add(bson.D{{Key: "hello", Value: 1}, {Key: "compression", Value: bson.A{"snappy"}}, {Key: "$db", Value: "admin"}})
	where := bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: bson.A{1, "a"}}}}, {Key: "n", Value: bson.D{{Key: "$gt", Value: 1.5}}}}
	add(bson.D{{Key: "find", Value: "c"}, {Key: "$db", Value: "d"}, {Key: "filter", Value: where}, {Key: "sort", Value: bson.D{{Key: "n", Value: -1}}}})
	add(bson.D{{Key: "update", Value: "c"}, {Key: "$db", Value: "d"}, {Key: "updates", Value: bson.A{bson.D{
		{Key: "q", Value: bson.D{}}, {Key: "u", Value: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}}, {Key: "upsert", Value: true}}}}})
	add(bson.D{{Key: "aggregate", Value: "c"}, {Key: "$db", Value: "d"}, {Key: "pipeline", Value: bson.A{
		bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: 1}, {Key: "n", Value: bson.D{{Key: "$sum", Value: 1}}}}}}}}})
	add(bson.D{{Key: "findAndModify", Value: "c"}, {Key: "$db", Value: "d"}, {Key: "remove", Value: true}, {Key: "sort", Value: bson.D{{Key: "n", Value: 1}}}})
	f.Add(rawMessage(opMsg, le32(0), section0(f, bson.D{{Key: "insert", Value: "c"}, {Key: "$db", Value: "d"}}),
		[]byte{1}, le32(uint32(14+len(doc(f, pingCommand)))), []byte("documents\x00"), doc(f, pingCommand)))
	f.Add(rawMessage(opQuery, le32(0), []byte("admin.$cmd\x00"), le32(0), le32(1), doc(f, pingCommand)))
	f.Add(rawMessage(opCompressed, le32(opMsg), le32(5), []byte{1, 5, 16, 0, 0, 0, 0, 0}))
	m := start(f, Options{SetName: "rs0"})
	f.Fuzz(func(t *testing.T, b []byte) {
		m.data, m.cursors, m.sessions = store{}, newCursors(), sessions{}
		m.set.oplog = m.set.oplog[:1]
		msg, err := m.codec.read(bufio.NewReader(bytes.NewReader(b)))
		if err != nil {
			return
		}
		q, err := newRequest(msg, &connection{Conn: nowhere{}, ctx: context.Background()})
		if err != nil || q.int64("maxTimeMS") > 10 || q.int64("maxAwaitTimeMS") > 10 || len(b) > 1<<16 {
			return
		}
		m.answer(q) // the second time a write meets its own document
		reply, _ := m.answer(q)
		raw, err := bson.Marshal(reply)
		if err != nil {
			t.Fatalf("a reply that is no document: %v", err)
		}
		out, _, err := m.codec.encode(q.message.reply(false), raw)
		if err == nil && len(out) != int(binary.LittleEndian.Uint32(out)) {
			t.Errorf("a reply of %d bytes says %d", len(out), binary.LittleEndian.Uint32(out))
		}
	})
}

// nowhere is a connection with an address and nothing else.
type nowhere struct{ net.Conn }

func (nowhere) RemoteAddr() net.Addr { return &net.TCPAddr{} }
