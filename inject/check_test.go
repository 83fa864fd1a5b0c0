package inject

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestSettings_CheckNamesEverythingAtOnce(t *testing.T) {
	good := Symmetric(80*time.Millisecond, 5*time.Millisecond)
	good.Delay[0].Loss = Loss{P: 0.1, R: 0.2, Bad: 1}
	good.Delay[1].Loss = RandomLoss(0.99)
	good.Delay[1].Correlation, good.Delay[1].Distribution, good.Delay[1].Bandwidth, good.Delay[1].Window = 0.99, ParetoNormal, 1, 1
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	bad := Settings{Delay: [2]Delay{
		{Base: -1, Jitter: -1, Distribution: 9, Correlation: 1, Bandwidth: -1, Window: -1, Loss: Loss{P: 1, Bad: 1}},
		{Correlation: math.NaN(), Loss: Loss{P: 2, R: -1, Bad: math.NaN(), Good: 1}},
	}}
	err := bad.Check()
	if err == nil {
		t.Fatal("all of it is fine")
	}
	for _, want := range []string{
		"to_server: the delay is -1ns", "the jitter is -1ns", "no distribution 9", "the correlation is 1:", "the bandwidth is -1", "the window is -1",
		"in the end nothing would arrive", "to_client: the correlation is NaN", "p is 2", "r is -1", "bad state is NaN",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("not said: %s\nbut:\n%v", want, err)
		}
	}
	if strings.Count(err.Error(), "nothing would arrive") != 2 {
		t.Errorf("a loss of all is refused in both forms:\n%v", err)
	}
}
