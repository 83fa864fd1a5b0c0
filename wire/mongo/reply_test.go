package mongo

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/wire"
)

func ofReply(t *testing.T, d bson.D) wire.Exchange {
	t.Helper()
	x, troubles := exchange(t, insert(t, 1), msg(2, 1, 0, kind0(doc(t, d))))
	if len(troubles) > 0 {
		t.Errorf("%v: troubles %v", d, troubles)
	}
	return x
}

func TestReply_OK(t *testing.T) {
	for _, c := range []struct {
		ok   any
		want bool
	}{{1.0, true}, {1, true}, {int64(1), true}, {true, true}, {0.0, false}, {0, false}, {false, false}, {1.5, false}, {"1", false}} {
		if x := ofReply(t, bson.D{{Key: "ok", Value: c.ok}}); x.OK != c.want {
			t.Errorf("ok: %v (%T) read as %v", c.ok, c.ok, x.OK)
		}
	}
	if x := ofReply(t, bson.D{{Key: "n", Value: 1}}); x.OK {
		t.Error("a reply without ok is no success")
	}
}

func TestReply_Errors(t *testing.T) {
	dup := bson.D{{Key: "index", Value: 0}, {Key: "code", Value: 11000}, {Key: "errmsg", Value: "E11000"}}
	other := bson.D{{Key: "index", Value: 1}, {Key: "code", Value: 121}}
	x := ofReply(t, bson.D{{Key: "n", Value: 1}, {Key: "writeErrors", Value: bson.A{dup, other}}, {Key: "ok", Value: 1.0}})
	if !x.OK || x.ErrorCode != "11000" || x.Mongo.WriteErrors != 2 || x.Mongo.WriteErrCode != 11000 {
		t.Errorf("write errors read as %s", said(x))
	}
	x = ofReply(t, bson.D{{Key: "ok", Value: 0.0}, {Key: "errmsg", Value: "no"}, {Key: "code", Value: 13}})
	if x.OK || x.ErrorCode != "13" {
		t.Errorf("error read as %s", said(x))
	}
	x = ofReply(t, bson.D{{Key: "n", Value: 1}, {Key: "ok", Value: 1.0}, {Key: "writeConcernError", Value: bson.D{
		{Key: "code", Value: 64}, {Key: "errInfo", Value: bson.D{{Key: "wtimeout", Value: true}}}}}})
	if !x.OK || x.ErrorCode != "" || x.Mongo.ConcernError != 64 || x.Mongo.N != 1 {
		t.Errorf("concern error read as %s", said(x))
	}
}

func TestReply_Counts(t *testing.T) {
	for name, c := range map[string]struct {
		d           bson.D
		n, modified int64
	}{
		"update":        {bson.D{{Key: "n", Value: 3}, {Key: "nModified", Value: 2}, {Key: "ok", Value: 1}}, 3, 2},
		"none":          {bson.D{{Key: "ok", Value: 1}}, -1, -1},
		"findAndModify": {bson.D{{Key: "lastErrorObject", Value: bson.D{{Key: "n", Value: 1}}}, {Key: "value", Value: bson.D{{Key: "n", Value: 9}}}, {Key: "ok", Value: 1}}, 1, -1},
		"bulkWrite": {bson.D{{Key: "nErrors", Value: 0}, {Key: "nInserted", Value: 1}, {Key: "nMatched", Value: 2}, {Key: "nModified", Value: 1},
			{Key: "nUpserted", Value: 4}, {Key: "nDeleted", Value: 8}, {Key: "ok", Value: 1}}, 15, 1},
	} {
		x := ofReply(t, c.d)
		if x.Mongo.N != c.n || x.Mongo.NModified != c.modified {
			t.Errorf("%s: n %d, nModified %d, want %d, %d", name, x.Mongo.N, x.Mongo.NModified, c.n, c.modified)
		}
	}
	x := ofReply(t, bson.D{{Key: "nErrors", Value: 3}, {Key: "ok", Value: 1}})
	if x.Mongo.WriteErrors != 3 {
		t.Errorf("bulkWrite's errors read as %d", x.Mongo.WriteErrors)
	}
}

// The documents of a plain query are the user's: nothing in them is a verdict.
func TestReply_OfPlainQuery(t *testing.T) {
	looks := doc(t, bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 5}, {Key: "n", Value: 7}})
	failed := doc(t, bson.D{{Key: "$err", Value: "no"}, {Key: "code", Value: 13}})
	query := opQueryMsg(1, "db.c", doc(t, bson.D{}))
	for name, c := range map[string]struct {
		reply []byte
		ok    bool
		code  string
	}{
		"documents": {opReplyMsg(2, 1, 0, looks), true, ""},
		"nothing":   {opReplyMsg(2, 1, 0), true, ""},
		"failure":   {opReplyMsg(2, 1, replyQueryFailure, failed), false, "13"},
		"no cursor": {opReplyMsg(2, 1, replyCursorNotFound), false, ""},
	} {
		for _, replyFirst := range []bool{false, true} {
			h := newHarness(t, wire.Options{})
			h.frame(wire.ToServer, query)
			h.frame(wire.ToClient, c.reply)
			if replyFirst {
				h.decode(wire.ToClient)
			}
			h.decode(wire.ToServer)
			all := h.end()
			if len(all) != 1 || all[0].OK != c.ok || all[0].ErrorCode != c.code || all[0].Mongo.N != -1 {
				t.Errorf("%s, reply first %v: %+v", name, replyFirst, all)
			}
		}
	}
	x, _ := exchange(t, opQueryMsg(1, "db.$cmd", doc(t, bson.D{{Key: "ping", Value: 1}})), opReplyMsg(2, 1, 0, looks))
	if x.OK || x.ErrorCode != "5" || x.Mongo.N != 7 {
		t.Errorf("a command's reply read as %s", said(x))
	}
}
