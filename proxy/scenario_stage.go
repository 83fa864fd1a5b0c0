package proxy

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/trace"
)

// liveStage is a Proxy's links and rules. It remembers what they had, and takes
// back only what is still its own: what a reload or a request changes meanwhile
// is the new base.
type liveStage struct {
	proxy  *Proxy
	name   string
	delays map[*atomic.Pointer[inject.Settings]]*loan
	rules  []inject.Rule // of the present step
}

// loan is what a link's delay was, and what was put in its place.
type loan struct {
	link       string
	base, ours *inject.Settings
}

func newLiveStage(p *Proxy, name string) *liveStage {
	return &liveStage{proxy: p, name: name, delays: map[*atomic.Pointer[inject.Settings]]*loan{}}
}

func (s *liveStage) set(step Step) (problems []string) {
	s.proxy.reloading.Lock()
	defer s.proxy.reloading.Unlock()
	s.giveBack(func(l *loan) bool { return slices.Contains(step.Base, l.link) })
	for _, name := range slices.Sorted(maps.Keys(step.Links)) {
		l := s.proxy.Link(name)
		if l == nil {
			problems = append(problems, fmt.Sprintf("step %q: there is no link %s any more", step.Name, name))
			continue
		}
		if err := s.lend(l, step.Links[name]); err != nil {
			problems = append(problems, fmt.Sprintf("step %q: link %s: %v", step.Name, name, err))
		}
	}
	if step.Rules != nil {
		problems = append(problems, s.setRules(step.Name, step.Rules)...)
	}
	s.proxy.mark(&trace.Marker{Scenario: s.name, Step: step.Name})
	return problems
}

// lend puts a change in the place of what a link has now, whoever dials it: of
// all, or of none.
func (s *liveStage) lend(l *Link, change DelayPatch) error {
	r := l.route.Load()
	next := map[*atomic.Pointer[inject.Settings]]*inject.Settings{}
	for _, of := range append([]*source{r.base}, r.sources.all...) {
		set, err := change.Apply(*of.settings.Load())
		if err != nil {
			return err
		}
		next[of.settings] = &set
	}
	for cell, set := range next {
		now := cell.Load()
		if had := s.delays[cell]; had != nil && had.ours == now {
			had.ours = set
		} else {
			s.delays[cell] = &loan{link: l.name, base: now, ours: set}
		}
		cell.Store(set)
	}
	return nil
}

// giveBack returns to the base where the delay is still ours.
func (s *liveStage) giveBack(which func(*loan) bool) {
	for cell, l := range s.delays {
		if which(l) {
			cell.CompareAndSwap(l.ours, l.base)
			delete(s.delays, cell)
		}
	}
}

// setRules puts the rules of a step in front of the base's, which are all that
// are not those of the step before.
func (s *liveStage) setRules(step string, rules []inject.Rule) []string {
	err := s.proxy.UpdateRules(func(now []inject.Rule) ([]inject.Rule, error) {
		return together(rules, slices.DeleteFunc(slices.Clone(now), s.ours)), nil
	})
	if err != nil {
		return []string{fmt.Sprintf("step %q: its rules are not in force: %v", step, err)}
	}
	s.rules = rules
	return nil
}

func (s *liveStage) ours(r inject.Rule) bool {
	return slices.ContainsFunc(s.rules, func(o inject.Rule) bool { return reflect.DeepEqual(o, r) })
}

func (s *liveStage) restore() (problems []string) {
	s.proxy.reloading.Lock()
	defer s.proxy.reloading.Unlock()
	s.giveBack(func(*loan) bool { return true })
	if len(s.rules) > 0 {
		problems = s.setRules("the end", nil)
	}
	s.proxy.mark(nil)
	return problems
}

// mark tells the tracer what goes on from now on.
func (p *Proxy) mark(m *trace.Marker) {
	if p.config.Tracer != nil {
		p.config.Tracer.Mark(p.clock.now(), m)
	}
}

// StartScenario begins to play s. The error says everything in it that can't be
// carried out, or wraps ErrScenario; then nothing has changed.
func (p *Proxy) StartScenario(s Scenario) error {
	p.scenarioMu.Lock()
	defer p.scenarioMu.Unlock()
	if p.scenario != nil && p.scenario.look().Outcome == ScenarioRunning {
		return fmt.Errorf("%w (%s): stop it first, or wait for its end", ErrScenario, p.scenario.scenario.Name)
	}
	var base []inject.Rule
	for _, r := range p.Rules() {
		base = append(base, r.Rule)
	}
	err := s.check(func(link string) (inject.Settings, bool) {
		l := p.Link(link)
		if l == nil {
			return inject.Settings{}, false
		}
		return l.Delay(), true
	}, base)
	if err != nil {
		return err
	}
	if !p.begin() {
		return errors.New("wirewait is stopping")
	}
	player := newPlayer(s, newLiveStage(p, s.Name), p.stopping)
	p.scenario = player
	go func() {
		defer p.running.Done()
		player.play()
	}()
	return nil
}

// begin counts something as running, unless the proxy is stopping.
func (p *Proxy) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.stopping:
		return false
	default:
		p.running.Add(1)
		return true
	}
}

// StopScenario ends the scenario that runs and returns when the base is
// restored. It reports false if none runs.
func (p *Proxy) StopScenario() bool {
	p.scenarioMu.Lock()
	player := p.scenario
	p.scenarioMu.Unlock()
	if player == nil || player.look().Outcome != ScenarioRunning {
		return false
	}
	player.end()
	<-player.done
	return true
}

// Scenario is how far the last scenario has come.
func (p *Proxy) Scenario() ScenarioStatus {
	p.scenarioMu.Lock()
	defer p.scenarioMu.Unlock()
	if p.scenario == nil {
		return ScenarioStatus{}
	}
	return p.scenario.look()
}
