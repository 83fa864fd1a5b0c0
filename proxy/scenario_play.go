package proxy

import (
	"slices"
	"sync"
	"time"
)

// stage is what a scenario is played on.
type stage interface {
	// set carries out a step and returns what can't be.
	set(Step) []string
	// restore returns to the base, as far as nobody else has changed it.
	restore() []string
}

// player plays a scenario on a stage, in a goroutine of its own. Steps come at
// their times from the start, however long the ones before them took.
type player struct {
	scenario Scenario
	stage    stage
	stop     chan struct{}
	stopOnce sync.Once
	stopping <-chan struct{} // closed if all is to end
	done     chan struct{}

	mu     sync.Mutex
	begun  time.Time
	status ScenarioStatus
}

func newPlayer(s Scenario, on stage, stopping <-chan struct{}) *player {
	p := &player{
		scenario: s, stage: on, stop: make(chan struct{}), stopping: stopping, done: make(chan struct{}), begun: time.Now(),
	}
	p.status = ScenarioStatus{Name: s.Name, Outcome: ScenarioRunning, Started: p.begun, Steps: len(s.Steps), End: s.End}
	return p
}

// play returns when the stage is back at its base.
func (p *player) play() {
	defer close(p.done)
	outcome := ScenarioEnded
	for _, step := range p.scenario.Steps {
		if !p.wait(step.At) {
			outcome = ScenarioStopped
			break
		}
		p.note(p.stage.set(step), func(s *ScenarioStatus) { s.Step, s.Done = step.Name, s.Done+1 })
	}
	if outcome == ScenarioEnded && !p.wait(p.scenario.End) {
		outcome = ScenarioStopped
	}
	p.note(p.stage.restore(), func(s *ScenarioStatus) {
		s.Step, s.Outcome, s.Elapsed = "", outcome, time.Since(p.begun)
	})
}

// wait reports false if it was stopped before.
func (p *player) wait(at time.Duration) bool {
	t := time.NewTimer(time.Until(p.begun.Add(at)))
	defer t.Stop()
	select {
	case <-t.C:
	case <-p.stop:
	case <-p.stopping:
	}
	select { // a stop wins
	case <-p.stop:
		return false
	case <-p.stopping:
		return false
	default:
		return true
	}
}

func (p *player) note(problems []string, change func(*ScenarioStatus)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.Problems = append(p.status.Problems, problems...)
	change(&p.status)
}

// end has play return soon.
func (p *player) end() { p.stopOnce.Do(func() { close(p.stop) }) }

func (p *player) look() ScenarioStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.status
	s.Problems = slices.Clone(s.Problems)
	if s.Outcome == ScenarioRunning {
		s.Elapsed = time.Since(p.begun)
	}
	return s
}
