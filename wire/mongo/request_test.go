package mongo

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/wire"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func ofCommand(t *testing.T, d bson.D, more ...[]byte) wire.Exchange {
	t.Helper()
	x, troubles := exchange(t, msg(1, 0, 0, append([][]byte{kind0(doc(t, d))}, more...)...), nil)
	if len(troubles) > 0 {
		t.Errorf("%v: troubles %v", d, troubles)
	}
	return x
}

func TestRequest_WhatIsAWrite(t *testing.T) {
	w1 := bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 1}}}
	stage := func(key string) bson.D { return bson.D{{Key: key, Value: "x"}} }
	pipeline := func(stages ...any) bson.E { return bson.E{Key: "pipeline", Value: bson.A(stages)} }
	match := bson.D{{Key: "$match", Value: bson.D{{Key: "$out", Value: 1}}}}
	for _, c := range []struct {
		d     bson.D
		basis string
	}{
		{bson.D{{Key: "insert", Value: "c"}}, "command"},
		{bson.D{{Key: "findandmodify", Value: "c"}, w1}, "command"},
		{bson.D{{Key: "commitTransaction", Value: 1}}, "command"},
		{bson.D{{Key: "dropDatabase", Value: 1}}, "command"},
		{bson.D{{Key: "find", Value: "c"}}, ""},
		{bson.D{{Key: "createUser", Value: "joe"}, w1}, "write_concern"},
		{bson.D{{Key: "createUser", Value: "joe"}}, ""},
		{bson.D{{Key: "getlasterror", Value: 1}, w1}, ""},
		{bson.D{{Key: "aggregate", Value: "c"}, pipeline(match, stage("$out"))}, "command"},
		{bson.D{{Key: "aggregate", Value: "c"}, pipeline(stage("$merge"))}, "command"},
		{bson.D{{Key: "aggregate", Value: "c"}, pipeline(stage("$merge")), {Key: "explain", Value: true}}, ""},
		{bson.D{{Key: "aggregate", Value: "c"}, pipeline(match)}, ""},
		{bson.D{{Key: "aggregate", Value: "c"}, pipeline(match), w1}, "write_concern"},
		{bson.D{{Key: "mapReduce", Value: "c"}, {Key: "out", Value: "d"}}, "command"},
		{bson.D{{Key: "mapReduce", Value: "c"}, {Key: "out", Value: bson.D{{Key: "replace", Value: "d"}}}}, "command"},
		{bson.D{{Key: "mapReduce", Value: "c"}, {Key: "out", Value: bson.D{{Key: "inline", Value: 1}}}}, ""},
	} {
		x := ofCommand(t, c.d)
		if x.WriteBasis != c.basis || x.Write != (c.basis != "") {
			t.Errorf("%v: write %v by %q, want %q", c.d, x.Write, x.WriteBasis, c.basis)
		}
	}
}

func TestRequest_Collection(t *testing.T) {
	for _, c := range []struct {
		d    bson.D
		want string
	}{
		{bson.D{{Key: "update", Value: "orders"}}, "orders"},
		{bson.D{{Key: "aggregate", Value: 1}}, ""},
		{bson.D{{Key: "getMore", Value: int64(5)}, {Key: "collection", Value: "orders"}}, "orders"},
		{bson.D{{Key: "bulkWrite", Value: 1}}, ""},
		{bson.D{{Key: "createUser", Value: "secret"}}, ""},
		{bson.D{{Key: "find", Value: "a.b"}, {Key: "collection", Value: "no"}}, "a.b"},
	} {
		if x := ofCommand(t, c.d); x.Collection != c.want {
			t.Errorf("%v: collection %q, want %q", c.d, x.Collection, c.want)
		}
	}
}

func TestRequest_Batch(t *testing.T) {
	one := doc(t, bson.D{{Key: "a", Value: 1}})
	for name, c := range map[string]struct {
		d    bson.D
		more []byte
		want int
	}{
		"sequence": {bson.D{{Key: "insert", Value: "c"}}, kind1("documents", one, one, one), 3},
		"body":     {bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.D{}, bson.D{}}}}, nil, 2},
		"deletes":  {bson.D{{Key: "delete", Value: "c"}}, kind1("deletes", one), 1},
		"bulk": {bson.D{{Key: "bulkWrite", Value: 1}},
			cat(kind1("ops", one, one), kind1("nsInfo", one)), 2},
		"neither": {bson.D{{Key: "findAndModify", Value: "c"}}, nil, 0},
	} {
		var more [][]byte
		if c.more != nil {
			more = append(more, c.more)
		}
		if x := ofCommand(t, c.d, more...); x.Batch != c.want {
			t.Errorf("%s: batch %d, want %d", name, x.Batch, c.want)
		}
	}
}

