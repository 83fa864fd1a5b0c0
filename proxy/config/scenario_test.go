package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

const evening = `
name: evening
steps:
  - {name: slow, at: 0, links: {app-sgp: {rtt: 300ms}, app-fra: {loss: 1%}}}
  - name: recovered
    at: 30s
    links: {app-sgp: base, app-fra: {loss: 2%}}
    rules: [{name: cut-fra, when: {link: app-fra}, effect: hold}]
  - {name: whole, at: 40s, rules: []}
end: 1m
`

func TestParseScenario(t *testing.T) {
	s, err := ParseScenario("evening.yaml", []byte(evening))
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "evening" || s.End != time.Minute || len(s.Steps) != 3 {
		t.Fatalf("%+v", s)
	}
	slow, recovered := s.Steps[0], s.Steps[1]
	if slow.Name != "slow" || slow.At != 0 || len(slow.Links) != 2 || *slow.Links["app-sgp"].Base[0] != 150*time.Millisecond {
		t.Errorf("%+v", slow)
	}
	if r := recovered.Rules; len(r) != 1 || r[0].Name != "cut-fra" || slow.Rules != nil || s.Steps[2].Rules == nil || len(s.Steps[2].Rules) != 0 {
		t.Errorf("rules: %+v", s.Steps)
	}
	if recovered.At != 30*time.Second || !slices.Equal(recovered.Base, []string{"app-sgp"}) || len(recovered.Links) != 1 {
		t.Errorf("%+v", recovered)
	}
}

func TestParseScenario_SaysEverythingThatIsWrong(t *testing.T) {
	for text, want := range map[string][]string{
		"":   {"it is empty"},
		"{}": {"a scenario needs a name", "a scenario needs an end", "a scenario needs steps"},
		"{name: a b, steps: [], end: 10}": {
			`the scenario is called "a b"`, "steps is an empty list", `end "10" has no unit`},
		"{name: x, end: 1s, steps: [{}, 7]}": {
			"a step needs a name", "a step needs at", "this step changes nothing", `a step is "7"`},
		"{name: x, end: 1s, steps: [{name: a, at: 5s, links: {l: {rtt: 1}}}, {name: b, at: 2s, links: {l: fast}}]}": {
			`rtt "1" has no unit`, "this step is at 2s, before the one above it (5s)", "end is 1s, before the last step (5s)", `a change of a link is "fast"`},
		"{name: x, end: 1s, stepz: []}": {"did you mean steps?"},
	} {
		_, err := ParseScenario("x.yaml", []byte(text))
		if err == nil {
			t.Errorf("%s was taken", text)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: no %q in\n%v", text, w, err)
			}
		}
	}
}
