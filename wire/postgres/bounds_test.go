package postgres

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/wirewait/wirewait/wire"
)

func TestBig_StatementIsCutAndTheRestStepsBy(t *testing.T) {
	sql := "INSERT INTO t VALUES ('" + strings.Repeat("x", 1<<20) + "')"
	for name, steps := range map[string][]step{
		"Query": {c(query(sql)), s(tag("INSERT 0 1"), ready('I'))},
		"Parse": {c(pbe(sql), sync()), s(parsedBound(), tag("INSERT 0 1"), ready('I'))},
		"Bind": {
			c(parse("s", "INSERT INTO t VALUES ($1)"), msg('B', append(z("", "s"), make([]byte, 1<<20)...)...), execute(""), sync()),
			s(parsedBound(), tag("INSERT 0 1"), ready('I')),
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, cut := range []int{1 << 30, 32 << 10} {
				p := newPlayer(t, wire.Options{Text: wire.TextRaw})
				cutUp(p, append(hello(), steps...), func(int) int { return cut })
				if len(p.got) != 2 || len(p.text) != 0 {
					t.Fatalf("%v, trouble %v", briefs(p.got), p.text)
				}
				x := p.got[1]
				if x.Postgres.Summary != "INSERT t" || len(x.Statement) > maxText || !x.OK {
					t.Errorf("%s, %q, %d bytes of text", brief(x), x.Postgres.Summary, len(x.Statement))
				}
				if n := cap(p.s.(*session).decoders[wire.ToServer].body); n > keepBuffer {
					t.Errorf("a buffer of %d bytes is kept", n)
				}
			}
			for _, mode := range []wire.TextMode{wire.TextNone, wire.TextSanitised} {
				x := runWith(t, wire.Options{Text: mode}, append(hello(), steps...)...)[1]
				if strings.Contains(x.Statement, "xxx") {
					t.Errorf("mode %d shows a literal", mode)
				}
			}
		})
	}
}

// Much that a peer may send must not make a session grow.
func TestBounds_Memory(t *testing.T) {
	const most = 6 << 20
	play := func(t *testing.T, n int, steps ...step) *session {
		t.Helper()
		p := newPlayer(t, wire.Options{Text: wire.TextRaw, MaxMemory: most})
		p.s.Open().Emit = nil
		p.play(hello()...)
		for i := range n {
			for _, st := range steps {
				b := bytes.ReplaceAll(st.b, []byte("NNNNNN"), fmt.Appendf(nil, "%06d", i))
				p.pieces = [2][]wire.Piece{}
				p.play(step{st.dir, b})
			}
		}
		return p.s.(*session)
	}
	text := strings.Repeat("x", 1000)
	for name, steps := range map[string][]step{
		"Parse without Sync":      {c(parse("NNNNNN", "SELECT '"+text+"'"))},
		"notices":                 {s(notice("WARNING", "01000", "SyncRepWaitForLSN"))},
		"parameters":              {s(parameter("application_name", "NNNNNN"))},
		"results without a round": {s(tag("INSERT 0 NNNNNN"))},
		"savepoints":              {c(query("SAVEPOINT aNNNNNN")), s(tag("SAVEPOINT"), ready('T'))},
		"portals":                 {c(bind("NNNNNN", ""), sync()), s(msg('2'), ready('T'))},
		"names":                   {c(query("PREPARE pNNNNNN AS SELECT '" + text + "'")), s(tag("PREPARE"), ready('I'))},
		"skipped":                 {c(pbe("SELECT '" + text + "'")), s(refused("42601"))},
	} {
		t.Run(name, func(t *testing.T) {
			in := play(t, 12_000, steps...)
			facts := in.decoders[0].facts.Len() + in.decoders[1].facts.Len()
			if n := in.framed() + facts*costFact; n > most+1024 {
				t.Errorf("%d bytes, %d of them for facts", n, facts*costFact)
			}
			if in.kept > maxKept || in.kept < 0 {
				t.Errorf("%d bytes of text", in.kept)
			}
			if n := len(in.statements) + len(in.portals); n > 2*maxPrepared {
				t.Errorf("%d names", n)
			}
			if len(in.saved) > maxSavepoints || len(in.strings) > maxInterned {
				t.Errorf("%d savepoints, %d strings", len(in.saved), len(in.strings))
			}
			in.End()
			if in.open.Len() != 0 {
				t.Errorf("%d exchanges left", in.open.Len())
			}
		})
	}
}

// TestConversations_AtRandom is FuzzConversation for those who don't fuzz.
func TestConversations_AtRandom(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 11))
	for range 400 {
		steps := hello()
		for range 1 + rnd.IntN(40) {
			dir := wire.Direction(rnd.IntN(2))
			steps = append(steps, step{dir, alphabet[dir][rnd.IntN(len(alphabet[dir]))]})
		}
		checkConversation(t, steps)
	}
}

func TestCodec_NothingPanics(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 5))
	var k codec
	for range 20_000 {
		b := make([]byte, rnd.IntN(24))
		for i := range b {
			b[i] = byte(rnd.IntN(1 << rnd.IntN(9))) // small values more often: lengths, NULs
		}
		k.parsed(b)
		k.executed(b)
		k.described(b)
		k.closedName(b)
		k.readyStatus(b)
		k.parameterStatus(b)
		k.errorCode(b)
		k.noticed(b)
	}
	if err := guard(broken{}, nil); err == nil {
		t.Error("a decoder that panics is no error")
	}
}

type broken struct{}

func (broken) Decode(b []byte) error { return fmt.Errorf("%d", b[7]) }

func TestEncodeError_IsReadAsSent(t *testing.T) {
	b := EncodeError("ERROR", "40001", "could not\x00 serialize")
	got := run(t, append(hello(), c(query("SELECT 1")), s(b, ready('I')))...)
	wantBriefs(t, got, "startup ok", "SELECT error=40001")
	for _, want := range []string{"SERROR\x00", "VERROR\x00", "C40001\x00", "Mcould not serialize\x00\x00"} {
		if !bytes.Contains(b, []byte(want)) {
			t.Errorf("%q lacks %q", b, want)
		}
	}
}
