package postgres

import (
	"testing"

	"github.com/wirewait/wirewait/wire"
)

// A driver prepares in a round of its own, sends a bare Sync, and executes: in
// a ledger every byte after the start-up stands with the exchange before it.
func TestLedger_CountsEveryByteBetweenExchanges(t *testing.T) {
	prepare := [][]byte{parse("s1", "select 1"), describe("S", "s1"), sync()}
	prepared := [][]byte{msg('1'), msg('t', 0, 0), msg('n'), ready('I')}
	run1 := [][]byte{bind("", "s1"), execute(""), sync()}
	ran := [][]byte{msg('2'), datum(), tag("SELECT 1"), ready('I')}
	steps := append(hello("user", "u"),
		c(query("begin")), s(tag("BEGIN"), ready('T')),
		c(prepare...), s(prepared...),
		c(sync()), s(ready('T')),
		c(run1...), s(ran...),
		c(prepare...), s(prepared...),
	)
	size := func(m ...[][]byte) (n int64) {
		for _, m := range m {
			n += int64(len(join(m)))
		}
		return n
	}
	first := []int64{size([][]byte{query("begin")}, prepare, [][]byte{sync()}), size([][]byte{tag("BEGIN"), ready('T')}, prepared, [][]byte{ready('T')})}
	second := []int64{size(run1, prepare), size(ran, prepared)}

	for _, ledger := range []bool{true, false} {
		xs := runWith(t, wire.Options{Ledger: ledger}, steps...)
		if len(xs) != 3 {
			t.Fatalf("ledger %v: %d exchanges", ledger, len(xs))
		}
		for i, want := range [][]int64{first, second} {
			for dir, n := range want {
				if got := xs[i+1].Sides[dir].Bytes; (got == n) != ledger {
					t.Errorf("ledger %v, exchange %d %v: %d bytes, all between are %d", ledger, i+1, wire.Direction(dir), got, n)
				}
			}
		}
	}
}
