package mongo

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/wire"
)

// text compresses, but not to nothing.
func text(n int) string {
	rnd := random(uint64(n))
	var b strings.Builder
	for b.Len() < n {
		b.WriteString([]string{"order ", "customer ", "Singapore ", "Frankfurt "}[rnd.IntN(4)])
		b.WriteByte('a' + byte(rnd.IntN(26)))
	}
	return b.String()[:n]
}

// noise does not compress, and so takes no time to.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(b)
	return b
}

// lateCommand is an insert of this value whose write concern and database stand
// behind its documents: in the command, as the Node.js driver's insertOne and
// mongosh's have it, or behind their section.
func lateCommand(t testing.TB, inBody bool, value any) []byte {
	command := bson.D{{Key: "insert", Value: "c"}}
	docs := bson.A{bson.D{{Key: "a", Value: value}}, bson.D{{Key: "a", Value: 1}}}
	if inBody {
		command = append(command, bson.E{Key: "documents", Value: docs})
	}
	command = append(command, bson.E{Key: "ordered", Value: true}, bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 3}}}, bson.E{Key: "$db", Value: "d"})
	if inBody {
		return msg(1, 0, 0, kind0(doc(t, command)))
	}
	return msg(1, 0, 0, kind1("documents", doc(t, docs[0].(bson.D)), doc(t, docs[1].(bson.D))), kind0(doc(t, command)))
}

// decoded is what a session says of one request, cut into pieces of step.
func decoded(t *testing.T, m []byte, step int) (wire.Exchange, []string) {
	t.Helper()
	h := newHarness(t, wire.Options{})
	h.cuts(wire.ToServer, m, func() int { return step })
	return h.end()[0], h.troubles
}

func TestCompressed_BigInsertIsReadToItsCommand(t *testing.T) {
	docs := kind1("documents", doc(t, bson.D{{Key: "a", Value: text(900_000)}}), doc(t, bson.D{{Key: "a", Value: 1}}))
	first := kind0(doc(t, bson.D{{Key: "insert", Value: "c"}, {Key: "writeConcern", Value: bson.D{{Key: "w", Value: 3}}}, {Key: "$db", Value: "d"}}))
	for _, id := range allCompressors {
		for _, step := range []int{1 << 24, 16 << 10} {
			x, troubles := decoded(t, compress(t, id, msg(1, 0, 0, first, docs)), step)
			if x.Operation != "insert" || x.Mongo.WriteConcern.W != "3" || x.Database != "d" || len(troubles) > 0 {
				t.Errorf("%s by %d: %s, %v", compressorName(id), step, said(x), troubles)
			}
			if x.Batch != 0 {
				t.Errorf("%s: batch %d though its documents were not all seen", compressorName(id), x.Batch)
			}
		}
	}
}

// A command that goes on behind the first 256 KiB is read as far as 4 MiB.
func TestCompressed_ConcernBehindTheDocuments(t *testing.T) {
	for step, inBody := range map[int]bool{1 << 24: true, 16 << 10: false} {
		m := lateCommand(t, inBody, noise(4_100_000))
		for _, id := range allCompressors {
			x, troubles := decoded(t, compress(t, id, m), step)
			if x.Operation != "insert" || x.Mongo.WriteConcern.W != "3" || x.Mongo.WriteConcern.Source != "command" ||
				x.Database != "d" || x.Batch != 2 || len(troubles) > 0 {
				t.Errorf("%s by %d: %s, %v", compressorName(id), step, said(x), troubles)
			}
		}
	}
}

// Behind that nobody knows what it waits for, and it isn't said to be the
// server's default.
func TestCompressed_ConcernBehindTheCut(t *testing.T) {
	inBody, behind := lateCommand(t, true, noise(4_200_000)), lateCommand(t, false, noise(4_200_000))
	for _, id := range allCompressors {
		x, troubles := decoded(t, compress(t, id, inBody), 16<<10)
		if x.Operation != "insert" || !x.Write || x.Mongo.WriteConcern.Source != "unknown" || x.Mongo.WriteConcern.Label() != "unknown" ||
			x.Batch != 0 || !slices.Equal(troubles, []string{troubleCut}) {
			t.Errorf("%s: %s, %v", compressorName(id), said(x), troubles)
		}
		x, troubles = decoded(t, compress(t, id, behind), 1<<24)
		if x.Operation != "OP_COMPRESSED" || x.Compressor != compressorName(id) || !slices.Equal(troubles, []string{troubleCut}) {
			t.Errorf("%s: %s, %v", compressorName(id), said(x), troubles)
		}
	}
	// A few bytes that stand for many are not worth the time.
	zeros := bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "a", Value: make([]byte, 2<<20)}}}},
		{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 3}}}, {Key: "$db", Value: "d"}}
	x, troubles := decoded(t, compress(t, packedZlib, msg(1, 0, 0, kind0(doc(t, zeros)))), 1<<24)
	if x.Mongo.WriteConcern.Source != "unknown" || !slices.Equal(troubles, []string{troubleCut}) {
		t.Errorf("zeros: %s, %v", said(x), troubles)
	}
}

