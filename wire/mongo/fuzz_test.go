package mongo

import (
	"testing"

	"github.com/wirewait/wirewait/wire"
)

// FuzzSession gives a session any bytes: it must not panic, its pieces must
// tile the bytes (the harness checks), what it says must not depend on the
// cuts, and once it is opaque it must stay so.
func FuzzSession(f *testing.F) {
	var all [2][]byte
	for _, m := range transcript(f) {
		all[m.dir] = append(all[m.dir], m.b...)
		if m.dir == wire.ToServer {
			f.Add(m.b, []byte(nil), uint64(1))
		} else {
			f.Add([]byte(nil), m.b, uint64(1))
		}
	}
	f.Add(insert(f, 1), okReply(f, 2, 1), uint64(2))
	f.Add(insert(f, 1), summed(okReply(f, 2, 1)), uint64(3))
	f.Add(all[0], all[1], uint64(4))
	f.Add([]byte{0x16, 3, 1, 0, 100, 1}, []byte{0x16, 3, 3, 0, 100, 2}, uint64(5))
	f.Fuzz(func(t *testing.T, toServer, toClient []byte, seed uint64) {
		run := func(next func() int) (*harness, []string) {
			h := newHarness(t, wire.Options{})
			h.cuts(wire.ToServer, toServer, next)
			h.cuts(wire.ToClient, toClient, next)
			return h, outcome(h)
		}
		h, want := run(func() int { return 1 << 30 })
		rnd := random(seed)
		g, got := run(func() int { return 1 + rnd.IntN(50) })
		if overtaken(h) || overtaken(g) {
			return
		}
		compareOutcome(t, seed, got, want)
		if (h.s.Opaque() == nil) != (g.s.Opaque() == nil) {
			t.Fatalf("whole: %v, in pieces: %v", h.s.Opaque(), g.s.Opaque())
		}
		checkSticky(t, h)
		checkSticky(t, g)
	})
}

func overtaken(h *harness) bool { return h.s.(*session).overtaken }

// checkSticky checks that no message follows opaque bytes, in stream order.
func checkSticky(t *testing.T, h *harness) {
	t.Helper()
	opaque := false
	for dir := range h.pieces {
		for _, p := range h.pieces[dir] {
			if opaque && !p.Opaque {
				t.Fatal("a message after the session had given up")
			}
			opaque = opaque || p.Opaque
		}
	}
	if opaque != (h.s.Opaque() != nil) {
		t.Fatalf("opaque bytes: %v, yet the session says %v", opaque, h.s.Opaque())
	}
}

// FuzzInterleave lets the two directions run in any order, with no regard to
// what is asked before it is answered: nothing may panic or be left over.
func FuzzInterleave(f *testing.F) {
	var all [2][]byte
	for _, m := range transcript(f) {
		all[m.dir] = append(all[m.dir], m.b...)
	}
	f.Add(all[0], all[1], uint64(1))
	f.Add(all[0], all[1], uint64(2))
	f.Fuzz(func(t *testing.T, toServer, toClient []byte, seed uint64) {
		streams := [2][]byte{toServer, toClient}
		rnd := random(seed)
		h := newHarness(t, wire.Options{MaxOpen: 20, Inflate: &budget{left: 3 << 20}})
		for len(streams[0])+len(streams[1]) > 0 {
			dir := wire.Direction(rnd.IntN(2))
			if rnd.IntN(3) == 0 {
				h.decode(dir)
			}
			n := min(1+rnd.IntN(100), len(streams[dir]))
			h.frame(dir, streams[dir][:n])
			streams[dir] = streams[dir][n:]
			h.s.Quiet()
		}
		if rnd.IntN(2) == 0 {
			h.later = [2][]undecoded{} // the end comes before the decoding
		}
		h.end()
	})
}
