package study

import (
	"fmt"
	"math"
	"slices"
)

// Spread is the median of several rounds and an interval around it. From six
// rounds on Low and High are order statistics that hold the true median with at
// least 95 % probability, whatever the distribution; below that they are the
// extremes.
type Spread struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Rounds int     `json:"rounds"`
}

// SpreadOf summarises samples; it leaves their order alone. Without samples all
// is zero.
func SpreadOf(samples []float64) Spread {
	s := slices.Sorted(slices.Values(samples))
	n := len(s)
	if n == 0 {
		return Spread{}
	}
	k := medianRank(n)
	return Spread{Median: Quantile(s, 0.5), Low: s[k], High: s[n-1-k], Rounds: n}
}

// medianRank is how many samples may be cut off at each end so that the rest
// spans the median with at least 95 %: the largest k for which k or fewer of n
// fair coins show heads with a probability of at most 2.5 %, or 0.
func medianRank(n int) int {
	term := math.Pow(0.5, float64(n)) // of i heads
	sum := term
	for k := 0; ; k++ {
		term *= float64(n-k) / float64(k+1)
		if sum += term; sum > 0.025 {
			return k
		}
	}
}

// Quantile interpolates in sorted samples; q is from 0 to 1.
func Quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// Ratios divides each round's sample by the baseline's of the same round, so
// that what slows the machine down for a while slows both.
func Ratios(samples, baseline []float64) []float64 {
	n := min(len(samples), len(baseline))
	r := make([]float64, 0, n)
	for i := range n {
		if baseline[i] > 0 {
			r = append(r, samples[i]/baseline[i])
		}
	}
	return r
}

// String is "36.2 [35.8, 37.0]" with three or four digits that matter, without
// brackets if there is nothing to spread.
func (s Spread) String() string {
	if s.Rounds == 0 {
		return "-"
	}
	d := decimals(s.Median)
	if s.Low == s.High {
		return fmt.Sprintf("%.*f", d, s.Median)
	}
	return fmt.Sprintf("%.*f [%.*f, %.*f]", d, s.Median, d, s.Low, d, s.High)
}

func decimals(v float64) int {
	switch v = math.Abs(v); {
	case v >= 1000, v == math.Trunc(v):
		return 0
	case v >= 10:
		return 1
	case v >= 0.1:
		return 2
	}
	return 3
}