func TestCompressed_BigReplyIsNoError(t *testing.T) {
	reply := msg(2, 1, 0, kind0(doc(t, bson.D{{Key: "cursor", Value: bson.D{{Key: "firstBatch", Value: text(400_000)}}}, {Key: "ok", Value: 1.0}})))
	for _, id := range allCompressors {
		h := newHarness(t, wire.Options{})
		h.feed(wire.ToServer, find(t, 1))
		h.feed(wire.ToClient, compress(t, id, reply))
		x := h.end()[0]
		if !x.OK || !x.Answered || x.Compressor != compressorName(id) || !slices.Equal(h.troubles, []string{troubleCut}) {
			t.Errorf("%s: %s, %v", compressorName(id), said(x), h.troubles)
		}
	}
}

func TestCompressed_WhatCannotBeRead(t *testing.T) {
	body := insert(t, 1)[headerLen:]
	zeros := make([]byte, 40<<20)
	sq := func(id byte) []byte { return squeeze(t, id, body) }
	for name, c := range map[string]struct {
		m    []byte
		want string
	}{
		"nothing at all":         {message(1, 0, opCompressed), troubleShort},
		"no room for its header": {message(1, 0, opCompressed, []byte{1, 2, 3}), troubleShort},
		"compressor":             {packedMessage(1, 0, opMsg, len(body), 9, body), troubleCompressor},
		"nested":                 {packedMessage(1, 0, opCompressed, len(body), packedNoop, body), troubleCompressed},
		"opcode":                 {packedMessage(1, 0, 77, len(body), packedNoop, body), troubleCompressed},
		"negative":               {packedMessage(1, 0, opMsg, -1, packedZlib, sq(packedZlib)), troubleSize},
		"too large":              {packedMessage(1, 0, opMsg, maxMessage, packedZlib, sq(packedZlib)), troubleSize},
		"noop bomb":              {packedMessage(1, 0, opMsg, 10, packedNoop, body), troubleBomb},
		"zlib bomb":              {packedMessage(1, 0, opMsg, 100, packedZlib, squeeze(t, packedZlib, zeros)), troubleBomb},
		"zstd bomb":              {packedMessage(1, 0, opMsg, 100, packedZstd, squeeze(t, packedZstd, zeros)), troubleBomb},
		"snappy bomb":            {packedMessage(1, 0, opMsg, 100, packedSnappy, squeeze(t, packedSnappy, zeros)), troubleSize},
		"snappy garbage":         {packedMessage(1, 0, opMsg, 100, packedSnappy, []byte{100, 0xff, 0xff, 0xff}), troubleCompressed},
		"snappy without bytes":   {packedMessage(1, 0, opMsg, 100, packedSnappy, nil), troubleSize},
		"zlib garbage":           {packedMessage(1, 0, opMsg, 100, packedZlib, body), troubleCompressed},
		"zstd garbage":           {packedMessage(1, 0, opMsg, 100, packedZstd, body), troubleCompressed},
		"zlib cut":               {packedMessage(1, 0, opMsg, len(body), packedZlib, sq(packedZlib)[:20]), troubleCompressed},
	} {
		for _, step := range []int{1 << 30, 1 << 10} {
			h := newHarness(t, wire.Options{})
			h.cuts(wire.ToServer, c.m, func() int { return step })
			h.feed(wire.ToClient, okReply(t, 2, 1))
			all := h.end()
			if len(all) != 1 || !slices.Equal(h.troubles, []string{c.want}) || h.s.Opaque() != nil {
				t.Fatalf("%s: %d exchanges, troubles %v, want %s", name, len(all), h.troubles, c.want)
			}
			x := all[0]
			if x.Operation != "OP_COMPRESSED" && x.Operation != "insert" || !x.Answered || !x.OK {
				t.Errorf("%s: %s", name, said(x))
			}
		}
	}
}

// budget counts what is out.
type budget struct{ left, out, most int }

func (b *budget) Take(n int) bool {
	if n > b.left {
		return false
	}
	b.left -= n
	b.out += n
	b.most = max(b.most, b.out)
	return true
}

func (b *budget) Give(n int) { b.left += n; b.out -= n }

