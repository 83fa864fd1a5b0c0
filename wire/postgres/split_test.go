package postgres

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wirewait/wirewait/internal/testenv"
	"github.com/wirewait/wirewait/wire"
)

// full is all of an exchange that must not depend on how the streams were cut
// or which was read first.
func full(x *wire.Exchange) string {
	p := x.Postgres
	peer := "nobody"
	if x.Peer != nil {
		peer = fmt.Sprintf("%+v", *x.Peer)
	}
	return fmt.Sprintf("%d %s | %d %d | %q %q %q %v %q %c %v | %q %v | %s %s",
		x.Ordinal, brief(x), x.Sides[wire.ToServer].Bytes, x.Sides[wire.ToClient].Bytes,
		p.Tag, p.Keyword, p.Summary, p.Parameterised, x.Statement, p.TxStatus, p.Shared,
		x.Traceparent, x.TraceparentReused, x.Database, peer)
}

func fulls(xs []*wire.Exchange) string {
	var b strings.Builder
	for _, x := range xs {
		b.WriteString(full(x))
		b.WriteByte('\n')
	}
	return b.String()
}

// order is a way to feed steps.
type order struct {
	name string
	feed func(p *player, steps []step)
}

func orders() []order {
	rnd := rand.New(rand.NewPCG(1, 2))
	return []order{
		{"as sent", func(p *player, steps []step) { p.play(steps...) }},
		{"byte by byte", func(p *player, steps []step) {
			cutUp(p, steps, func(int) int { return 1 })
		}},
		{"random cuts", func(p *player, steps []step) {
			cutUp(p, steps, func(n int) int { return 1 + rnd.IntN(min(n, 1+rnd.IntN(60))) })
		}},
		{"client first", func(p *player, steps []step) {
			for _, dir := range []wire.Direction{wire.ToServer, wire.ToClient} {
				for _, st := range steps {
					if st.dir == dir {
						p.play(st)
					}
				}
			}
		}},
		{"client first, whole", func(p *player, steps []step) {
			var both [2][]byte
			for _, st := range steps {
				both[st.dir] = append(both[st.dir], st.b...)
			}
			p.play(step{wire.ToServer, both[0]}, step{wire.ToClient, both[1]})
		}},
		{"replies decoded before requests", func(p *player, steps []step) { decodeLate(p, steps, wire.ToServer) }},
		{"requests decoded before replies", func(p *player, steps []step) { decodeLate(p, steps, wire.ToClient) }},
	}
}

func cutUp(p *player, steps []step, size func(left int) int) {
	for _, st := range steps {
		for b := st.b; len(b) > 0; {
			n := min(size(len(b)), len(b))
			p.now += 100
			p.read(st.dir, b[:n])
			b = b[n:]
		}
	}
}

// decodeLate decodes one direction only after the other's bytes that follow.
func decodeLate(p *player, steps []step, late wire.Direction) {
	type read struct {
		b      []byte
		pieces []wire.Piece
	}
	var held []read
	for _, st := range steps {
		p.now += 100
		pieces := p.frame(st.dir, st.b)
		if st.dir == late {
			held = append(held, read{st.b, pieces})
			continue
		}
		p.s.Decode(st.dir, st.b, pieces)
		for _, h := range held {
			p.s.Decode(late, h.b, h.pieces)
		}
		held = nil
	}
	for _, h := range held {
		p.s.Decode(late, h.b, h.pieces)
	}
}

// sameInAnyOrder plays steps in all orders and wants the same exchanges.
func sameInAnyOrder(t *testing.T, steps []step) {
	t.Helper()
	want := ""
	for i, o := range orders() {
		p := newPlayer(t, wire.Options{Text: wire.TextRaw})
		o.feed(p, steps)
		p.s.End()
		if n := p.s.Open().Len(); n != 0 {
			t.Errorf("%s: %d exchanges were never emitted", o.name, n)
		}
		p.unchanged()
		got := fulls(p.got)
		if i == 0 {
			want = got
			continue
		}
		if got != want {
			t.Errorf("%s:\n%s\nas sent:\n%s", o.name, got, want)
		}
	}
}

// TestCapturesInAnyOrder replays recorded connections as they went over the
// wire, and otherwise.
func TestCapturesInAnyOrder(t *testing.T) {
	dir := testenv.Captures(t)
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.index.json"))
	if err != nil || len(files) == 0 {
		t.Fatal("no lists of captures")
	}
	n := 0
	for _, f := range files {
		var list struct {
			Connections []struct {
				Name, Protocol string
				TLS            bool
				Trouble        []any `json:"decode_trouble"`
				Turns          [][4]any
			}
		}
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &list); err != nil {
			t.Fatal(err)
		}
		for _, conn := range list.Connections {
			if conn.Protocol != "postgres" || conn.TLS || len(conn.Trouble) > 0 {
				continue
			}
			n++
			t.Run(conn.Name, func(t *testing.T) {
				var bytes [2][]byte
				for d, suffix := range []string{".c2s.bin", ".s2c.bin"} {
					bytes[d], _ = os.ReadFile(filepath.Join(dir, conn.Name+suffix))
				}
				var steps []step
				for _, turn := range conn.Turns {
					d := wire.ToServer
					if turn[1] == "s" {
						d = wire.ToClient
					}
					from := int(turn[2].(float64))
					steps = append(steps, step{d, bytes[d][from : from+int(turn[3].(float64))]})
				}
				sameInAnyOrder(t, steps)
			})
		}
	}
	if n < 30 {
		t.Fatalf("%d connections", n)
	}
}
