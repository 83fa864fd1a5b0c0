package inject

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Distribution is the shape of jitter. With u uniform over [0, 1), a draw is
// Base + Jitter * x(u):
//
//	uniform       x = 2u - 1                                  mean 0, sigma 0.577
//	normal        x = the standard normal quantile of u       mean 0, sigma 1
//	pareto        x = 4/3 * ((1-u)^(-1/3) - 3/2)              mean -0.033, sigma 0.821
//	paretonormal  x = 1/4 normal(u) + 3/4 pareto(u)           mean -0.025, sigma 0.835
//
// The last three are what the tables of tc-netem hold, without their rounding,
// and like them are cut at 4 (the most that a table's 16 bits can say), which
// is where pareto's mean and sigma come from: uncut they would be 0 and 1.15.
// Source: iproute2, netem/{normal,pareto,paretonormal}.c.
type Distribution uint8

// The distributions. The zero value is Uniform.
const (
	Uniform Distribution = iota
	Normal
	Pareto
	ParetoNormal
)

var distributionNames = [...]string{"uniform", "normal", "pareto", "paretonormal"}

func (d Distribution) String() string {
	if int(d) < len(distributionNames) {
		return distributionNames[d]
	}
	return "Distribution(" + strconv.Itoa(int(d)) + ")"
}

// ParseDistribution reads a distribution's name as String writes it.
func ParseDistribution(name string) (Distribution, error) {
	for d, n := range distributionNames {
		if n == name {
			return Distribution(d), nil
		}
	}
	return 0, fmt.Errorf("no distribution is called %q: write one of %s", name, strings.Join(distributionNames[:], ", "))
}

// tableScale is what stands for 1 in a table; linux/pkt_sched.h calls it
// NETEM_DIST_SCALE.
const tableScale = 8192

// cut is the largest value that a table's 16 bits can say.
const cut = float64(math.MaxInt16) / tableScale

// quantile is x(u).
func (d *Delay) quantile(u float64) float64 {
	switch {
	case d.Table != nil:
		return d.Table.quantile(u)
	case d.Distribution == Normal:
		return normalQuantile(u)
	case d.Distribution == Pareto:
		return paretoQuantile(u)
	case d.Distribution == ParetoNormal:
		return normalQuantile(u)/4 + paretoQuantile(u)*3/4
	}
	return 2*u - 1
}

func normalQuantile(u float64) float64 {
	return max(min(math.Sqrt2*math.Erfinv(2*u-1), cut), -cut)
}

func paretoQuantile(u float64) float64 {
	return min(4.0/3*(1/math.Cbrt(1-u)-1.5), cut)
}

// correlated draws from [0, 1), with a part rho of the last draw in it: a
// standard normal value follows z' = rho*z + sqrt(1 - rho^2)*e, and u is its
// place in the normal distribution. So u stays uniform and every shape keeps
// its mean and sigma, which mixing u itself, as netem does, would narrow; and
// z's correlation over n draws is rho^n.
func (s *Source) correlated(rho float64) float64 {
	u := s.rnd.Float64()
	if !(rho > 0) {
		return u
	}
	z := math.Sqrt2 * math.Erfinv(2*max(u, 0x1p-54)-1)
	if rho = min(rho, 1); s.drawn {
		z = rho*s.norm + math.Sqrt(1-rho*rho)*z
	}
	s.norm, s.drawn = z, true
	return min(math.Erfc(-z/math.Sqrt2)/2, 1-0x1p-53)
}

// Table is a user's distribution: equally likely values, in units of the jitter
// times 8192. A *Table is immutable and safe for concurrent use.
type Table struct{ values []int16 }

// maxTable is what tc reads at most (MAX_DIST in iproute2's tc/q_netem.c).
const maxTable = 16 << 10

// ParseTable reads what tc-netem keeps in its .dist files: whole numbers apart
// by white space, and lines that begin with # for comments. A value of 8192
// stands for one jitter above the base. In the file they should ascend, as
// those of tc do: correlation is between places in the table.
func ParseTable(text string) (*Table, error) {
	var t Table
	n := 0
	for line := range strings.Lines(text) {
		n++
		if strings.HasPrefix(line, "#") {
			continue
		}
		for f := range strings.FieldsSeq(line) {
			v, err := strconv.ParseInt(f, 10, 16)
			if err != nil {
				return nil, fmt.Errorf("line %d: %q is not a whole number from -32768 to 32767", n, f)
			}
			if len(t.values) == maxTable {
				return nil, fmt.Errorf("line %d: a table has at most %d values", n, maxTable)
			}
			t.values = append(t.values, int16(v))
		}
	}
	if len(t.values) == 0 {
		return nil, errors.New("the table is empty: write its values, 8192 for one jitter above the base")
	}
	return &t, nil
}

func (t *Table) quantile(u float64) float64 {
	if len(t.values) == 0 {
		return 0
	}
	i := max(min(int(u*float64(len(t.values))), len(t.values)-1), 0)
	return float64(t.values[i]) / tableScale
}
