package admin

import (
	"errors"
	"net/http"
	"time"

	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/proxy/config"
)

// Scenario is the answer of all of /v1/scenario: how far the last one has come.
type Scenario struct {
	Name string `json:"name"`
	// Outcome is running, ended or stopped; empty if none was started.
	Outcome string     `json:"outcome"`
	Started *time.Time `json:"started,omitempty"`
	// Step is the one in force.
	Step  string `json:"step"`
	Done  int    `json:"steps_done"`
	Steps int    `json:"steps"`
	// ElapsedMS is since the start, and EndMS when it will be over or was to be.
	ElapsedMS float64 `json:"elapsed_ms"`
	EndMS     float64 `json:"end_ms"`
	// Problems are what could not be carried out, since links or rules have
	// changed meanwhile.
	Problems []string `json:"problems"`
}

func describeScenario(s proxy.ScenarioStatus) Scenario {
	d := Scenario{
		Name: s.Name, Outcome: s.Outcome, Step: s.Step, Done: s.Done, Steps: s.Steps,
		ElapsedMS: ms(s.Elapsed), EndMS: ms(s.End), Problems: s.Problems,
	}
	if !s.Started.IsZero() {
		d.Started = &s.Started
	}
	if d.Problems == nil {
		d.Problems = []string{}
	}
	return d
}

func (c *Control) scenario(p *proxy.Proxy, _ *http.Request) (any, error) {
	return describeScenario(p.Scenario()), nil
}

func (c *Control) startScenario(p *proxy.Proxy, r *http.Request) (any, error) {
	text, err := body(r)
	if err != nil {
		return nil, err
	}
	s, err := config.ParseScenario("body", text)
	if err != nil {
		return nil, err
	}
	if err := p.StartScenario(s); errors.Is(err, proxy.ErrScenario) {
		return nil, refuse(http.StatusConflict, err.Error())
	} else if err != nil {
		return nil, err
	}
	return describeScenario(p.Scenario()), nil
}

func (c *Control) stopScenario(p *proxy.Proxy, _ *http.Request) (any, error) {
	if !p.StopScenario() {
		return nil, refuse(http.StatusConflict, "no scenario is running: there is nothing to stop")
	}
	return describeScenario(p.Scenario()), nil
}
