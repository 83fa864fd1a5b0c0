package trace

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wirewait/wirewait/wire"
)

// sample is one from from to to, in seconds after start.
func sample(start time.Time, from, to float64, set map[Measure]float64) *Activity {
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	a := &Activity{From: at(from), To: at(to)}
	for m, v := range set {
		a.Set(m, v)
	}
	return a
}

func TestActivities_WhatOverlapsAWrite(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	var s Activities
	s.Watch("pg.p", time.Second)
	s.Add("pg.p", sample(start, 0, 1, map[Measure]float64{Checkpoint: 0, TicketsQueued: 9, TicketsAvailable: 3}))
	s.Add("pg.p", sample(start, 1, 2, map[Measure]float64{Checkpoint: 1, TicketsQueued: 4, TicketsAvailable: 0}))
	s.Add("pg.p", sample(start, 2, 3, map[Measure]float64{Checkpoint: 0, TicketsQueued: 5, TicketsAvailable: 7, JournalTime: 8}))
	s.Add("other", sample(start, 0, 9, map[Measure]float64{Checkpoint: 1})) // which nobody watches
	for _, c := range []struct {
		name    string
		out, in float64
		want    string // samples, age, checkpoint, queued, available, journal
	}{
		{"inside one", 1.2, 1.4, "1 -600ms 1 4 0 0"},
		{"over the border of two", 1.9, 2.1, "2 -900ms 1 5 0 8"},
		{"over all", 0.5, 2.5, "3 -500ms 1 9 0 8"},
		{"longer than all there is", -1, 3.5, "3 500ms 1 9 0 8"},
		{"after the newest", 3.2, 3.4, "1 400ms 0 5 7 8"},
		{"before the first", -3, -2, "0 0s 0 0 0 0"},
		{"when the newest is old", 7, 7.1, "0 0s 0 0 0 0"},
		{"no time at all, at a border", 2, 2, "1 0s 1 4 0 0"},
	} {
		var m Meanwhile
		s.during("pg.p", at(c.out), at(c.in), &m)
		got := fmt.Sprint(m.Samples, " ", m.Age)
		for _, of := range []Measure{Checkpoint, TicketsQueued, TicketsAvailable, JournalTime} {
			v, _ := m.Get(of)
			got += fmt.Sprint(" ", v)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	var m Meanwhile
	if s.during("other", at(1), at(2), &m); m.Samples != 0 || len(s.Latest("other", 9)) != 0 {
		t.Error("a server that nobody watches has samples")
	}
	if n := len(s.Latest("pg.p", 2)); n != 2 || fmt.Sprint(s.Servers()) != "[pg.p]" {
		t.Errorf("%d of the latest two, servers %v", n, s.Servers())
	}
	s.Forget("pg.p")
	if s.during("pg.p", at(1), at(2), &m); m.Samples != 0 || s.watched.Load() != 0 {
		t.Error("a forgotten server is remembered")
	}
}

func TestActivities_AreBounded(t *testing.T) {
	t.Parallel()
	var s Activities
	s.Watch("a", time.Second)
	for i := range 500 {
		s.Add("a", sample(time.Time{}, float64(i), float64(i+1), nil))
	}
	list := s.Latest("a", 1000)
	if len(list) != keptActivities || list[len(list)-1].To != (time.Time{}).Add(500*time.Second) {
		t.Errorf("%d samples are kept, the last to %v", len(list), list[len(list)-1].To)
	}
}

// TestTracer_WritesWaitForTheSampleAfterThem: so that it covers all their time;
// others don't wait, and none waits for ever.
func TestTracer_WritesWaitForTheSampleAfterThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		type seen struct {
			m  Meanwhile
			at time.Duration
		}
		got := map[string]seen{}
		tr := New(100, consumerFunc(func(f *Finished) {
			got[f.Conn.To] = seen{f.Meanwhile, time.Since(start)}
		}))
		defer tr.Close()
		for _, server := range []string{"rs.a", "rs.silent"} {
			tr.Activities().Watch(server, time.Second)
		}
		write := func(to string) {
			now := wire.Stamp(time.Since(start).Milliseconds())
			x := exchange(now-2, now-2, now-2, now, now, now)
			tr.Offer(x, &Conn{To: to, Epoch: start})
		}
		tr.Activities().Add("rs.a", sample(start, -1, 0, map[Measure]float64{FlowControl: 0}))
		time.Sleep(time.Second / 2)
		write("rs.a")
		write("rs.silent")
		write("rs.other")
		time.Sleep(time.Second/2 + time.Millisecond)
		tr.Activities().Add("rs.a", sample(start, 0, 1, map[Measure]float64{FlowControl: 1}))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		a, silent, other := got["rs.a"], got["rs.silent"], got["rs.other"]
		if v, _ := a.m.Get(FlowControl); v != 1 || a.m.Samples != 1 || a.m.Age > -490*time.Millisecond || a.m.Age < -510*time.Millisecond {
			t.Errorf("%d samples, flow control %v, aged %v", a.m.Samples, v, a.m.Age)
		}
		if silent.m.Samples != 0 || silent.at == 0 || silent.at > 2*time.Second {
			t.Errorf("without samples: %d of them, handled after %v", silent.m.Samples, silent.at)
		}
		if other.m.Samples != 0 || other.at == 0 {
			t.Errorf("of a server that nobody watches: %d samples, handled after %v", other.m.Samples, other.at)
		}
	})
}

func TestMeasures_AreAllDescribed(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, m := range Measures() {
		if m.String() == "" || m.About() == "" || names[m.String()] {
			t.Errorf("measure %d: name %q, about %q", m, m, m.About())
		}
		names[m.String()] = true
	}
}

// BenchmarkActivities_During is what a write costs whose server is watched: whether
// to wait for a sample, and what overlaps it.
func BenchmarkActivities_During(b *testing.B) {
	var s Activities
	start := time.Now()
	s.Watch("rs0.a", time.Second)
	for i := range keptActivities {
		a := sample(start, float64(i), float64(i+1), nil)
		for _, m := range Measures() {
			a.Set(m, 1)
		}
		s.Add("rs0.a", a)
	}
	in := start.Add((keptActivities - 1) * time.Second)
	var m Meanwhile
	b.ReportAllocs()
	for b.Loop() {
		s.awaits("rs0.a", in, 0)
		s.during("rs0.a", in.Add(-5*time.Millisecond), in, &m)
	}
	if m.Samples == 0 {
		b.Fatal("nothing overlaps")
	}
}