func TestRequest_WriteConcern(t *testing.T) {
	for _, c := range []struct {
		wc       bson.D
		w, j     string
		wtimeout time.Duration
	}{
		{bson.D{{Key: "w", Value: "majority"}, {Key: "j", Value: true}}, "majority", "true", 0},
		{bson.D{{Key: "w", Value: 2}, {Key: "wtimeout", Value: 500}}, "2", "", 500 * time.Millisecond},
		{bson.D{{Key: "w", Value: int64(3)}, {Key: "wtimeout", Value: int64(1)}}, "3", "", time.Millisecond},
		{bson.D{{Key: "w", Value: 1.0}, {Key: "j", Value: 0}}, "1", "false", 0},
		{bson.D{{Key: "w", Value: bson.D{{Key: "dc", Value: 2}}}}, "{...}", "", 0},
		{bson.D{{Key: "w", Value: "dc-east"}}, "dc-east", "", 0},
		{bson.D{}, "", "", 0},
	} {
		x := ofCommand(t, bson.D{{Key: "insert", Value: "c"}, {Key: "writeConcern", Value: c.wc}})
		got := x.Mongo.WriteConcern
		if got.W != c.w || got.J != c.j || got.WTimeout != c.wtimeout || got.Source != "command" {
			t.Errorf("%v read as %+v", c.wc, got)
		}
		if string(got.Raw) != string(doc(t, c.wc)) {
			t.Errorf("%v kept as %x", c.wc, got.Raw)
		}
	}
}

func TestRequest_WhereTheConcernComesFrom(t *testing.T) {
	wc := bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}}
	inTxn := bson.E{Key: "autocommit", Value: false}
	for _, c := range []struct {
		d    bson.D
		want string
	}{
		{bson.D{{Key: "insert", Value: "c"}}, "assumed"},
		{bson.D{{Key: "insert", Value: "c"}, inTxn}, "transaction"},
		{bson.D{{Key: "commitTransaction", Value: 1}, inTxn, wc}, "transaction"},
		{bson.D{{Key: "commitTransaction", Value: 1}, inTxn}, "assumed"},
		{bson.D{{Key: "find", Value: "c"}}, ""},
	} {
		x := ofCommand(t, c.d)
		if got := x.Mongo.WriteConcern.Source; got != c.want {
			t.Errorf("%v: source %q, want %q", c.d, got, c.want)
		}
	}
}

func TestRequest_SessionAndTransaction(t *testing.T) {
	id := []byte("0123456789abcdef")
	x := ofCommand(t, bson.D{{Key: "insert", Value: "c"},
		{Key: "lsid", Value: bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: id}}}},
		{Key: "txnNumber", Value: int64(42)}, {Key: "autocommit", Value: false}})
	if x.Mongo.LSID != wire.HexLSID(id) || !x.Mongo.HasTxnNumber || x.Mongo.TxnNumber != 42 || !x.Mongo.InTransaction {
		t.Errorf("read as %+v", x.Mongo)
	}
}

func TestRequest_Traceparent(t *testing.T) {
	other := "00-11111111111111111111111111111111-2222222222222222-00"
	insert := func(comment any) []byte {
		return kind0(doc(t, bson.D{{Key: "insert", Value: "c"}, {Key: "comment", Value: comment}}))
	}
	kind3 := func(tp string) []byte {
		return cat([]byte{3}, doc(t, bson.D{{Key: "otel", Value: bson.D{{Key: "traceparent", Value: tp}}}}))
	}
	plain := kind0(doc(t, bson.D{{Key: "insert", Value: "c"}}))
	for name, c := range map[string]struct {
		m    []byte
		want string
	}{
		"string":            {msg(1, 0, 0, insert(parent)), parent},
		"document":          {msg(1, 0, 0, insert(bson.D{{Key: "a", Value: 1}, {Key: "traceparent", Value: parent}})), parent},
		"telemetry":         {msg(1, 0, 0, plain, kind3(parent)), parent},
		"telemetry first":   {msg(1, 0, 0, kind3(other), insert(parent)), parent},
		"comment first":     {msg(1, 0, 0, insert(parent), kind3(other)), parent},
		"some other text":   {msg(1, 0, 0, insert("hello")), ""},
		"upper case":        {msg(1, 0, 0, insert("00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01")), ""},
		"version":           {msg(1, 0, 0, insert("01"+parent[2:])), ""},
		"zero trace":        {msg(1, 0, 0, insert("00-00000000000000000000000000000000-b7ad6b7169203331-01")), ""},
		"zero span":         {msg(1, 0, 0, insert("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01")), ""},
		"longer":            {msg(1, 0, 0, insert(parent+"0")), ""},
		"wrong punctuation": {msg(1, 0, 0, insert(parent[:35]+"_"+parent[36:])), ""},
	} {
		if x, _ := exchange(t, c.m, nil); x.Traceparent != c.want {
			t.Errorf("%s: traceparent %q, want %q", name, x.Traceparent, c.want)
		}
	}
}