func TestCompressed_StaysWithinTheBudget(t *testing.T) {
	late := compress(t, packedZlib, lateCommand(t, true, text(2_000_000)))
	all, some := inflateCost(lateInflate)+len(late), inflateCost(maxInflate)+len(late)
	for _, c := range []struct {
		left, step, most int
		want             []string
	}{
		{0, 1 << 30, 0, []string{troubleBudget}}, {0, 1000, 0, []string{troubleBudget}},
		// Room for the first bytes only.
		{some, 1 << 30, some, []string{troubleCut}}, {some, 1000, some, []string{troubleCut}},
		{all, 1 << 30, all, nil}, {all, 1000, all, nil},
	} {
		b := &budget{left: c.left}
		h := newHarness(t, wire.Options{Inflate: b})
		h.cuts(wire.ToServer, late, func() int { return c.step })
		h.feed(wire.ToServer, insert(t, 2))
		if b.out != 0 || b.most > c.most {
			t.Errorf("budget %d: %d bytes taken and not given back, %d at most, want %d", c.left, b.out, b.most, c.most)
		}
		h.feed(wire.ToServer, late[:5000])
		all := h.end()
		if b.out != 0 {
			t.Errorf("%d bytes not given back at the end", b.out)
		}
		if len(all) != 3 || all[1].Operation != "insert" || !slices.Equal(h.troubles, c.want) {
			t.Errorf("budget %d: %d exchanges, %v", c.left, len(all), h.troubles)
		}
		if source := all[0].Mongo.WriteConcern.Source; len(c.want) == 0 && source != "command" || c.left == some && source != "unknown" {
			t.Errorf("budget %d: the concern is %s", c.left, source)
		}
	}
}

// Sessions run at the same time and share only their inflaters.
func TestCompressed_SessionsSideBySide(t *testing.T) {
	for g := range 8 {
		t.Run(fmt.Sprint(g), func(t *testing.T) {
			t.Parallel()
			name := fmt.Sprintf("c%d", g)
			m := msg(1, 0, 0, kind0(doc(t, bson.D{{Key: "insert", Value: name}, {Key: "x", Value: text(3000 + g)}, {Key: "$db", Value: name}})))
			h := newHarness(t, wire.Options{})
			for range 50 {
				h.feed(wire.ToServer, compress(t, allCompressors[g%4], m))
			}
			for _, x := range h.end() {
				if x.Collection != name || x.Database != name || len(h.troubles) > 0 {
					t.Fatalf("read as %s, %v", said(x), h.troubles)
				}
			}
		})
	}
}

func TestCompressed_NoReplyIsKnownAfterDecoding(t *testing.T) {
	w0 := msg(1, 0, flagMoreToCome, kind0(doc(t, bson.D{{Key: "insert", Value: "c"}})))
	h := newHarness(t, wire.Options{})
	h.frame(wire.ToServer, compress(t, packedZstd, w0))
	if h.s.Quiet() || len(h.done) > 0 {
		t.Error("done before anybody could know that no reply comes")
	}
	h.decode(wire.ToServer)
	if !h.s.Quiet() || len(h.done) != 1 || !h.done[0].NoReply || h.done[0].Operation != "insert" {
		t.Errorf("after decoding: %+v", h.done)
	}
	h.end()
}

func TestSnappyPrefix(t *testing.T) {
	noise := noise(70_000)
	for name, want := range map[string][]byte{
		"text": []byte(text(300_000)), "zeros": make([]byte, 300_000), "noise": noise,
		"mixed": slices.Concat(noise[:3000], []byte(text(5000)), noise[:3000]), "empty": nil,
	} {
		in := snappy.Encode(nil, want)
		for _, limit := range []int{0, 1, 1000, 65_536, 1 << 20} {
			got, ok := snappyPrefix(make([]byte, 0, limit), in)
			if !ok || !bytes.Equal(got, want[:min(limit, len(want))]) {
				t.Errorf("%s, first %d: got %d bytes, %v", name, limit, len(got), ok)
			}
		}
		// What ends early is no error: its rest was not gathered.
		for _, n := range []int{len(in) / 2, len(in) * 9 / 10} {
			if n < 5 {
				continue
			}
			got, ok := snappyPrefix(make([]byte, 0, 1<<20), in[:n])
			if !ok || !bytes.HasPrefix(want, got) {
				t.Errorf("%s cut at %d: %d bytes that are no prefix", name, n, len(got))
			}
		}
	}
}

func FuzzSnappyPrefix(f *testing.F) {
	f.Add([]byte(text(500)))
	f.Add([]byte{4, 0xf0})
	f.Fuzz(func(t *testing.T, b []byte) {
		snappyPrefix(make([]byte, 0, 1000), b)
		in := snappy.Encode(nil, b)
		if got, ok := snappyPrefix(make([]byte, 0, len(b)), in); !ok || !bytes.Equal(got, b) {
			t.Fatalf("inflated to %x, want %x", got, b)
		}
		if want, err := snappy.Decode(nil, b); err == nil && len(want) < 1<<16 {
			if got, ok := snappyPrefix(make([]byte, 0, len(want)), b); !ok || !bytes.Equal(got, want) {
				t.Fatalf("inflated to %x, the library to %x", got, want)
			}
		}
	})
}
