package proxy

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/wirewait/wirewait/wire"
)

// speaks is how a protocol's conversations are made and what is read of them.
var speaks = map[wire.Protocol]struct {
	talk  func(*dice) *talk
	label func(*wire.Exchange) string
}{
	wire.MongoDB:  {mongoTalk, mongoLabel},
	wire.Postgres: {postgresTalk, postgresLabel},
}

// playTalk has a conversation through a pump: the bytes come out as they went
// in, and every exchange has its own request and its own reply.
func playTalk(t *testing.T, protocol wire.Protocol, detect bool, script []byte) {
	t.Helper()
	d := newDice(script)
	talk := speaks[protocol].talk(d)
	options := wire.Options{
		Text:    wire.TextRaw,
		Inflate: &budget{limit: inflateLimit},
		Trouble: func(reason string) { t.Errorf("trouble: %s", reason) },
	}
	name := protocol
	if detect {
		name = ""
	}
	session, err := NewSession(name, options)
	if err != nil {
		t.Fatal(err)
	}
	lines := &budget{limit: 1 << 20}
	p := newPlay(t, d, talk, session, lines)
	p.run()
	for dir := range p.ways {
		if !bytes.Equal(p.ways[dir].out, talk.all[dir]) {
			t.Errorf("%s: %d bytes of %d, or others", wire.Direction(dir), len(p.ways[dir].out), len(talk.all[dir]))
		}
		if stage := p.ways[dir].stage; stage != nil {
			stage()
		}
	}
	if err := session.Opaque(); err != nil {
		t.Errorf("opaque: %v", err)
	}
	if n := session.Open().Len(); n != 0 {
		t.Errorf("%d exchanges are open", n)
	}
	if lost := p.pump.Close(); lost != 0 || lines.used.Load() != 0 {
		t.Errorf("%d bytes lost, %d of the budget still taken", lost, lines.used.Load())
	}
	checkExchanges(t, p.got, talk.want, speaks[protocol].label)
}

func checkExchanges(t *testing.T, got []wire.Exchange, want []string, label func(*wire.Exchange) string) {
	t.Helper()
	var labels []string
	for i := range got {
		x := &got[i]
		labels = append(labels, label(x))
		checkStamps(t, x)
	}
	slices.Sort(labels)
	slices.Sort(want)
	for i := range max(len(labels), len(want)) {
		g, w := "none", "none"
		if i < len(labels) {
			g = labels[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Fatalf("%d exchanges, %d expected; in order the first that differs is\n%s\nwant\n%s", len(labels), len(want), abbreviate(g), abbreviate(w))
		}
	}
}

func abbreviate(s string) string {
	if len(s) > 400 {
		return s[:200] + " ... " + s[len(s)-200:]
	}
	return s
}

// checkStamps: what happened to an exchange happened in order.
func checkStamps(t *testing.T, x *wire.Exchange) {
	t.Helper()
	for dir := range x.Sides {
		s := &x.Sides[dir]
		if s.Bytes > 0 && (s.FirstIn == 0 || s.FirstIn > s.LastIn || s.LastIn > s.LastOut) {
			t.Errorf("%d, %s: first in %d, last in %d, last out %d", x.Ordinal, wire.Direction(dir), s.FirstIn, s.LastIn, s.LastOut)
		}
	}
	request, reply := &x.Sides[wire.ToServer], &x.Sides[wire.ToClient]
	if x.Answered && (reply.Bytes == 0 || reply.LastIn < request.FirstIn) {
		t.Errorf("%d: the reply came in at %d, the request at %d", x.Ordinal, reply.LastIn, request.FirstIn)
	}
}

// TestSession_Conversations plays the same as the fuzz targets, from seeds.
func TestSession_Conversations(t *testing.T) {
	runs := 200
	if testing.Short() {
		runs = 30
	}
	for protocol := range speaks {
		for seed := range runs {
			script := make([]byte, seed)
			_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(script)
			if !t.Run(fmt.Sprintf("%s/%d", protocol, seed), func(t *testing.T) {
				playTalk(t, protocol, seed%4 == 0, script)
			}) {
				return
			}
		}
	}
}

func FuzzMongoConversation(f *testing.F)    { fuzzConversation(f, wire.MongoDB) }
func FuzzPostgresConversation(f *testing.F) { fuzzConversation(f, wire.Postgres) }

func fuzzConversation(f *testing.F, protocol wire.Protocol) {
	f.Add([]byte{}, false)
	f.Add([]byte(strings.Repeat("\x00\x01\x02\x03\x04\x05\x06\x07", 20)), true)
	f.Add(bytes.Repeat([]byte{0}, 100), false)
	f.Add(bytes.Repeat([]byte{255, 3, 7}, 60), true)
	f.Fuzz(func(t *testing.T, script []byte, detect bool) {
		playTalk(t, protocol, detect, script)
	})
}
