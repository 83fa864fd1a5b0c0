package proxy

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"github.com/wirewait/wirewait/wire"
)

// dice are the choices that make a conversation and its way through a pump: the
// script's bytes first, then what its hash seeds. The same script makes the
// same choices.
type dice struct {
	script []byte
	rnd    *rand.Rand
}

func newDice(script []byte) *dice {
	h := fnv.New64a()
	h.Write(script)
	return &dice{script, rand.New(rand.NewPCG(h.Sum64(), 1))}
}

// n is a number below limit.
func (d *dice) n(limit int) int {
	if limit > 256 || len(d.script) == 0 {
		return d.rnd.IntN(limit)
	}
	b := d.script[0]
	d.script = d.script[1:]
	return int(b) % limit
}

func (d *dice) one(in int) bool { return d.n(in) == 0 }

// bulk is at times more than a direction is assured of, else a size.
func (d *dice) bulk(limit int) int {
	if d.rnd.IntN(400) == 0 {
		return 1<<20 + d.n(1<<20)
	}
	return d.size(limit)
}

// size is mostly small and at times up to limit.
func (d *dice) size(limit int) int {
	if d.one(8) {
		return d.n(limit)
	}
	return d.n(200)
}

// talk is what both sides of a connection will say, and what a session is to
// make of it.
type talk struct {
	*dice
	chunks [2][]chunk
	all    [2][]byte
	want   []string // a label for each exchange
	ids    int
	// barrier: the client says nothing more until it got so many bytes.
	barrier int
}

// chunk is a message, said once its sender got so many of the other's bytes.
type chunk struct {
	b     []byte
	after int
}

// ask adds messages of the client and returns where they end in its stream.
func (k *talk) ask(b ...[]byte) (end int) { return k.say(wire.ToServer, k.barrier, b...) }

// answer adds messages of the server, sent once it got so many bytes.
func (k *talk) answer(after int, b ...[]byte) { k.say(wire.ToClient, after, b...) }

func (k *talk) say(dir wire.Direction, after int, b ...[]byte) (end int) {
	for _, m := range b {
		if len(m) == 0 {
			continue
		}
		k.chunks[dir] = append(k.chunks[dir], chunk{m, after})
		k.all[dir] = append(k.all[dir], m...)
	}
	return len(k.all[dir])
}

// wait makes the client wait for all answers so far.
func (k *talk) wait() { k.barrier = len(k.all[wire.ToClient]) }

func (k *talk) expect(format string, args ...any) {
	k.want = append(k.want, fmt.Sprintf(format, args...))
}

// id is one that no other statement or command of the talk has.
func (k *talk) id() int {
	k.ids++
	return 1000 + k.ids
}
