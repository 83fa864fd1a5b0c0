package mongo

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/wire"
)

// turn is a message of a transcript.
type turn struct {
	dir wire.Direction
	b   []byte
}

// transcript has something of everything.
func transcript(t testing.TB) []turn {
	c, s := wire.ToServer, wire.ToClient
	ok := kind0(doc(t, bson.D{{Key: "ok", Value: 1.0}}))
	hello := doc(t, bson.D{{Key: "hello", Value: 1}, {Key: "client", Value: bson.D{
		{Key: "driver", Value: bson.D{{Key: "name", Value: "d"}, {Key: "version", Value: "1"}}}}}})
	helloReply := doc(t, bson.D{{Key: "isWritablePrimary", Value: true}, {Key: "connectionId", Value: 12}, {Key: "ok", Value: 1.0}})
	w0 := msg(30, 0, flagMoreToCome, kind0(doc(t, bson.D{{Key: "insert", Value: "c"},
		{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 0}}}, {Key: "$db", Value: "d"}})))
	late := msg(40, 0, 0, kind1("updates", doc(t, bson.D{{Key: "pad", Value: make([]byte, 3000)}})),
		kind0(doc(t, bson.D{{Key: "update", Value: "c"}, {Key: "let", Value: bson.D{{Key: "re", Value: bson.Regex{Pattern: "a", Options: "i"}}}},
			{Key: "pad", Value: bson.Regex{Pattern: "abcdef", Options: "im"}}, {Key: "comment", Value: parent},
			{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 2}}}, {Key: "$db", Value: "d"}})))
	lying := msg(50, 0, 0, kind0(doc(t, bson.D{{Key: "insert", Value: "c"}, {Key: "x", Value: bson.D{{Key: "y", Value: 1}}}, {Key: "$db", Value: "d"}})))
	lying[bytes.Index(lying, []byte("\x03x\x00"))+3] = 0x77 // the length of x
	turns := []turn{
		{c, opQueryMsg(1, "admin.$cmd", hello)}, {s, opReplyMsg(1, 1, 8, helloReply)},
		{c, insert(t, 10)}, {s, okReply(t, 2, 10)},
		{c, summed(insert(t, 11))}, {c, insert(t, 12)}, {s, summed(okReply(t, 3, 11))}, {s, okReply(t, 4, 12)},
		{c, w0}, {c, late}, {s, okReply(t, 5, 40)},
		{c, lying}, {s, msg(6, 50, 0, ok)},
		{c, msg(51, 0, 0, kind0(hello), []byte{9}, []byte("whatever"))}, {s, msg(7, 51, 1<<7, ok)},
		{c, msg(60, 0, 1<<16, kind0(hello))},
		{s, msg(70, 60, flagMoreToCome, ok)}, {s, msg(71, 70, flagMoreToCome, ok)}, {s, msg(72, 71, 0, ok)},
		{c, message(80, 0, opMsg)}, {s, message(81, 80, opMsg)},
		{c, find(t, 99)},
	}
	for i, id := range allCompressors {
		w0 := slices.Clone(w0)
		turns = append(turns,
			turn{c, compress(t, id, insert(t, 200+10*i))}, turn{s, compress(t, id, okReply(t, 300+10*i, 200+10*i))},
			turn{c, compress(t, id, w0)},
			turn{c, compress(t, id, msg(201+10*i, 0, 1<<16, kind0(hello)))},
			turn{s, compress(t, id, msg(301+10*i, 201+10*i, flagMoreToCome, ok))},
			turn{s, compress(t, id, msg(302+10*i, 301+10*i, 0, ok))})
	}
	return turns
}

// outcome is what a run said: exchanges in order, and the count of troubles.
func outcome(h *harness) []string {
	all := h.end()
	slices.SortFunc(all, func(a, b wire.Exchange) int { return int(a.Ordinal) - int(b.Ordinal) })
	var out []string
	for _, x := range all {
		if x.NoReply {
			x.Peer = nil // what the other direction has said by then may differ
		}
		out = append(out, said(x))
	}
	slices.Sort(h.troubles)
	return append(out, h.troubles...)
}

func compareOutcome(t *testing.T, what any, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		g, w := "nothing", "nothing"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Fatalf("%v: differs at %d:\n got %s\nwant %s", what, i, g, w)
		}
	}
}

func TestSplit_CutsDoNotMatter(t *testing.T) {
	turns := transcript(t)
	whole := newHarness(t, wire.Options{})
	for _, m := range turns {
		whole.feed(m.dir, m.b)
	}
	want := outcome(whole)
	if len(want) < 25 || len(whole.troubles) != 5 || whole.s.Opaque() != nil {
		t.Fatalf("the transcript is not what it was: %d, %v, %v", len(want), whole.troubles, whole.s.Opaque())
	}
	rnd := random(1)
	sizes := map[string]func() int{
		"one":    func() int { return 1 },
		"seven":  func() int { return 7 },
		"random": func() int { return 1 + rnd.IntN(60) },
	}
	for name, next := range sizes {
		h := newHarness(t, wire.Options{})
		for _, m := range turns {
			h.cuts(m.dir, m.b, next)
		}
		compareOutcome(t, name, outcome(h), want)
	}
}

// TestSplit_DirectionsInterleave lets requests run ahead, cuts across
// messages, and decodes either direction late, as long as a reply comes after
// its request.
func TestSplit_DirectionsInterleave(t *testing.T) {
	turns := transcript(t)
	whole := newHarness(t, wire.Options{})
	for _, m := range turns {
		whole.feed(m.dir, m.b)
	}
	want := outcome(whole)
	for seed := range uint64(300) {
		h := newHarness(t, wire.Options{})
		interleave(h, turns, random(seed))
		compareOutcome(t, seed, outcome(h), want)
	}
}

// interleave frames and decodes the turns in an order drawn from rnd.
func interleave(h *harness, turns []turn, rnd *rand.Rand) {
	var streams [2][]byte
	// after[i] is where the server's stream stands when i bytes were asked for.
	type mark struct{ asked, may int }
	var marks []mark
	for _, m := range turns {
		streams[m.dir] = append(streams[m.dir], m.b...)
		marks = append(marks, mark{len(streams[wire.ToServer]), len(streams[wire.ToClient])})
	}
	var at [2]int
	for at[0] < len(streams[0]) || at[1] < len(streams[1]) || len(h.later[0]) > 0 || len(h.later[1]) > 0 {
		dir := wire.Direction(rnd.IntN(2))
		if rnd.IntN(2) == 0 {
			h.decode(dir)
			continue
		}
		limit := len(streams[dir])
		if dir == wire.ToClient {
			limit = 0
			for _, m := range marks {
				if m.asked <= at[wire.ToServer] {
					limit = m.may
				}
			}
		}
		if n := min(1+rnd.IntN(400), limit-at[dir]); n > 0 {
			h.frame(dir, streams[dir][at[dir]:at[dir]+n])
			at[dir] += n
		}
	}
}
