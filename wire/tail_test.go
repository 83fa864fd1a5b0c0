package wire

import "testing"

// Two exchanges share a tail; each ends with it, whenever it is that the tail
// leaves, is adopted or is closed.
func TestTail_IsTheEndOfThoseThatAdoptIt(t *testing.T) {
	for _, early := range []bool{false, true} {
		o := NewOpen(Postgres)
		var got []*Exchange
		o.Emit = func(x *Exchange) bool { got = append(got, x); return true }
		a, b := o.New(), o.New()
		for i, x := range []*Exchange{a, b} {
			o.Count(x, ToServer, 10, Stamp(10+i))
			o.Mark(x, ToServer, int64(10*(i+1)))
			o.Count(x, ToClient, 5, Stamp(40+i))
			o.Mark(x, ToClient, int64(5*(i+1)))
		}
		tail := o.NewTail()
		o.MarkTail(tail, ToServer, 25, 20)
		o.MarkTail(tail, ToClient, 16, 50)
		leave := func() {
			o.Departed(ToServer, 25, 30)
			o.Departed(ToClient, 10, 55)
			o.Departed(ToClient, 16, 60)
		}
		if early {
			leave()
		}
		o.CompleteWith(a, tail)
		o.CompleteWith(b, tail)
		o.CloseTail(tail)
		if !early {
			if len(got) != 0 {
				t.Fatal("emitted before the tail left")
			}
			leave()
		}
		if len(got) != 2 || o.Len() != 0 {
			t.Fatalf("%d emitted, %d left", len(got), o.Len())
		}
		for i, x := range got {
			want := [2]Side{
				{Bytes: 10, FirstIn: Stamp(10 + i), LastIn: 20, LastOut: 30},
				{Bytes: 5, FirstIn: Stamp(40 + i), LastIn: 50, LastOut: 60},
			}
			if x.Sides != want {
				t.Errorf("early %v, exchange %d: %+v, want %+v", early, i, x.Sides, want)
			}
		}
		if again := o.NewTail(); again != tail || again.marks != 0 || again.closed {
			t.Error("the tail is not used again, clean")
		}
	}
}

func TestTail_ThatNeverLeaves(t *testing.T) {
	o := NewOpen(Postgres)
	n := 0
	o.Emit = func(x *Exchange) bool {
		n++
		if x.Sides[ToClient].LastOut != 0 {
			t.Errorf("%+v left", x.Sides[ToClient])
		}
		return true
	}
	x, tail := o.New(), o.NewTail()
	o.MarkTail(tail, ToClient, 6, 50)
	o.CompleteWith(x, tail)
	o.CloseTail(tail)
	o.Abandon(ToClient)
	if n != 1 || o.Len() != 0 {
		t.Errorf("%d emitted, %d left", n, o.Len())
	}
}

func TestDiscard_EmitsNothing(t *testing.T) {
	o := NewOpen(Postgres)
	o.Emit = func(*Exchange) bool { t.Error("emitted"); return true }
	x := o.New()
	o.Mark(x, ToServer, 5)
	o.Discard(x)
	if o.Len() != 1 {
		t.Error("given up before its bytes left")
	}
	o.Departed(ToServer, 5, 1)
	if o.Len() != 0 {
		t.Error("not given up")
	}
}
