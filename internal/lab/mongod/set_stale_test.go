package mongod

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// talkTo sends a command by OP_MSG and returns the reply; nil: the server closed
// the connection instead.
func talkTo(t *testing.T, addr string, flags uint32, command bson.D) bson.Raw {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(rawMessage(opMsg, le32(flags), section0(t, command))); err != nil {
		t.Fatal(err)
	}
	codec, err := newCodec()
	if err != nil {
		t.Fatal(err)
	}
	defer codec.close()
	m, err := codec.read(bufio.NewReader(c))
	if err != nil {
		return nil
	}
	return m.body
}

// A member that isn't primary says so in the way in which drivers look for: by a
// code with a label and a topologyVersion, or, where no reply is wanted, by the
// end of the connection.
func TestSet_SecondaryRefusesWrites(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	set, err := StartSet(ctx, SetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	b := set.Member("b")
	insert := bson.D{{Key: "insert", Value: "c"}, {Key: "$db", Value: "d"}, {Key: "documents", Value: bson.A{bson.D{}}}}
	retryable := append(insert[:3:3], bson.E{Key: "txnNumber", Value: int64(1)},
		bson.E{Key: "lsid", Value: bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: bytes.Repeat([]byte{7}, 16)}}}})
	for _, tt := range []struct {
		command bson.D
		labels  bool
	}{{insert, false}, {retryable, true}} {
		reply := talkTo(t, b.Addr(), 0, tt.command)
		code, _ := reply.Lookup("code").AsInt64OK()
		_, noVersion := reply.LookupErr("topologyVersion", "counter")
		_, noLabel := reply.LookupErr("errorLabels", "0")
		if code != codeNotWritablePrimary || noVersion != nil || (noLabel == nil) != tt.labels {
			t.Errorf("a secondary's reply to a write is %v", reply)
		}
	}
	if reply := talkTo(t, b.Addr(), flagMoreToCome, insert); reply != nil {
		t.Errorf("a write that wants no reply got %v", reply)
	}
	read := bson.D{{Key: "find", Value: "c"}, {Key: "$db", Value: "d"}}
	if code, _ := talkTo(t, b.Addr(), 0, read).Lookup("code").AsInt64OK(); code != codeNotSecondaryOk {
		t.Errorf("a read without a preference got code %d, want %d", code, codeNotSecondaryOk)
	}
	if code, _ := talkTo(t, b.Addr(), 0, append(read[:2:2], bson.E{Key: "readConcern", Value: bson.D{{Key: "level", Value: "majority"}}})).Lookup("code").AsInt64OK(); code != 238 {
		t.Errorf("read concern majority got code %d, want 238", code)
	}
}

// A port is the member's while it doesn't run, and refuses.
func TestPorts_RefuseUntilTheMemberRuns(t *testing.T) {
	p, err := ReservePorts(20)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	seen := map[string]bool{}
	for i := range p.Len() {
		if seen[p.Addr(i)] {
			t.Fatalf("%s was given twice", p.Addr(i))
		}
		seen[p.Addr(i)] = true
		if c, err := net.Dial("tcp", p.Addr(i)); err == nil {
			c.Close()
			t.Errorf("%s answers", p.Addr(i))
		}
		for range 2 { // as a member that is stopped and started again
			l, err := p.listen(i)
			if err != nil {
				t.Fatal(err)
			}
			c, err := net.Dial("tcp", p.Addr(i))
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
			l.Close()
		}
	}
}
