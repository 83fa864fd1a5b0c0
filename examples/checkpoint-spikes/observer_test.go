package main

import (
	"slices"
	"testing"
	"time"

	"github.com/wirewait/wirewait/internal/study"
)

// at is a sample of a second.
func at(second int, timed, requested int64, spent float64) sample {
	return sample{at: time.Duration(second) * time.Second, timed: timed, requested: requested, spent: spent}
}

func TestCheckpoints(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		what    string
		samples []sample
		want    []checkpoint
	}{
		{"none", []sample{at(0, 5, 5, 100), at(1, 5, 5, 100)}, nil},
		{"counted when it begins, its time added when it ends",
			[]sample{at(0, 5, 0, 100), at(1, 6, 0, 100), at(2, 6, 0, 100), at(3, 6, 0, 1900), at(4, 6, 0, 1900)},
			[]checkpoint{{0, 3 * s, false}}},
		{"begun and ended between two samples",
			[]sample{at(0, 5, 0, 100), at(1, 5, 1, 130), at(2, 5, 1, 130)},
			[]checkpoint{{0, s, true}}},
		{"one ends, and the next has begun",
			[]sample{at(0, 0, 0, 0), at(1, 1, 0, 0), at(2, 1, 1, 900), at(3, 1, 1, 900), at(4, 1, 1, 1500)},
			[]checkpoint{{0, 2 * s, false}, {s, 4 * s, true}}},
		{"still running at the end",
			[]sample{at(0, 0, 0, 0), at(1, 0, 1, 0), at(2, 0, 1, 0)},
			[]checkpoint{{0, 2 * s, true}}},
	} {
		p := &phase{samples: c.samples}
		if got := p.checkpoints(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

func TestWindows_HoldWhatWasDueInThem(t *testing.T) {
	p := &phase{
		samples: []sample{at(0, 0, 0, 0), at(1, 0, 0, 0), at(2, 0, 0, 0), at(3, 0, 0, 0)},
		writes:  []study.Timed{{Due: 0, Took: 1}, {Due: 900 * time.Millisecond, Took: 2}, {Due: time.Second, Took: 3}},
	}
	got := p.windows()
	if len(got) != 2 || len(got[0].Latencies) != 2 || len(got[1].Latencies) != 1 {
		t.Errorf("%v", got)
	}
	if !within([]checkpoint{{time.Second, 2 * time.Second, true}}, time.Second) || within([]checkpoint{{0, time.Second, true}}, time.Second) {
		t.Error("a checkpoint's end belongs to it, or its beginning doesn't")
	}
}