func TestRequest_HelloIntroducesThePeer(t *testing.T) {
	hello := bson.D{{Key: "isMaster", Value: 1},
		{Key: "saslSupportedMechs", Value: "admin.jo.e"},
		{Key: "client", Value: bson.D{
			{Key: "application", Value: bson.D{{Key: "name", Value: "shop"}}},
			{Key: "driver", Value: bson.D{{Key: "name", Value: "mongo-go-driver"}, {Key: "version", Value: "2.10.0"}}}}}}
	h := newHarness(t, wire.Options{})
	h.feed(wire.ToServer, opQueryMsg(1, "admin.$cmd", doc(t, hello)))
	h.feed(wire.ToClient, opReplyMsg(5, 1, 8, doc(t, bson.D{{Key: "ismaster", Value: true}, {Key: "connectionId", Value: 77}, {Key: "ok", Value: 1.0}})))
	h.feed(wire.ToServer, insert(t, 2))
	h.feed(wire.ToClient, okReply(t, 6, 2))
	all := h.end()
	want := wire.Peer{User: "jo.e", Application: "shop", Driver: "mongo-go-driver 2.10.0", ServerConnectionID: 77}
	if len(all) != 2 || all[0].Peer == nil || *all[0].Peer != want || all[1].Peer == nil || *all[1].Peer != want {
		t.Fatalf("peers of %d exchanges: %+v", len(all), all)
	}
	if all[1].Peer != all[0].Peer {
		t.Error("the peer is not shared")
	}
	if !all[0].Mongo.Monitor || all[1].Mongo.Monitor || all[0].Operation != "isMaster" || !all[0].OK {
		t.Errorf("hello read as %s", said(all[0]))
	}
}

func TestRequest_WrappedQuery(t *testing.T) {
	q := doc(t, bson.D{{Key: "$query", Value: bson.D{{Key: "count", Value: "c"}, {Key: "query", Value: bson.D{}}}},
		{Key: "$readPreference", Value: bson.D{{Key: "mode", Value: "nearest"}}}})
	x, troubles := exchange(t, opQueryMsg(1, "db.$cmd", q), nil)
	if x.Operation != "count" || x.Collection != "c" || x.Database != "db" || len(troubles) > 0 {
		t.Errorf("read as %s, %v", said(x), troubles)
	}
}

func TestRequest_LegacyOpcodes(t *testing.T) {
	one := doc(t, bson.D{{Key: "a", Value: 1}})
	ns := cat(u32(0), []byte("db.c.d\x00"))
	for name, c := range map[string]struct {
		m       []byte
		op      string
		coll    string
		batch   int
		write   bool
		noReply bool
	}{
		"insert":       {message(1, 0, opInsert, ns, one, one), "OP_INSERT", "c.d", 2, true, true},
		"update":       {message(1, 0, opUpdate, ns, u32(0), one, one), "OP_UPDATE", "c.d", 1, true, true},
		"delete":       {message(1, 0, opDelete, ns, u32(0), one), "OP_DELETE", "c.d", 1, true, true},
		"get more":     {message(1, 0, opGetMore, ns, u32(2), u32(9), u32(0)), "OP_GET_MORE", "c.d", 0, false, false},
		"kill cursors": {message(1, 0, opKillCursors, u32(0), u32(1), u32(9), u32(0)), "OP_KILL_CURSORS", "", 0, false, true},
		"query":        {opQueryMsg(1, "db.c.d", one), "OP_QUERY", "c.d", 0, false, false},
		"message":      {message(1, 0, opMsgLegacy, []byte("hello\x00")), "OP_MSG_LEGACY", "", 0, false, true},
		"command": {message(1, 0, opCommand, []byte("db\x00insert\x00"), doc(t, bson.D{{Key: "insert", Value: "c.d"}}), doc(t, bson.D{})),
			"insert", "c.d", 0, true, false},
	} {
		x, troubles := exchange(t, c.m, nil)
		if x.Operation != c.op || x.Collection != c.coll || x.Batch != c.batch || x.Write != c.write || x.NoReply != c.noReply || len(troubles) > 0 {
			t.Errorf("%s: read as %s, troubles %v", name, said(x), troubles)
		}
		if c.coll != "" && x.Database != "db" {
			t.Errorf("%s: database %q", name, x.Database)
		}
	}
}
