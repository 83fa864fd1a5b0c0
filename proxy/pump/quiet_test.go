package pump

import (
	"testing"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// Whoever asks between Read and Sent must not take the connection for idle: to
// end it then would lose a reply that is being written.
func TestConn_IsNotQuietWhileItWritesOrHasAnEndToTell(t *testing.T) {
	c := newConn(newLineSession(), nil)
	set := &inject.Settings{}
	want := func(when string, quiet bool) {
		t.Helper()
		if c.Quiet() != quiet {
			t.Errorf("%s: quiet is %v", when, !quiet)
		}
	}
	want("at first", true)
	read(c, wire.ToServer, "ask\n", 1, set, 4)
	want("a reply is awaited", false)
	b := []byte("answer\n")
	r := c.Read(wire.ToClient, b, 2, set)
	if r.Direct != len(b) {
		t.Fatalf("%+v", r)
	}
	want("the reply is being written", false)
	c.Sent(wire.ToClient, b, len(b), 2)
	c.Decode(wire.ToClient, b)
	want("the reply is written", true)

	c.ReadEnd(wire.ToClient, inject.EndReset, 3, set)
	want("the end is in the line", false)
	if e := c.Ended(wire.ToClient, 3); e != inject.EndReset {
		t.Fatalf("end %d", e)
	}
	want("the end was told", true)

	c.ReadEnd(wire.ToServer, inject.EndEOF, 3, set)
	c.Fail(wire.ToServer)
	want("there is nobody to tell", true)
}
