package inject

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/wire"
)

func testSource(seed uint64) *Source { return NewSource(seed, "t", 1, wire.ToServer) }

// netemTable is what iproute2's generator of that name computes, by its own
// steps: 4,096 values of 16 bits.
func netemTable(d Distribution) []int {
	normal := make([]float64, 16385)
	for x := -10.0; x < 10.05; x += .00005 {
		normal[int(math.RoundToEven(16384*(.5+.5*math.Erf(x/math.Sqrt2))))] = x
	}
	clip := func(v int) int { return max(min(v, math.MaxInt16), math.MinInt16) }
	pareto := func(i int) int {
		v := (1/math.Pow(float64(i)/65536, 1/3.0) - 1.5) * (4.0 / 3) * 8192
		return int(math.RoundToEven(min(v, 32767)))
	}
	var t []int
	for i := range 4096 {
		n := int(math.RoundToEven(normal[4*i] * 8192))
		switch d {
		case Normal:
			t = append(t, clip(n))
		case Pareto:
			t = append(t, pareto(65536-16*i))
		case ParetoNormal:
			t = append(t, clip((n+3*pareto(65536-16*i))/4))
		}
	}
	return t
}

// The quantiles are those of netem's own tables, but for their steps: their
// normal one holds for place i the last x that rounds to i.
func TestDistribution_IsWhatNetemsTablesHold(t *testing.T) {
	for _, d := range []Distribution{Normal, Pareto, ParetoNormal} {
		table, delay := netemTable(d), Delay{Distribution: d}
		if len(table) != 4096 {
			t.Fatal(len(table))
		}
		for i, v := range table {
			if i < 4 {
				continue // netem's normal one begins at -10 sigma, cut: ours is steep there
			}
			u := float64(i) / 4096
			lo, hi := delay.quantile(u-1.0/8192), delay.quantile(min(u+1.0/8192, 1))
			if got := float64(v) / 8192; got < lo-0.001 || got > hi+0.001 {
				t.Fatalf("%v: place %d is %v with netem, ours is %v to %v", d, i, got, lo, hi)
			}
		}
	}
}

// The figures of Distribution's comment, by integration over u.
func TestDistribution_MeanAndSigma(t *testing.T) {
	for _, c := range []struct {
		d           Distribution
		mean, sigma float64
	}{{Uniform, 0, 0.577}, {Normal, 0, 1}, {Pareto, -0.033, 0.821}, {ParetoNormal, -0.025, 0.835}} {
		const n = 1 << 20
		d := Delay{Distribution: c.d}
		var sum, squares float64
		for i := range n {
			x := d.quantile((float64(i) + .5) / n)
			sum, squares = sum+x, squares+x*x
		}
		mean := sum / n
		sigma := math.Sqrt(squares/n - mean*mean)
		if math.Abs(mean-c.mean) > 0.0006 || math.Abs(sigma-c.sigma) > 0.0006 {
			t.Errorf("%v: mean %.4f sigma %.4f, the comment says %v and %v", c.d, mean, sigma, c.mean, c.sigma)
		}
	}
}

// Draws follow their formula, with and without correlation: mean, sigma and
// quantiles, and a correlation that falls by rho with each draw.
func TestDraw_FollowsItsFormula(t *testing.T) {
	table, err := ParseTable("# two humps\n-8192 -4096\n 0 16384\n")
	if err != nil {
		t.Fatal(err)
	}
	const n = 200_000
	for _, d := range []Delay{
		{Distribution: Uniform}, {Distribution: Normal}, {Distribution: Pareto}, {Distribution: ParetoNormal}, {Table: table},
	} {
		for _, rho := range []float64{0, 0.25, 0.9} {
			d.Base, d.Jitter, d.Correlation = 100*time.Millisecond, 10*time.Millisecond, rho
			src := testSource(11)
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = float64(d.Draw(src)-d.Base) / float64(d.Jitter)
			}
			name := d.Distribution.String() + " " + strconv.FormatFloat(rho, 'g', -1, 64)
			// Correlated draws say less: of n there are as many as n(1-rho)/(1+rho).
			slack := 4 / math.Sqrt(n*(1-rho)/(1+rho))
			mean, sigma := moments(xs)
			wantMean, wantSigma := formula(&d)
			if math.Abs(mean-wantMean) > slack*wantSigma || math.Abs(sigma-wantSigma) > 2*slack*wantSigma {
				t.Errorf("%s: mean %.4f sigma %.4f, want %.4f and %.4f", name, mean, sigma, wantMean, wantSigma)
			}
			for lag := 1; lag <= 3; lag++ {
				want := math.Pow(rho, float64(lag))
				if got := autocorrelation(xs, mean, sigma, lag); d.Distribution == Normal && math.Abs(got-want) > 2*slack {
					t.Errorf("%s: correlation %.4f over %d draws, want %.4f", name, got, lag, want)
				} else if rho > 0 && (got < want*0.7-slack || got > want*1.05+slack) {
					t.Errorf("%s: correlation %.4f over %d draws, want about %.4f", name, got, lag, want)
				}
			}
			slices.Sort(xs)
			for _, q := range []float64{0.01, 0.1, 0.3, 0.6, 0.9, 0.99} {
				got := xs[int(q*n)]
				if lo, hi := d.quantile(max(q-slack/2, 0)), d.quantile(min(q+slack/2, 1)); got < lo-1e-6 || got > hi+1e-6 {
					t.Errorf("%s: quantile %v is %.4f, want %.4f to %.4f", name, q, got, lo, hi)
				}
			}
		}
	}
}

