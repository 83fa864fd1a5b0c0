package inject

import (
	"testing"
	"time"

	"github.com/wirewait/wirewait/wire"
)

// TestLine_TalliesWhatWasHeld: planned is due less arrival, achieved what the
// departure says; what was due on arrival was not held.
func TestLine_TalliesWhatWasHeld(t *testing.T) {
	const ms = wire.Stamp(time.Millisecond)
	var l Line
	l.Arrived(1000 * ms)
	l.Push(1040*ms, []byte("abc"))
	l.Arrived(1010 * ms)
	l.Push(1050*ms, []byte("de"))
	l.PushFront(1010*ms, []byte("x"))
	l.Wrote(1, 1012*ms)
	l.Wrote(2, 1041*ms) // not all of the first
	if l.Held != (Tally{}) {
		t.Errorf("%+v before a run has left whole", l.Held)
	}
	l.Wrote(3, 1055*ms)
	want := Tally{Runs: 2, Planned: 0.080, Achieved: 0.055 + 0.045, MaxError: 15 * time.Millisecond}
	if got := l.Held; got.Runs != want.Runs || got.MaxError != want.MaxError || !near(got.Planned, want.Planned) || !near(got.Achieved, want.Achieved) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func near(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }
