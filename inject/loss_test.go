package inject

import (
	"math"
	"testing"
	"time"

	"github.com/wirewait/wirewait/wire"
)

const sec = time.Second

// Long runs of segments follow the chain's formulas: rate, bursts and gaps.
func TestLoss_RateAndBurstsFollowTheFormula(t *testing.T) {
	const n = 1_000_000
	for name, c := range map[string]struct {
		loss        Loss
		rate, burst float64
	}{
		"random 1%":       {RandomLoss(0.01), 0.01, 1 / 0.99},
		"random 30%":      {RandomLoss(0.3), 0.3, 1 / 0.7},
		"simple gilbert":  {Loss{P: 0.01, R: 0.2, Bad: 1}, 0.01 / 0.21, 1 / 0.2},
		"gilbert":         {Loss{P: 0.02, R: 0.1, Bad: 0.5}, 0.02 / 0.12 * 0.5, 0},
		"gilbert-elliott": {Loss{P: 0.02, R: 0.1, Bad: 0.5, Good: 0.01}, (0.02*0.5 + 0.1*0.01) / 0.12, 0},
		"for ever":        {Loss{P: 1, Bad: 0.25}, 0.25, 1 / 0.75},
	} {
		if got := c.loss.Rate(); math.Abs(got-c.rate) > 1e-12 {
			t.Errorf("%s: Rate is %v, want %v", name, got, c.rate)
		}
		src := testSource(5)
		lost, bursts, last := 0, 0, false
		for range n {
			now := src.lost(&c.loss)
			if now {
				lost++
			}
			if now && !last {
				bursts++
			}
			last = now
		}
		rate := float64(lost) / n
		if math.Abs(rate-c.rate) > 0.03*c.rate {
			t.Errorf("%s: lost %.5f, want %.5f", name, rate, c.rate)
		}
		if burst := float64(lost) / float64(bursts); c.burst != 0 && math.Abs(burst-c.burst) > 0.03*c.burst {
			t.Errorf("%s: bursts of %.3f, want %.3f", name, burst, c.burst)
		}
	}
}

func TestLoss_NoneIsNoneAndABurstEndsWithItsSettings(t *testing.T) {
	src := testSource(1)
	src.lost(&Loss{P: 1, Bad: 1})
	if !src.lost(&Loss{P: 1, Bad: 1}) {
		t.Fatal("not in the bad state")
	}
	for range 1000 {
		if src.lost(&Loss{}) || src.lost(&Loss{Bad: 1, R: 0.5}) {
			t.Fatal("lost")
		}
	}
}

// fates makes a source whose next segments are lost as the string says: it
// looks for a seed with which a fair coin falls that way.
func fates(t *testing.T, want string) (*Source, Loss) {
	t.Helper()
	coin := RandomLoss(0.5)
	for seed := range uint64(1 << 20) {
		src, ok := testSource(seed), true
		for i := 0; ok && i < len(want); i++ {
			ok = src.lost(&coin) == (want[i] == 'x')
		}
		if ok {
			return testSource(seed), coin
		}
	}
	t.Fatalf("no seed gives %s", want)
	return nil, Loss{}
}

// Each wait in turn: one round trip if three follow, else the time-out; then
// doubling. RTT is 40 ms, so the first time-out is 240 ms.
func TestRecovery_TakesWhatTCPTakes(t *testing.T) {
	const rtt, rto = 40 * time.Millisecond, 240 * time.Millisecond
	for _, c := range []struct {
		fate      string
		followers int
		want      time.Duration
	}{
		{".", 0, 0}, {".", 9, 0},
		{"x.", 3, rtt}, {"x.", 2, rto}, {"x.", 0, rto},
		{"xx.", 3, rtt + rto}, {"xx.", 0, 3 * rto}, {"xxx.", 0, 7 * rto}, {"xxxx.", 4, rtt + 7*rto},
	} {
		src, coin := fates(t, c.fate)
		if got := src.recovery(&coin, rtt, c.followers); got != c.want {
			t.Errorf("%s with %d behind: %v, want %v", c.fate, c.followers, got, c.want)
		}
	}
	// 0.2, 0.4, ... 102.4 s and five times 120 s: then the connection would be
	// given up, and here the segment arrives.
	always := RandomLoss(1)
	if got, want := testSource(1).recovery(&always, 0, 0), 1023*200*time.Millisecond+5*120*sec; got != want {
		t.Errorf("lost for ever: %v, want %v", got, want)
	}
	for _, rtt := range []time.Duration{math.MinInt64, math.MaxInt64} {
		if got := testSource(1).recovery(&always, rtt, 3); got < 0 || got > maxDelay {
			t.Errorf("rtt %v: %v", rtt, got)
		}
	}
}

// The mean of what a random loss q costs: without followers
// RTO * (q + 2q^2 + 4q^3 + ...) = RTO * q / (1 - 2q).
func TestRecovery_MeanFollowsTheFormula(t *testing.T) {
	const n, q = 1_000_000, 0.1
	loss, src := RandomLoss(q), testSource(9)
	var sum time.Duration
	for range n {
		sum += src.recovery(&loss, 0, 0)
	}
	if got, want := float64(sum)/n, float64(minRTO)*q/(1-2*q); math.Abs(got-want) > 0.03*want {
		t.Errorf("mean %v, want %v", time.Duration(got), time.Duration(want))
	}
}

func TestSource_LossLeavesJitterAlone(t *testing.T) {
	a, b := testSource(3), testSource(3)
	d, loss := Delay{Base: sec, Jitter: sec}, RandomLoss(0.5)
	for range 100 {
		b.lost(&loss)
		if d.Draw(a) != d.Draw(b) {
			t.Fatal("other jitter with loss than without")
		}
	}
	x, y := NewSource(3, "t", 1, wire.ToServer), NewSource(3, "t", 1, wire.ToClient)
	same := 0
	for range 1000 {
		if x.lost(&loss) == y.lost(&loss) {
			same++
		}
	}
	if same > 600 || same < 400 {
		t.Errorf("both directions lose alike %d times of 1000", same)
	}
}
