//go:build unix

package proxy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// notes is a stage that writes down what is played on it, and when.
type notes struct {
	begun time.Time
	slow  time.Duration // each step takes

	mu  sync.Mutex
	all []string
}

func (n *notes) say(what string) []string {
	n.mu.Lock()
	n.all = append(n.all, fmt.Sprintf("%v %s", time.Since(n.begun), what))
	n.mu.Unlock()
	time.Sleep(n.slow)
	return nil
}

func (n *notes) set(s Step) []string { return n.say(s.Name) }
func (n *notes) restore() []string   { return n.say("base") }

func steps(at ...time.Duration) (s Scenario) {
	s.Name = "evening"
	for i, t := range at[:len(at)-1] {
		s.Steps = append(s.Steps, Step{Name: fmt.Sprint("step-", i+1), At: t})
	}
	s.End = at[len(at)-1]
	return s
}

// TestScenario_StepsComeAtTheirTimes, exactly, however long each takes, and the
// base comes back at the end or when somebody ends it.
func TestScenario_StepsComeAtTheirTimes(t *testing.T) {
	for name, tt := range map[string]struct {
		scenario Scenario
		slow     time.Duration
		stop     time.Duration // 0: never
		want     []string
		outcome  string
	}{
		"whole": {steps(0, 10*time.Second, 30*time.Second, time.Minute), 0, 0,
			[]string{"0s step-1", "10s step-2", "30s step-3", "1m0s base"}, ScenarioEnded},
		"slow steps don't move later ones": {steps(0, 10*time.Second, 12*time.Second, 20*time.Second), 5 * time.Second, 0,
			[]string{"0s step-1", "10s step-2", "15s step-3", "20s base"}, ScenarioEnded},
		"stopped within":           {steps(0, 10*time.Second, time.Minute), 0, 11 * time.Second, []string{"0s step-1", "10s step-2", "11s base"}, ScenarioStopped},
		"stopped before the first": {steps(time.Hour, time.Hour), 0, time.Second, []string{"1s base"}, ScenarioStopped},
		"stopped behind the last":  {steps(0, time.Hour), 0, time.Minute, []string{"0s step-1", "1m0s base"}, ScenarioStopped},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				on := &notes{begun: time.Now(), slow: tt.slow}
				p := newPlayer(tt.scenario, on, nil)
				go p.play()
				if tt.stop > 0 {
					time.Sleep(tt.stop)
					p.end()
				}
				<-p.done
				if !slices.Equal(on.all, tt.want) {
					t.Errorf("%q, want %q", on.all, tt.want)
				}
				if s := p.look(); s.Outcome != tt.outcome || s.Step != "" || s.Name != "evening" {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

func TestScenario_StatusTellsTheStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlayer(steps(time.Second, 5*time.Second, 9*time.Second), &notes{begun: time.Now()}, nil)
		go p.play()
		for _, want := range []struct {
			at   time.Duration
			step string
			done int
		}{{0, "", 0}, {2 * time.Second, "step-1", 1}, {6 * time.Second, "step-2", 2}} {
			time.Sleep(want.at - time.Since(p.begun))
			synctest.Wait()
			if s := p.look(); s.Step != want.step || s.Done != want.done || s.Steps != 2 || s.Elapsed != want.at || s.Outcome != ScenarioRunning {
				t.Errorf("after %v: %+v", want.at, s)
			}
		}
		<-p.done
	})
}

func rttPatch(d time.Duration) DelayPatch {
	half := d / 2
	return DelayPatch{Base: [2]*time.Duration{&half, &half}}
}

