package chart

import "testing"

func TestLinear_HoldsZeroAndAllValues(t *testing.T) {
	for _, c := range []struct {
		values    []float64
		low, high float64
		ticks     int
	}{
		{[]float64{0.9, 1.6}, 0, 2, 5},
		{[]float64{-3160, 2594}, -4000, 4000, 5},
		{[]float64{0, 0}, 0, 1, 6},
		{nil, 0, 1, 6},
		{[]float64{-1}, -1, 0, 6},
	} {
		s, ticks := linear(c.values, 0, 100)
		if s.low != c.low || s.high != c.high || len(ticks) != c.ticks || ticks[0] != c.low {
			t.Errorf("%v: from %v to %v, ticks %v", c.values, s.low, s.high, ticks)
		}
		for _, v := range c.values {
			if at := s.at(v); at < 0 || at > 100 {
				t.Errorf("%v: %v is drawn at %v", c.values, v, at)
			}
		}
	}
}

func TestLogarithmic_HoldsWhatIsAboveZero(t *testing.T) {
	for _, c := range []struct {
		values []float64
		ticks  []float64
	}{
		{[]float64{0.3, 20}, []float64{0.1, 1, 10, 100}},
		{[]float64{0, 5}, []float64{1, 10}},
		{[]float64{1, 1}, []float64{1, 10}},
		{nil, []float64{1, 10}},
	} {
		s, ticks := logarithmic(c.values, 100, 0)
		if len(ticks) != len(c.ticks) || ticks[0] != c.ticks[0] {
			t.Errorf("%v: ticks %v, want %v", c.values, ticks, c.ticks)
		}
		for _, v := range append(c.values, 0) {
			if at := s.at(v); at < 0 || at > 100 {
				t.Errorf("%v: %v is drawn at %v", c.values, v, at)
			}
		}
	}
}
