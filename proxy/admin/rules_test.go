//go:build unix

package admin

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
)

func namesOf(p *proxy.Proxy) (names []string) {
	for _, r := range p.Rules() {
		names = append(names, r.Name)
	}
	return names
}

func TestV1_Rules(t *testing.T) {
	a, p, _ := control(t)
	const partition = `{"name": "partition", "effect": "hold", "when": {"link": "a"}}`
	const lost = `{"name": "lost-acks", "effect": "lose_reply", "when": {"statement": ["COMMIT"]}, "limit": {"probability": "1%"}}`
	var all Rules
	if code := a.call("GET", "/v1/rules", "", &all); code != 200 || len(all.Rules) != 0 {
		t.Errorf("%d, %+v", code, all)
	}
	if code := a.call("PUT", "/v1/rules", "["+partition+"]", &all); code != 200 || len(all.Rules) != 1 || len(all.Rules[0].Links) != 1 || all.Rules[0].Links[0].Link != "a" {
		t.Errorf("%d, %+v", code, all)
	}
	a.call("POST", "/v1/rules", lost, &all)
	a.call("POST", "/v1/rules?at=start", `{"name": "slow", "effect": "latency", "with": {"delay": "5ms"}}`, &all)
	if got := namesOf(p); !slices.Equal(got, []string{"slow", "partition", "lost-acks"}) {
		t.Errorf("%q", got)
	}

	var one Rule
	if code := a.call("PATCH", "/v1/rules/lost-acks", `{"limit": {"probability": "5%", "until": "10m"}, "when": {"statement": null, "database": "shop"}}`, &one); code != 200 {
		t.Errorf("%d", code)
	}
	var text map[string]any
	if err := json.Unmarshal(one.Rule, &text); err != nil {
		t.Fatal(err)
	}
	when, limit := text["when"].(map[string]any), text["limit"].(map[string]any)
	if limit["probability"] != "5%" || limit["until"] != "10m0s" || when["statement"] != nil || when["database"] == nil {
		t.Errorf("%s", one.Rule)
	}
	if r := p.Rules()[2]; r.Limit.Probability != 0.05 || r.When.Statement != nil || r.Effect != inject.EffectLoseReply {
		t.Errorf("%+v", r)
	}
	// What is shown can be put back.
	a.call("GET", "/v1/rules", "", &all)
	var plain []json.RawMessage
	for _, r := range all.Rules {
		plain = append(plain, r.Rule)
	}
	back, _ := json.Marshal(plain)
	since := p.Rules()[1].Since
	if code := a.call("PUT", "/v1/rules", string(back), nil); code != 200 || !p.Rules()[1].Since.Equal(since) {
		t.Errorf("%d: rules that are the same began afresh", code)
	}
	if code := a.call("DELETE", "/v1/rules/partition", "", &all); code != 200 || len(all.Rules) != 2 {
		t.Errorf("%d, %+v", code, all)
	}
}

func TestV1_RulesChangeWholeOrNotAtAll(t *testing.T) {
	a, p, _ := control(t)
	a.call("PUT", "/v1/rules", `[{"name": "one", "effect": "hold", "when": {"link": "a"}}]`, nil)
	for _, tt := range []struct {
		method, path, body string
		status             int
		says               []string
	}{
		{"PUT", "/v1/rules", "", 400, []string{"it is empty"}},
		{"PUT", "/v1/rules", `[{"name": "x", "effect": "explode"}, {"effect": "hold"}, {"name": "y", "effect": "hold", "wen": {}}]`, 400,
			[]string{"explode", "a rule needs a name", "did you mean when?"}},
		{"PUT", "/v1/rules", `[{"name": "x", "effect": "hold", "when": {"link": "nowhere"}}]`, 400, []string{"there is no link"}},
		{"PUT", "/v1/rules", `[{"name": "x", "effect": "hold"}, {"name": "x", "effect": "hold"}]`, 400, []string{"two rules are called x"}},
		{"POST", "/v1/rules", `{"name": "one", "effect": "hold"}`, 409, []string{"there is a rule one already"}},
		{"POST", "/v1/rules", `[]`, 400, []string{"it has no rule"}},
		{"POST", "/v1/rules?at=middle", `{"name": "two", "effect": "hold"}`, 400, []string{"use end"}},
		{"PATCH", "/v1/rules/one", `{"limit": {"probability": "200%"}, "effect": "explode"}`, 400, []string{"probability", "explode"}},
		{"PATCH", "/v1/rules/one", `effect: hold`, 400, []string{"JSON object"}},
		{"PATCH", "/v1/rules/two", `{}`, 404, []string{`there is no rule "two"`}},
		{"DELETE", "/v1/rules/two", "", 404, []string{`there is no rule "two"`}},
		{"GET", "/v1/rules/two", "", 404, []string{`there is no rule "two"`}},
	} {
		said := a.refused(tt.method, tt.path, tt.body, tt.status)
		for _, w := range tt.says {
			if !strings.Contains(said, w) {
				t.Errorf("%s %s %s: no %q in %s", tt.method, tt.path, tt.body, w, said)
			}
		}
		if got := namesOf(p); !slices.Equal(got, []string{"one"}) {
			t.Fatalf("%s %s %s: refused, and the rules are %q", tt.method, tt.path, tt.body, got)
		}
	}
}

// TestV1_WhatApplies: a rule lists its connections, and a connection its rules.
func TestV1_WhatApplies(t *testing.T) {
	a, p, _ := control(t)
	dial(t, p, "a")
	dial(t, p, "b")
	a.call("PUT", "/v1/rules", `[{"name": "on-a", "effect": "slow_close", "with": {"delay": "1ms"}, "when": {"link": "a"}},
		{"name": "anywhere", "effect": "slicer", "with": {"size": "1KiB"}}]`, nil)
	var conns Connections
	a.call("GET", "/v1/connections", "", &conns)
	if len(conns.Connections) != 2 || !slices.Equal(conns.Connections[0].Rules, []string{"on-a", "anywhere"}) || !slices.Equal(conns.Connections[1].Rules, []string{"anywhere"}) {
		t.Fatalf("%+v", conns)
	}
	var all Rules
	a.call("GET", "/v1/rules", "", &all)
	if all.Rules[0].Connections != 1 || all.Rules[1].Connections != 2 {
		t.Errorf("%+v", all)
	}
	var some Connections
	a.call("GET", "/v1/connections?rule=on-a", "", &some)
	if len(some.Connections) != 1 || some.Connections[0].ID != conns.Connections[0].ID {
		t.Errorf("%+v", some)
	}
	a.refused("GET", "/v1/connections?rule=nowhere", "", 404)

	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf(`{"name": "r%d", "effect": "slicer", "with": {"size": "1KiB"}}`, i))
	}
	a.call("PUT", "/v1/rules", "["+strings.Join(many, ",")+"]", nil)
	conns = Connections{}
	var one Connection
	a.call("GET", "/v1/connections", "", &conns)
	a.call("GET", "/v1/connections/"+jsonNumber(conns.Connections[0].ID), "", &one)
	if c := conns.Connections[0]; len(c.Rules) != fewRules || c.RulesTotal != 100 || len(one.Rules) != 100 {
		t.Errorf("a list names %d of %d rules, one connection %d", len(c.Rules), c.RulesTotal, len(one.Rules))
	}
}
