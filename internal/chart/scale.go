package chart

import (
	"fmt"
	"math"
)

// scale is an axis from low to high, at pixels from to to. A logarithmic one
// has the decimal logarithms in low and high.
type scale struct {
	low, high, from, to float64
	logarithmic         bool
}

func (a scale) at(v float64) float64 {
	if a.logarithmic {
		v = math.Log10(max(v, math.Pow(10, a.low)))
	}
	return a.from + (v-a.low)/(a.high-a.low)*(a.to-a.from)
}

// linear is a scale that holds zero and all values, and its ticks.
func linear(values []float64, from, to float64) (scale, []float64) {
	low, high := 0.0, 0.0
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	if low == high {
		high = low + 1
	}
	step := tickStep((high - low) / 5)
	low, high = math.Floor(low/step)*step, math.Ceil(high/step)*step
	var ticks []float64
	for i := range int(math.Round((high-low)/step)) + 1 {
		ticks = append(ticks, low+float64(i)*step)
	}
	return scale{low: low, high: high, from: from, to: to}, ticks
}

// leastShown is what a logarithmic scale draws nothing below of: zero has no
// place on it.
const leastShown = 1e-3

// logarithmic is a scale of whole decades that holds all values above zero, and
// its ticks, one a decade.
func logarithmic(values []float64, from, to float64) (scale, []float64) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if v > 0 {
			low, high = min(low, v), max(high, v)
		}
	}
	if low > high {
		low, high = 1, 10
	}
	s := scale{low: math.Floor(math.Log10(max(low, leastShown))), high: math.Ceil(math.Log10(max(high, leastShown))), from: from, to: to, logarithmic: true}
	if s.low == s.high {
		s.high++
	}
	var ticks []float64
	for e := s.low; e <= s.high; e++ {
		ticks = append(ticks, math.Pow(10, e))
	}
	return s, ticks
}

// tickStep is the first of 1, 2 and 5 times a power of ten that is no less.
func tickStep(least float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= least {
			return m * power
		}
	}
	return 10 * power
}

// Number is a value in as few digits as it needs.
func Number(v float64) string { return fmt.Sprintf("%g", math.Round(v*1e6)/1e6) }
