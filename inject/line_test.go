package inject

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/wirewait/wirewait/wire"
)

func TestLine_WritesWhatIsDueInOrder(t *testing.T) {
	var l Line
	l.Push(l.Clamp(10), []byte("ab"))
	l.Push(l.Clamp(10), []byte("cd"))
	l.Push(l.Clamp(5), []byte("ef")) // an earlier due time never overtakes
	l.Push(l.Clamp(20), []byte("gh"))
	if v := l.Due(9, 1<<20, nil); len(v) != 0 {
		t.Fatalf("due at 9: %q, want nothing", v)
	}
	if v := l.Due(10, 1<<20, nil); len(v) != 1 || string(v[0]) != "abcdef" {
		t.Fatalf("due at 10: %q, want one run abcdef", v)
	}
	l.Wrote(5, 0)
	if v := l.Due(19, 1<<20, nil); string(bytes.Join(v, nil)) != "f" || l.Next() != 10 {
		t.Fatalf("after 5 bytes: %q next %d", v, l.Next())
	}
	l.Wrote(1, 0)
	l.Close(15, EndEOF)
	if l.Next() != 20 || l.Ended(20) != EndNone {
		t.Fatalf("the end must wait for the bytes before it: next %d", l.Next())
	}
	l.Wrote(2, 0)
	if l.Ended(19) != EndNone || l.Ended(20) != EndEOF || !l.Empty() || l.Bytes() != 0 {
		t.Fatalf("the end is due with the last byte: %v", l.Ended(20))
	}
}

func TestLine_LateBytesAreThoseThatWereDue(t *testing.T) {
	var l Line
	l.Push(10, []byte("abcd"))
	l.Push(20, []byte("efgh"))
	for _, c := range []struct {
		now  wire.Stamp
		n    int
		late bool
	}{{9, 1, false}, {10, 4, true}, {10, 5, false}, {19, 5, false}, {20, 5, true}, {20, 8, true}, {20, 9, false}} {
		if got := l.Late(c.now, c.n); got != c.late {
			t.Errorf("%d bytes late at %d: %v, want %v", c.n, c.now, got, c.late)
		}
	}
	l.Wrote(6, 0)
	if !l.Late(20, 2) || l.Late(20, 3) || l.Late(19, 1) {
		t.Error("what was written is late no more")
	}
}

func TestLine_GivesAdoptedBuffersBackOnce(t *testing.T) {
	var freed int
	l := Line{Free: func([]byte) { freed++ }}
	a := l.Adopt([]byte("0123456789"))
	l.PushAdopted(1, a, 0, 4)
	l.PushAdopted(2, a, 4, 10)
	l.Wrote(10, 0)
	if freed != 0 {
		t.Fatal("freed while its reader still decodes")
	}
	l.Done(a)
	if freed != 1 {
		t.Fatalf("freed %d times", freed)
	}
	b := l.Adopt([]byte("x"))
	l.PushAdopted(3, b, 0, 1)
	l.Done(b)
	if n := l.Drop(); n != 1 || freed != 2 {
		t.Fatalf("dropped %d, freed %d", n, freed)
	}
}

func TestLine_KeepsEveryByteUnderAnyUse(t *testing.T) {
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var l Line
		var in, out []byte
		now := wire.Stamp(1)
		for range 300 {
			switch rnd.IntN(3) {
			case 0:
				b := make([]byte, rnd.IntN(3000)+1)
				for i := range b {
					b[i] = byte(rnd.Uint32())
				}
				in = append(in, b...)
				l.Push(l.Clamp(now+wire.Stamp(rnd.IntN(50))), b)
			case 1:
				b := make([]byte, rnd.IntN(40000)+2)
				b[0] = byte(rnd.Uint32())
				in = append(in, b...)
				a := l.Adopt(b)
				l.PushAdopted(l.Clamp(now+wire.Stamp(rnd.IntN(50))), a, 0, 1)
				l.PushAdopted(l.Clamp(now+wire.Stamp(rnd.IntN(50))), a, 1, len(b))
				l.Done(a)
			case 2:
				v := bytes.Join(l.Due(now, rnd.IntN(100000)+1, nil), nil)
				v = v[:rnd.IntN(len(v)+1)]
				out = append(out, v...)
				l.Wrote(len(v), 0)
			}
			now += wire.Stamp(rnd.IntN(20))
		}
		out = append(out, bytes.Join(l.Due(now+100, 1<<30, nil), nil)...)
		if !bytes.Equal(in, out) {
			t.Fatalf("seed %d: %d bytes in, %d out", seed, len(in), len(out))
		}
	}
}

func TestDraw_StaysInBoundsAndRepeats(t *testing.T) {
	d := Delay{Base: 3 * time.Millisecond, Jitter: 5 * time.Millisecond}
	a, b := NewSource(7, "orders", 3, wire.ToClient), NewSource(7, "orders", 3, wire.ToClient)
	other := NewSource(7, "orders", 4, wire.ToClient)
	var sum time.Duration
	differs, zero := false, 0
	const n = 20000
	for range n {
		x := d.Draw(a)
		if x != d.Draw(b) {
			t.Fatal("the same key must give the same draws")
		}
		differs = differs || x != d.Draw(other)
		if x < 0 || x > 8*time.Millisecond {
			t.Fatalf("drew %v", x)
		}
		if x == 0 {
			zero++
		}
		sum += x
	}
	if !differs {
		t.Fatal("another connection must draw otherwise")
	}
	// Uniform over [-2, 8] ms with what is below zero at zero: a fifth is zero
	// and the mean is 0.8 * 4 = 3.2 ms.
	if mean := sum / n; mean < 3100*time.Microsecond || mean > 3300*time.Microsecond {
		t.Fatalf("mean %v", mean)
	}
	if zero < n*18/100 || zero > n*22/100 {
		t.Fatalf("%d of %d were zero", zero, n)
	}
}
