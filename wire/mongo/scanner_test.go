package mongo

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/internal/testenv"
)

// everything is a visitor that looks into all and keeps all.
type everything struct{ seen []string }

func (e *everything) element(_ node, nth int, key []byte, typ byte) (node, action) {
	e.seen = append(e.seen, fmt.Sprintf("%d %s %#x", nth, key, typ))
	if typ == typeDocument || typ == typeArray {
		return 1, descend
	}
	return 1, collect
}

func (e *everything) value(_ node, typ byte, v []byte) {
	e.seen = append(e.seen, fmt.Sprintf("%#x %x", typ, v))
}

// scan scans a document in reads that next sizes.
func scan(b []byte, next func() int) ([]string, status) {
	var src source
	var sc scanner
	var e everything
	sc.start(1, len(b))
	st := hungry
	for len(b) > 0 && st == hungry {
		n := min(max(next(), 1), len(b))
		src.in = slices.Clone(b[:n])
		b = b[n:]
		st = sc.run(&src, &e)
	}
	return e.seen, st
}

func whole() int  { return 1 << 30 }
func single() int { return 1 }

func TestScanner_SeesWhatTheDriverWrote(t *testing.T) {
	b := doc(t, bson.D{{Key: "d", Value: 1.5}, {Key: "s", Value: "text"}, {Key: "o", Value: bson.D{{Key: "in", Value: int32(1)}}},
		{Key: "a", Value: bson.A{true, nil}}, {Key: "b", Value: bson.Binary{Subtype: 4, Data: []byte{1, 2}}},
		{Key: "r", Value: bson.Regex{Pattern: "p", Options: "i"}}, {Key: "ts", Value: bson.Timestamp{T: 1, I: 2}},
		{Key: "last", Value: int64(3)}})
	want := []string{
		"0 d 0x1", "0x1 000000000000f83f", "1 s 0x2", "0x2 74657874", "2 o 0x3", "0 in 0x10", "0x10 01000000",
		"3 a 0x4", "0 0 0x8", "0x8 01", "1 1 0xa", "4 b 0x5", "0x5 040102", "5 r 0xb", "6 ts 0x11",
		"0x11 0200000001000000", "7 last 0x12", "0x12 0300000000000000",
	}
	for _, next := range []func() int{whole, single} {
		got, st := scan(b, next)
		if st != done || !slices.Equal(got, want) {
			t.Errorf("status %d, saw %q", st, got)
		}
	}
}

func TestScanner_LyingLengths(t *testing.T) {
	for name, b := range map[string][]byte{
		"document of 4":          {4, 0, 0, 0},
		"longer than its frame":  {9, 0, 0, 0, 0},
		"negative":               {0xff, 0xff, 0xff, 0xff, 0},
		"no terminator":          {5, 0, 0, 0, 1},
		"terminator too early":   {8, 0, 0, 0, 0, 0, 0, 0},
		"key without NUL":        {8, 0, 0, 0, 0x0a, 'a', 'b', 'c'},
		"value past the end":     {12, 0, 0, 0, 0x10, 'a', 0, 1, 2, 3, 4, 5},
		"string of zero":         {13, 0, 0, 0, 0x02, 'a', 0, 0, 0, 0, 0, 0, 0},
		"string past the end":    {14, 0, 0, 0, 0x02, 'a', 0, 3, 0, 0, 0, 'x', 0, 0},
		"string without NUL":     {14, 0, 0, 0, 0x02, 'a', 0, 2, 0, 0, 0, 'x', 'y', 0},
		"string over everything": {14, 0, 0, 0, 0x02, 'a', 0, 0xff, 0xff, 0xff, 0x7f, 'x', 0, 0},
		"inner past the outer":   {13, 0, 0, 0, 0x03, 'a', 0, 6, 0, 0, 0, 0, 0},
		"unknown type":           {8, 0, 0, 0, 0x14, 'a', 0, 0},
		"regex without end":      {10, 0, 0, 0, 0x0b, 'a', 0, 'x', 'y', 0},
	} {
		for _, next := range []func() int{whole, single} {
			if _, st := scan(b, next); st != failed {
				t.Errorf("%s: status %d, want failed", name, st)
			}
		}
	}
}

// TestScanner_Corpus goes through the BSON corpus and other recorded documents:
// what the driver decodes must be read to its end.
func TestScanner_Corpus(t *testing.T) {
	dir := testenv.Captures(t)
	var docs [][]byte
	for _, pattern := range []string{"mongo-c-driver/libbson/binary/*.bson", "FerretDB-wire/wirebson/*.bson"} {
		files, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			docs = append(docs, b)
		}
	}
	docs = append(docs, corpus(t, dir)...)
	n := 0
	for _, b := range docs {
		got, st := scan(b, whole)
		again, st2 := scan(b, single)
		if st != st2 || !slices.Equal(got, again) {
			t.Errorf("%x: whole %d %q, byte by byte %d %q", b, st, got, st2, again)
		}
		if !valid(b) {
			continue
		}
		n++
		if st != done {
			t.Errorf("%x: status %d of a valid document", b, st)
		}
	}
	if n < 100 {
		t.Errorf("only %d valid documents", n)
	}
}

// valid reports whether the driver decodes the document. Its Raw.Validate lets
// through lengths that its decoder refuses.
func valid(b []byte) bool {
	var d bson.D
	return len(b) >= minDocument && le32(b) == len(b) && bson.Unmarshal(b, &d) == nil
}

func corpus(t *testing.T, dir string) [][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "mongo-c-driver", "libbson", "bson_corpus", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	var docs [][]byte
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			Valid []struct {
				Canonical  string `json:"canonical_bson"`
				Degenerate string `json:"degenerate_bson"`
			}
			DecodeErrors []struct{ Bson string }
		}
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatal(err)
		}
		for _, v := range c.Valid {
			docs = append(docs, unhex(t, v.Canonical), unhex(t, v.Degenerate))
		}
		for _, e := range c.DecodeErrors {
			docs = append(docs, unhex(t, e.Bson))
		}
	}
	return docs
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func FuzzScanner(f *testing.F) {
	f.Add(doc(f, bson.D{{Key: "a", Value: bson.D{{Key: "b", Value: "c"}}}, {Key: "r", Value: bson.Regex{Pattern: "x"}}}), uint64(1))
	f.Add([]byte{5, 0, 0, 0, 0}, uint64(2))
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		got, st := scan(b, whole)
		rnd := random(seed)
		again, st2 := scan(b, func() int { return 1 + rnd.IntN(9) })
		if st != st2 || !slices.Equal(got, again) {
			t.Fatalf("whole %d %q, in pieces %d %q", st, got, st2, again)
		}
		if len(b) < maxKey && valid(b) && st != done {
			t.Fatalf("status %d of a valid document", st)
		}
	})
}
