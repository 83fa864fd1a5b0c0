package trace

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/wirewait/wirewait/wire"
)

type consumerFunc func(*Finished)

func (f consumerFunc) Consume(x *Finished) { f(x) }

func TestTracer_HandsEachExchangeToEachConsumerInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got [2][]uint64
		conn := &Conn{Link: "app-a"}
		tr := New(100,
			consumerFunc(func(f *Finished) {
				if f.Conn != conn || f.Waits.Total == 0 {
					t.Errorf("exchange %d came without its connection or waits", f.Ordinal)
				}
				got[0] = append(got[0], f.Ordinal)
			}),
			consumerFunc(func(f *Finished) { got[1] = append(got[1], f.Ordinal) }))
		for i := range uint64(50) {
			x := exchange(10, 12, 52, 55, 56, 96)
			x.Ordinal = i
			if !tr.Offer(x, conn) {
				t.Fatalf("exchange %d found no room", i)
			}
		}
		tr.Close()
		for _, ordinals := range got {
			if len(ordinals) != 50 {
				t.Fatalf("a consumer got %d exchanges, want 50", len(ordinals))
			}
			for i, o := range ordinals {
				if o != uint64(i) {
					t.Fatalf("exchange %d came as number %d", o, i)
				}
			}
		}
	})
}

func TestTracer_HandlesWithoutBeingClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := make(chan uint64)
		tr := New(100, consumerFunc(func(f *Finished) { seen <- f.Ordinal }))
		defer tr.Close()
		for i := range uint64(3) {
			x := exchange(1, 2, 3)
			x.Ordinal = i
			tr.Offer(x, &Conn{})
			if o := <-seen; o != i {
				t.Fatalf("got exchange %d, want %d", o, i)
			}
		}
	})
}

func TestTracer_FullQueueDropsAndCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block, count := make(chan struct{}), 0
		tr := New(8, consumerFunc(func(*Finished) { <-block; count++ }))
		offer := func(n int) (kept int) {
			for range n {
				if tr.Offer(exchange(1, 2, 3), &Conn{}) {
					kept++
				}
			}
			return kept
		}
		first := offer(1)
		synctest.Wait() // the worker lingers
		second := offer(3)
		synctest.Wait() // half full: the worker took them and stands in the consumer
		third := offer(20)
		if first != 1 || second != 3 || third != 8 {
			t.Errorf("kept %d, %d, %d exchanges; want 1, 3 and then a queue of 8", first, second, third)
		}
		if tr.Dropped() != 12 {
			t.Errorf("%d counted as dropped, want 12", tr.Dropped())
		}
		close(block)
		tr.Close()
		if count != 12 {
			t.Errorf("%d handled, want all 12 that were kept", count)
		}
	})
}

func TestTracer_OfferAfterClose(t *testing.T) {
	t.Parallel()
	tr := New(8)
	tr.Close()
	tr.Close()
	if tr.Offer(&wire.Exchange{}, &Conn{}) {
		t.Error("an exchange was kept after Close")
	}
	if tr.Dropped() != 0 {
		t.Errorf("%d dropped, want 0: nothing was lost for want of room", tr.Dropped())
	}
}

// Whatever Offer said it kept is handled, whenever Close comes.
func TestTracer_CloseLosesNothing(t *testing.T) {
	t.Parallel()
	for range 50 {
		handled := 0
		tr := New(1000, consumerFunc(func(*Finished) { handled++ }))
		var kept [4]int
		var offering sync.WaitGroup
		started := make(chan struct{}, len(kept))
		for i := range kept {
			offering.Go(func() {
				for n := range 200 {
					if tr.Offer(&wire.Exchange{}, &Conn{}) {
						kept[i]++
					}
					if n == 20 {
						started <- struct{}{}
					}
				}
			})
		}
		<-started
		tr.Close()
		offering.Wait()
		if total := kept[0] + kept[1] + kept[2] + kept[3]; total != handled || total == 0 {
			t.Fatalf("%d kept, %d handled", total, handled)
		}
	}
}

// Connections share the records that the worker is done with. Run by the race
// detector, it also finds whoever touches a record that isn't his.
func TestTracer_RecordsComeBackToAnyConnection(t *testing.T) {
	t.Parallel()
	const each, room = 5000, 4 * 5000
	handled := make(map[*Conn]int)
	tr := New(room, consumerFunc(func(f *Finished) {
		handled[f.Conn]++
		if f.Database != f.Conn.Link || f.Operation != "insert" || f.Batch != int(f.Ordinal) || f.Collection != "" {
			t.Errorf("%s: its exchange %d is %s of %s, %d documents", f.Conn.Link, f.Ordinal, f.Operation, f.Database, f.Batch)
		}
	}))
	var connections sync.WaitGroup
	conns := make([]*Conn, room/each)
	for i := range conns {
		conns[i] = &Conn{Link: string(rune('a' + i))}
		connections.Go(func() {
			o := wire.NewOpen(wire.MongoDB)
			o.Spare = tr.Spare
			o.Emit = func(x *wire.Exchange) bool { return tr.Offer(x, conns[i]) }
			for n := range each {
				x := o.New()
				if x.Operation != "" || x.Ordinal != uint64(n+1) {
					t.Errorf("a new record is %+v", x)
				}
				x.Operation, x.Database, x.Batch = "insert", conns[i].Link, n+1
				o.Complete(x)
			}
		})
	}
	connections.Wait()
	tr.Close()
	for _, c := range conns {
		if handled[c] != each {
			t.Errorf("%s: %d handled, want %d", c.Link, handled[c], each)
		}
	}
	if tr.Spare() == nil {
		t.Error("no record came back")
	}
}

func TestTracer_OfferDoesNotAllocateOnceWarm(t *testing.T) {
	tr := New(1<<16, consumerFunc(func(*Finished) {}))
	defer tr.Close()
	x, c := &wire.Exchange{}, &Conn{}
	for range 1 << 15 {
		tr.Offer(x, c)
	}
	if n := testing.AllocsPerRun(1000, func() { tr.Offer(x, c) }); n > 0.1 {
		t.Errorf("%v allocations per offer", n)
	}
}

func BenchmarkOffer(b *testing.B) {
	tr := New(1<<20, consumerFunc(func(*Finished) {}))
	defer tr.Close()
	x, c := &wire.Exchange{}, &Conn{}
	b.ReportAllocs()
	for b.Loop() {
		tr.Offer(x, c)
	}
}
