package proxy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/wirewait/wirewait/inject"
)

// Scenario is a list of timed steps that change delays and rules, and end in the
// state that there was before:
//
//	start      at           at            end
//	  |--------|-- step 1 --|-- step 2 ----|
//	   base     base + 1     base + 1 + 2   base
//
// What a step sets stays until another step sets it, or the end.
type Scenario struct {
	Name  string
	Steps []Step
	// End is when it's over, from the start; no earlier than the last step.
	End time.Duration
}

// Step is one change.
type Step struct {
	// Name marks what happens from here on, on spans and metrics.
	Name string
	// At is when it comes, from the start.
	At time.Duration
	// Links are changes of delays, by link.
	Links map[string]DelayPatch
	// Base are links that go back to what they had.
	Base []string
	// Rules are added to the base's, in place of those of earlier steps; they
	// come first, so that they win. Nil: as before; empty: none.
	Rules []inject.Rule
}

// ErrScenario is wrapped by the error of a scenario that can't start because
// another one runs.
var ErrScenario = errors.New("a scenario is running")

// check reports everything that can't be carried out, on links that have the
// delays given and beside the rules given.
func (s *Scenario) check(delay func(link string) (inject.Settings, bool), base []inject.Rule) error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if s.Name == "" {
		add("the scenario has no name: give it one, which spans and metrics carry")
	}
	if len(s.Steps) == 0 {
		add("the scenario has no steps")
	}
	var last time.Duration
	now := map[string]inject.Settings{}
	for i, step := range s.Steps {
		name := fmt.Sprintf("step %q", step.Name)
		if step.Name == "" {
			name = fmt.Sprintf("step %d", i+1)
			add("%s has no name: give it one, which spans and metrics carry", name)
		}
		if step.At < last {
			add("%s is at %v, before the one in front of it (%v): write steps in their order", name, step.At, last)
		}
		last = max(last, step.At)
		for _, link := range step.Base {
			if _, ok := delay(link); !ok {
				add("%s: there is no link %s", name, link)
			}
			delete(now, link)
		}
		for _, link := range slices.Sorted(maps.Keys(step.Links)) {
			set, changed := now[link]
			ok := true
			if !changed {
				set, ok = delay(link)
			}
			if !ok {
				add("%s: there is no link %s", name, link)
				continue
			}
			next, err := step.Links[link].Apply(set)
			if err != nil {
				add("%s: link %s: %w", name, link, err)
				continue
			}
			now[link] = next
		}
		if err := inject.CheckRules(together(step.Rules, base)); err != nil {
			add("%s: %w", name, err)
		}
	}
	if s.End < last {
		add("the end, %v, is before the last step (%v): write a later one", s.End, last)
	}
	return errors.Join(errs...)
}

// together are the rules of a step and those of the base.
func together(step, base []inject.Rule) []inject.Rule { return slices.Concat(step, base) }

// Outcomes of a scenario.
const (
	ScenarioRunning = "running"
	ScenarioEnded   = "ended"   // it came to its end
	ScenarioStopped = "stopped" // somebody ended it before
)

// ScenarioStatus is how far a scenario has come. The zero value: none was
// started.
type ScenarioStatus struct {
	Name    string
	Outcome string // one of ScenarioRunning, ...
	Started time.Time
	// Step is the name of the one in force, empty before the first and after the
	// end. Done is how many came, of Steps.
	Step        string
	Done, Steps int
	// Elapsed is since the start, and End when it will be over or was.
	Elapsed, End time.Duration
	// Problems are what could not be carried out, since links or rules have
	// changed meanwhile.
	Problems []string
}