// TestLiveStage_ReturnsToTheBase: to what there was, or to what others have made
// of it meanwhile.
func TestLiveStage_ReturnsToTheBase(t *testing.T) {
	up := server(t, "tcp", "127.0.0.1:0", echo)
	link := func(name string) LinkConfig {
		return LinkConfig{Name: name, Listen: "127.0.0.1:0", Upstream: up, Protocol: wire.TCP, Delay: rtt(10 * time.Millisecond)}
	}
	p, _ := start(t, link("a"), func(c *Config) { c.Links = append(c.Links, link("b"), link("c")) })
	delays := func() (list []time.Duration) {
		for _, l := range p.Links() {
			d := l.Delay()
			list = append(list, d.RTT()/time.Millisecond)
		}
		return list
	}
	check := func(when string, want ...time.Duration) {
		t.Helper()
		if got := delays(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	rule := func(name string) inject.Rule {
		return inject.Rule{Name: name, Effect: inject.EffectHold, When: inject.When{Link: []string{"a"}}}
	}
	rules := func() (names []string) {
		for _, r := range p.Rules() {
			names = append(names, r.Name)
		}
		return names
	}
	if err := p.SetRules([]inject.Rule{rule("mine")}); err != nil {
		t.Fatal(err)
	}
	s := newLiveStage(p, "evening")
	do := func(step Step) {
		t.Helper()
		if problems := s.set(step); len(problems) > 0 {
			t.Errorf("%q", problems)
		}
	}
	do(Step{Name: "1", Links: map[string]DelayPatch{"a": rttPatch(100 * time.Millisecond), "b": rttPatch(200 * time.Millisecond)}})
	check("after the first step", 100, 200, 10)
	do(Step{Name: "2", Links: map[string]DelayPatch{"b": rttPatch(300 * time.Millisecond), "c": rttPatch(400 * time.Millisecond)}, Rules: []inject.Rule{rule("partition")}})
	check("after the second", 100, 300, 400)
	if got := rules(); !slices.Equal(got, []string{"partition", "mine"}) {
		t.Errorf("rules %v", got)
	}
	do(Step{Name: "3", Base: []string{"a"}, Rules: []inject.Rule{rule("other")}})
	check("a is back at its base", 10, 300, 400)
	if got := rules(); !slices.Equal(got, []string{"other", "mine"}) {
		t.Errorf("rules %v", got)
	}
	p.Link("c").SetDelay(rtt(50 * time.Millisecond)) // somebody else
	if problems := s.restore(); len(problems) > 0 {
		t.Errorf("%q", problems)
	}
	check("at the end", 10, 10, 50)
	if got := rules(); !slices.Equal(got, []string{"mine"}) {
		t.Errorf("rules %v", got)
	}
}

func TestScenario_IsCheckedBeforeAnythingChanges(t *testing.T) {
	p, l := start(t, LinkConfig{Name: "a", Upstream: "127.0.0.1:1", Protocol: wire.TCP, Delay: rtt(10 * time.Millisecond)})
	jitter := time.Second
	bad := Scenario{End: time.Second, Steps: []Step{
		{Name: "one", At: 2 * time.Second, Links: map[string]DelayPatch{"nowhere": rttPatch(1), "a": rttPatch(time.Millisecond)}},
		{At: time.Second, Links: map[string]DelayPatch{"a": {Jitter: &jitter}}, Base: []string{"elsewhere"}, Rules: []inject.Rule{{}}},
	}}
	err := p.StartScenario(bad)
	if err == nil {
		t.Fatal("it was started")
	}
	for _, want := range []string{
		"the scenario has no name", `step "one": there is no link nowhere`, "step 2 has no name", "before the one in front of it",
		"there is no link elsewhere", "step 2: link a: jitter 1s is more than", "step 2: rule", "before the last step",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
	if d := l.Delay(); d.RTT() != 10*time.Millisecond || p.Scenario().Name != "" {
		t.Errorf("refused, and the delay is %v", d.RTT())
	}
	if err := p.StartScenario(Scenario{Name: "x"}); err == nil || !strings.Contains(err.Error(), "no steps") {
		t.Errorf("without steps: %v", err)
	}
}

func TestScenario_OneAtATimeAndStopped(t *testing.T) {
	var seen last
	tracer := trace.New(64, &seen)
	defer tracer.Close()
	p, l := start(t, LinkConfig{Name: "a", Upstream: "127.0.0.1:1", Protocol: wire.TCP}, func(c *Config) { c.Tracer = tracer })
	s := Scenario{Name: "evening", End: time.Hour, Steps: []Step{{Name: "slow", Links: map[string]DelayPatch{"a": rttPatch(time.Second)}}}}
	if err := p.StartScenario(s); err != nil {
		t.Fatal(err)
	}
	soon(t, "the first step is in force", func() bool { return p.Scenario().Step == "slow" })
	if d := l.Delay(); d.RTT() != time.Second {
		t.Errorf("the delay is %v", d.RTT())
	}
	if err := p.StartScenario(s); !errors.Is(err, ErrScenario) {
		t.Errorf("a second one: %v", err)
	}
	x := &wire.Exchange{Write: true}
	x.Sides[wire.ToServer].FirstIn = p.clock.now()
	tracer.Offer(x, &trace.Conn{})
	soon(t, "the exchange is handled", func() bool { return seen.marker() == trace.Marker{Scenario: "evening", Step: "slow"} })
	if !p.StopScenario() || p.StopScenario() {
		t.Error("it is stopped once")
	}
	if d := l.Delay(); d.RTT() != 0 || p.Scenario().Outcome != ScenarioStopped {
		t.Errorf("the delay is %v, %+v", d.RTT(), p.Scenario())
	}
	// The end of the proxy is one of the scenario.
	if err := p.StartScenario(s); err != nil {
		t.Fatal(err)
	}
	if err := p.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if p.Scenario().Outcome != ScenarioStopped || p.StartScenario(s) == nil {
		t.Errorf("%+v", p.Scenario())
	}
}

// last is a consumer that keeps the marker of what it got.
type last struct {
	mu sync.Mutex
	m  trace.Marker
}

func (l *last) Consume(f *trace.Finished) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.Marker != nil {
		l.m = *f.Marker
	}
}

func (l *last) marker() trace.Marker {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.m
}