func formula(d *Delay) (mean, sigma float64) {
	xs := make([]float64, 1<<16)
	for i := range xs {
		xs[i] = d.quantile((float64(i) + .5) / float64(len(xs)))
	}
	return moments(xs)
}

func moments(xs []float64) (mean, sigma float64) {
	var squares float64
	for _, x := range xs {
		mean, squares = mean+x, squares+x*x
	}
	mean /= float64(len(xs))
	return mean, math.Sqrt(squares/float64(len(xs)) - mean*mean)
}

func autocorrelation(xs []float64, mean, sigma float64, lag int) (sum float64) {
	for i := lag; i < len(xs); i++ {
		sum += (xs[i] - mean) * (xs[i-lag] - mean)
	}
	return sum / float64(len(xs)-lag) / (sigma * sigma)
}

func TestDraw_IsNeverNegativeAndTakesAnything(t *testing.T) {
	const most = time.Duration(math.MaxInt64)
	src := testSource(1)
	for _, d := range []Delay{
		{Base: -most}, {Base: most}, {Jitter: most}, {Base: most, Jitter: most, Distribution: Pareto},
		{Base: 1, Jitter: most, Distribution: Normal, Correlation: math.NaN()}, {Jitter: most, Correlation: 5},
		{Jitter: 5, Correlation: math.Inf(-1), Distribution: 200}, {Jitter: 5, Table: &Table{}},
	} {
		for range 1000 {
			if x := d.Draw(src); x < 0 || x > maxDelay {
				t.Fatalf("%+v drew %v", d, x)
			}
		}
	}
}

func TestDraw_AllocatesNothing(t *testing.T) {
	src := testSource(1)
	for _, d := range []Delay{{Jitter: 9}, {Jitter: 9, Distribution: ParetoNormal, Correlation: 0.5}} {
		if n := testing.AllocsPerRun(100, func() { d.Draw(src) }); n != 0 {
			t.Errorf("%v: %v allocations", d.Distribution, n)
		}
	}
}

func TestParseTable_SaysWhereItCannotRead(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "the table is empty",
		"# only words\n":             "the table is empty",
		"1 2\n3 x 4\n":               `line 2: "x"`,
		"#\n\n40000":                 `line 3: "40000"`,
		strings.Repeat("1\n", 16385): "line 16385: a table has at most 16384",
	} {
		if _, err := ParseTable(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
	tab, err := ParseTable("# a\n  8192 -8192\n\n4096")
	if err != nil || tab.quantile(0) != 1 || tab.quantile(0.5) != -1 || tab.quantile(0.99) != 0.5 || tab.quantile(1) != 0.5 {
		t.Errorf("%v %v", tab, err)
	}
}

func TestParseDistribution_ReadsWhatStringWrites(t *testing.T) {
	for d := Uniform; d <= ParetoNormal; d++ {
		if got, err := ParseDistribution(d.String()); err != nil || got != d {
			t.Errorf("%v: %v %v", d, got, err)
		}
	}
	if _, err := ParseDistribution("gauss"); err == nil || !strings.Contains(err.Error(), "uniform, normal, pareto, paretonormal") {
		t.Error(err)
	}
}

func FuzzParseTable(f *testing.F) {
	f.Add("# x\n1 2 3\n", 0.5)
	f.Add("-32768\t32767", 1.5)
	f.Fuzz(func(t *testing.T, text string, u float64) {
		tab, err := ParseTable(text)
		if err == nil && math.Abs(tab.quantile(u)) > 4 {
			t.Fatal("a value beyond 16 bits")
		}
	})
}
