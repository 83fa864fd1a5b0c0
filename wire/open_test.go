package wire

import (
	"testing"
	"time"
)

func TestOpen_EmitsOnceCompleteDecodedAndDeparted(t *testing.T) {
	// The three conditions may come true in any order.
	steps := map[string]func(*Open, *Exchange){
		"complete":         func(o *Open, x *Exchange) { o.Complete(x) },
		"decoded":          func(o *Open, x *Exchange) { o.Release(x) },
		"request departed": func(o *Open, x *Exchange) { o.Departed(ToServer, 10, 5) },
		"reply departed":   func(o *Open, x *Exchange) { o.Departed(ToClient, 20, 9) },
	}
	names := []string{"complete", "decoded", "request departed", "reply departed"}
	permute(names, func(order []string) {
		var got []*Exchange
		o := NewOpen(MongoDB)
		o.Emit = func(x *Exchange) bool { got = append(got, x); return true }
		x := o.New()
		o.Hold(x)
		o.Count(x, ToServer, 4, 1)
		o.Count(x, ToServer, 6, 2)
		o.Mark(x, ToServer, 10)
		o.Count(x, ToClient, 20, 7)
		o.Mark(x, ToClient, 20)
		for i, s := range order {
			if len(got) != 0 {
				t.Fatalf("%v: emitted after %d steps", order, i)
			}
			steps[s](o, x)
		}
		if len(got) != 1 || o.Len() != 0 {
			t.Fatalf("%v: emitted %d times, %d left", order, len(got), o.Len())
		}
		if s := got[0].Sides; s[ToServer].FirstIn != 1 || s[ToServer].LastIn != 2 || s[ToServer].LastOut != 5 ||
			s[ToServer].Bytes != 10 || s[ToClient].LastOut != 9 {
			t.Fatalf("%v: %+v", order, s)
		}
	})
}

func permute(s []string, f func([]string)) {
	var rec func(int)
	rec = func(k int) {
		if k == len(s) {
			f(s)
			return
		}
		for i := k; i < len(s); i++ {
			s[k], s[i] = s[i], s[k]
			rec(k + 1)
			s[k], s[i] = s[i], s[k]
		}
	}
	rec(0)
}

func TestOpen_LastOutIsOfTheLastByte(t *testing.T) {
	o := NewOpen(Postgres)
	var got *Exchange
	o.Emit = func(x *Exchange) bool { got = x; return true }
	x := o.New()
	o.Count(x, ToClient, 5, 1)
	o.Mark(x, ToClient, 5)
	o.Count(x, ToClient, 5, 1)
	o.Mark(x, ToClient, 10)
	o.Complete(x)
	o.Departed(ToClient, 9, 3)
	if got != nil {
		t.Fatal("emitted before its last byte left")
	}
	o.Departed(ToClient, 10, 4)
	if got == nil || got.Sides[ToClient].LastOut != 4 {
		t.Fatalf("%+v", got)
	}
}

func TestOpen_StallsCountWhileASideIsOpen(t *testing.T) {
	o := NewOpen(MongoDB)
	o.Stalled(ToClient, time.Second) // before: not ours
	x := o.New()
	o.Stalled(ToClient, 2*time.Second)
	o.Mark(x, ToClient, 1)
	o.Stalled(ToClient, 4*time.Second) // after its end
	if x.Sides[ToClient].Stalled != 2*time.Second || x.Sides[ToServer].Stalled != 0 {
		t.Fatalf("%+v", x.Sides)
	}
}

func TestOpen_AbandonedBytesLetGo(t *testing.T) {
	o := NewOpen(MongoDB)
	n := 0
	o.Emit = func(x *Exchange) bool { n++; return false }
	for range 3 {
		x := o.New()
		o.Mark(x, ToServer, 1)
		o.Complete(x)
	}
	o.Abandon(ToServer)
	if n != 3 || o.Len() != 0 {
		t.Fatalf("%d emitted, %d left", n, o.Len())
	}
}

func TestOpen_ReusesRecordsAndForgetsWhatTheyHeld(t *testing.T) {
	o := NewOpen(MongoDB)
	x := o.New()
	x.Operation, x.Mongo.WriteConcern.Raw, x.Write = "insert", []byte{1, 2}, true
	o.Complete(x)
	y := o.New()
	if x != y {
		t.Fatal("not reused")
	}
	if y.Operation != "" || len(y.Mongo.WriteConcern.Raw) != 0 || y.Write || y.Ordinal != 2 {
		t.Fatalf("%+v", y)
	}
	o.Complete(y)
	off := int64(0)
	if n := testing.AllocsPerRun(1000, func() {
		x := o.New()
		o.Hold(x)
		o.Count(x, ToServer, 10, 1)
		off += 10
		o.Mark(x, ToServer, off)
		o.Complete(x)
		o.Departed(ToServer, off, 2)
		o.Release(x)
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func TestOpen_TakesSparesAndForgetsWhatTheyHeld(t *testing.T) {
	o := NewOpen(MongoDB)
	var kept *Exchange
	o.Emit = func(x *Exchange) bool { kept = x; return true }
	o.Spare = func() *Exchange { x := kept; kept = nil; return x }
	x := o.New() // there was none
	x.Operation, x.Mongo.WriteConcern.Raw, x.Write = "insert", []byte{1, 2}, true
	o.Complete(x)
	y := o.New()
	if x != y {
		t.Fatal("the spare was not taken")
	}
	if y.Operation != "" || len(y.Mongo.WriteConcern.Raw) != 0 || y.Write || y.Ordinal != 2 || y.Protocol != MongoDB {
		t.Fatalf("%+v", y)
	}
	o.Complete(y)
	if kept != y || o.Len() != 0 {
		t.Fatalf("the spare was not emitted again: %d open", o.Len())
	}
}

func TestWriteConcern_Label(t *testing.T) {
	for want, w := range map[string]WriteConcern{
		"default":     {},
		"majority":    {W: "majority"},
		"majority j":  {W: "majority", J: "true"},
		"w:1":         {W: "1", J: "false"},
		"w:1 j":       {W: "1", J: "true"},
		"w:tag":       {W: "multiDC"},
		"w:default j": {J: "true"},
	} {
		if got := w.Label(); got != want {
			t.Errorf("%+v: %q, want %q", w, got, want)
		}
	}
}
