package study

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestMedianRank_CoversTheMedian(t *testing.T) {
	// The tables of the sign test: n, and how many may be cut at each end.
	for _, c := range []struct{ n, k int }{{1, 0}, {5, 0}, {6, 0}, {8, 0}, {9, 1}, {12, 2}, {15, 3}, {20, 5}, {25, 7}} {
		if got := spreadCut(c.n); got != c.k {
			t.Errorf("of %d samples %d are cut at each end, want %d", c.n, got, c.k)
		}
	}
}

// spreadCut reads off Spread itself which order statistics it took.
func spreadCut(n int) int {
	s := make([]float64, n)
	for i := range s {
		s[i] = float64(i)
	}
	return int(SpreadOf(s).Low)
}

func TestSpread_HoldsTheTrueMedianAsOftenAsItSays(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const trials = 4000
	held := 0
	for range trials {
		s := make([]float64, 12)
		for i := range s {
			s[i] = math.Exp(r.NormFloat64()) // skewed, median 1
		}
		if got := SpreadOf(s); got.Low <= 1 && 1 <= got.High {
			held++
		}
	}
	if held < trials*94/100 {
		t.Errorf("the interval held the median in %d of %d trials", held, trials)
	}
}

func TestSpread_Values(t *testing.T) {
	in := []float64{9, 1, 3, 7, 5}
	got := SpreadOf(in)
	if got != (Spread{Median: 5, Low: 1, High: 9, Rounds: 5}) {
		t.Errorf("spread is %+v", got)
	}
	if in[0] != 9 {
		t.Error("the samples were reordered")
	}
	if s := SpreadOf(nil).String(); s != "-" {
		t.Errorf("nothing measured prints %q", s)
	}
	if s := SpreadOf([]float64{36.2345, 35.81, 37}).String(); s != "36.2 [35.8, 37.0]" {
		t.Errorf("three rounds print %q", s)
	}
	if s := SpreadOf([]float64{59807}).String(); s != "59807" {
		t.Errorf("a count prints %q", s)
	}
}

func TestQuantile(t *testing.T) {
	s := []float64{0, 10, 20, 30}
	for q, want := range map[float64]float64{0: 0, 0.5: 15, 1: 30, 0.1: 3} {
		if got := Quantile(s, q); math.Abs(got-want) > 1e-9 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if !math.IsNaN(Quantile(nil, 0.5)) {
		t.Error("the quantile of nothing is a number")
	}
}

func TestRatios_PairRounds(t *testing.T) {
	got := Ratios([]float64{2, 9, 4}, []float64{1, 3, 0})
	if len(got) != 2 || got[0] != 2 || got[1] != 3 {
		t.Errorf("ratios are %v", got)
	}
}
