package inject

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/wirewait/wirewait/wire"
)

func TestShift_MovesByNoMoreThanItsRate(t *testing.T) {
	at := func(d time.Duration) wire.Stamp { return wire.Stamp(time.Hour + d) }
	var s Shift
	for _, step := range []struct {
		now, goal time.Duration
		rate      float64
		want      map[time.Duration]time.Duration
	}{
		{0, 4 * time.Second, 0.5, map[time.Duration]time.Duration{
			-1: 0, 0: 0, time.Second: 500 * time.Millisecond, 7999999998: 3999999999, 8 * time.Second: 4 * time.Second, time.Hour: 4 * time.Second,
		}},
		{10 * time.Second, 5 * time.Second, 0.25, map[time.Duration]time.Duration{
			10 * time.Second: 4 * time.Second, 12 * time.Second: 4500 * time.Millisecond, 20 * time.Second: 5 * time.Second,
		}},
		{12 * time.Second, time.Second, 1, map[time.Duration]time.Duration{ // from where it was
			12 * time.Second: 4500 * time.Millisecond, 14 * time.Second: 2500 * time.Millisecond, 16 * time.Second: time.Second,
		}},
		{16 * time.Second, 0, 0.5, map[time.Duration]time.Duration{17 * time.Second: 500 * time.Millisecond, 18 * time.Second: 0}},
	} {
		s.Aim(at(step.now), step.goal, step.rate)
		for now, want := range step.want {
			if got := s.At(at(now)); got != want {
				t.Errorf("to %v from %v on: at %v it's %v, want %v", step.goal, step.now, now, got, want)
			}
		}
	}
	if s.Over(at(18*time.Second-1)) || !s.Over(at(18*time.Second)) {
		t.Error("it's over when nothing is left of it")
	}
	if got := (&Shift{}).At(5); got != 0 || !(&Shift{}).Over(5) {
		t.Errorf("the zero value is %v", got)
	}
}

// Whatever it's aimed at and when, what comes later is due no earlier, and a gap
// grows by no more than the ramp.
func TestShift_KeepsTheOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var s Shift
	now, due := wire.Stamp(1), wire.Stamp(0)
	for range 100_000 {
		if rnd.IntN(20) == 0 {
			s.Aim(now, time.Duration(rnd.Int64N(int64(10*time.Second))), rnd.Float64())
		}
		gap := time.Duration(rnd.Int64N(int64(200 * time.Millisecond)))
		now = now.Add(gap)
		next := now.Add(s.At(now))
		if due != 0 && (next < due-1 || next.Sub(due) > 2*gap+1) { // a nanosecond is rounded
			t.Fatalf("what came at %d is due at %d, after what's due at %d", now, next, due)
		}
		due = next
	}
}

func TestLag_Check(t *testing.T) {
	good := Rule{Name: "a", Effect: EffectLag, With: With{Delay: time.Second}}
	for _, r := range []Rule{
		good,
		{Name: "a", Effect: EffectLag, With: With{Delay: time.Second, Ramp: 1, Acknowledgements: true}},
		{Name: "a", Effect: EffectLag, When: When{From: []string{"rs0.b"}, Application: []string{"s1"}, User: []string{"rep"}}, With: With{Delay: time.Second}},
	} {
		if err := r.Check(); err != nil {
			t.Errorf("%+v: %v", r, err)
		}
	}
	for _, spoil := range []func(*Rule){
		func(r *Rule) { r.With.Delay = 0 },
		func(r *Rule) { r.With.Ramp = 1.5 },
		func(r *Rule) { r.With.Ramp = -0.1 },
		func(r *Rule) { r.With.Ramp = 1e-9 }, // it would never get there
		func(r *Rule) { r.With.Jitter = 1 },
		func(r *Rule) { r.When.Command = []string{"getMore"} },
		func(r *Rule) { r.When.Database = []string{"local"} },
		func(r *Rule) { r.When.WriteConcern = []Concern{{W: "1"}} },
		func(r *Rule) { r.When.Direction = OnlyToClient },
		func(r *Rule) { r.When.Monitors = true },
		func(r *Rule) { r.Effect = EffectLatency; r.With.Ramp = 0.5 },
		func(r *Rule) { r.Effect = EffectLatency; r.With.Acknowledgements = true },
	} {
		r := good
		if spoil(&r); r.Check() == nil {
			t.Errorf("%+v is no problem", r)
		}
	}
}

// Whose stream a connection is takes no message to be looked into.
func TestLag_NeedsNoLookInside(t *testing.T) {
	c := compile(1, 0, Rule{Name: "a", Effect: EffectLag, When: When{Application: []string{"s1"}}, With: With{Delay: time.Second}})
	if c.Inspect(true) || c.Inspect(false) {
		t.Error("messages must be inspected")
	}
	if got := c.names(EffectLag, Subject{Application: "s1", User: "rep"}, 1) + c.names(EffectLag, Subject{Application: "s2"}, 1); got != "a" {
		t.Errorf("%q matches", got)
	}
}
