package cluster

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/internal/lab/mongod"
	"github.com/wirewait/wirewait/internal/study"
	"github.com/wirewait/wirewait/trace"
)

// watched are looks a second apart, each with a mark and a rate; a negative rate
// is one that the server didn't say.
func watched(looks ...[2]float64) *Watch {
	w := &Watch{begin: time.Unix(0, 0)}
	for i, x := range looks {
		a := &trace.Activity{From: time.Unix(int64(i), 0), To: time.Unix(int64(i+1), 0)}
		a.Set(trace.Checkpoint, x[0])
		if x[1] >= 0 {
			a.Set(trace.WriteConflicts, x[1])
		}
		w.all = append(w.all, a)
	}
	return w
}

func TestWatch_Series(t *testing.T) {
	const s = time.Second
	w := watched([2]float64{0, 10}, [2]float64{1, -1}, [2]float64{1, 30}, [2]float64{0, 20}, [2]float64{1, 0})
	if got := w.Marks(trace.Checkpoint); !slices.Equal(got, []Moment{{s, 3 * s, 1}, {4 * s, 5 * s, 1}}) {
		t.Errorf("marks %v", got)
	}
	if got := w.Series(trace.WriteConflicts); len(got) != 4 || got[1] != (Moment{2 * s, 3 * s, 30}) {
		t.Errorf("conflicts %v", got)
	}
	if sum, ok := w.Sum(trace.WriteConflicts); !ok || sum != 60 {
		t.Errorf("%v conflicts, %v", sum, ok)
	}
	if most, ok := w.Most(trace.WriteConflicts); !ok || most != 30 {
		t.Errorf("at most %v, %v", most, ok)
	}
	if _, ok := w.Most(trace.Tickets); ok {
		t.Error("what was never said has a value")
	}
	if _, ok := w.Sum(trace.Tickets); ok {
		t.Error("what was never said has a sum")
	}
}

func TestWatch_OfTheLab(t *testing.T) {
	var log strings.Builder
	r := &study.Run{Stdout: &log, Stderr: &log}
	m, err := StartMongo(t.Context(), r, []mongod.MemberOptions{{Name: "a"}}, mongod.Engine{Tickets: 7})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	w, err := m.Watch(t.Context(), &log, 5*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		if n, ok := w.Most(trace.Tickets); ok {
			if n != 7 {
				t.Errorf("%v tickets", n)
			}
			break
		}
		if err := study.Pause(ctx, 5*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Stop(); err != nil {
		t.Error(err)
	}
	if log.Len() > 0 {
		t.Errorf("it complains: %s", log.String())
	}
}
