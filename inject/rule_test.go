package inject

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/wire"
)

// countedHits is Hits for tests.
type countedHits struct {
	matches, hits uint64
	not           map[wire.Reason]int
}

func (h *countedHits) Match() uint64 { h.matches++; return h.matches }
func (h *countedHits) Hit()          { h.hits++ }
func (h *countedHits) NotApplicable(r wire.Reason) {
	if h.not == nil {
		h.not = map[wire.Reason]int{}
	}
	h.not[r]++
}

func compile(seed uint64, since wire.Stamp, rules ...Rule) *Rules {
	return Compile(rules, Place{Seed: seed, Link: "link", To: "rs0.a", Standing: func(*Rule) (Hits, wire.Stamp) {
		return &countedHits{}, since
	}})
}

// names are the rules for an effect that match, in order.
func (c *Rules) names(e Effect, s Subject, now wire.Stamp) string {
	var all []string
	for b := c.Next(e, &s, now, nil); b != nil; b = c.Next(e, &s, now, b) {
		all = append(all, b.Name)
	}
	return strings.Join(all, " ")
}

func refusal(name string, w When) Rule {
	return Rule{Name: name, When: w, Effect: EffectRefuse, With: With{Code: "91"}}
}

func TestRules_MatchEachField(t *testing.T) {
	full := Subject{
		From: "app", Command: "insert", Collection: "orders", Database: "shop", User: "ann", Application: "till", W: "majority", J: "true",
	}
	pg := Subject{From: "app", Statement: "COMMIT", Database: "shop", User: "ann", Level: "on"}
	for _, tt := range []struct {
		when     When
		s, other Subject
	}{
		{When{From: []string{"app"}}, full, Subject{From: "batch"}},
		{When{Command: []string{"INSERT"}}, full, Subject{Command: "update"}},
		{When{Command: []string{"update", "insert"}}, full, Subject{Command: "delete"}},
		{When{Collection: []string{"orders"}}, full, Subject{Collection: "Orders"}},
		{When{Database: []string{"shop"}}, full, Subject{}},
		{When{User: []string{"ann"}, Application: []string{"till"}}, full, Subject{User: "ann"}},
		{When{WriteConcern: []Concern{{W: "majority"}}}, full, Subject{W: "1"}},
		{When{WriteConcern: []Concern{{J: "true"}}}, full, Subject{W: "majority"}},
		{When{WriteConcern: []Concern{{W: "1"}, {W: "majority", J: "true"}}}, full, Subject{W: "majority", J: "false"}},
		{When{Statement: []string{"commit"}}, pg, Subject{Statement: "INSERT"}},
		{When{SynchronousCommit: []string{"on", "local"}}, pg, Subject{Level: "off"}},
	} {
		c := compile(1, 0, refusal("r", tt.when))
		if got := c.names(EffectRefuse, tt.s, 1); got != "r" {
			t.Errorf("%+v doesn't match %+v", tt.when, tt.s)
		}
		if got := c.names(EffectRefuse, tt.other, 1); got != "" {
			t.Errorf("%+v matches %+v", tt.when, tt.other)
		}
		if c.names(EffectLoseReply, tt.s, 1) != "" {
			t.Error("another effect matches")
		}
	}
}

func TestRules_InTheOrderOfTheSet(t *testing.T) {
	c := compile(1, 0,
		refusal("a", When{Command: []string{"insert"}, Collection: []string{"orders"}}),
		refusal("b", When{}),
		refusal("c", When{Collection: []string{"orders"}}),
		refusal("d", When{Command: []string{"insert"}, Collection: []string{"orders", "orders"}}),
		refusal("elsewhere", When{Link: []string{"other"}}),
		refusal("farther", When{To: []string{"rs0.b"}}),
		refusal("here", When{Link: []string{"link"}, To: []string{"rs0.a", "rs0.b"}, Monitors: true}),
	)
	s := Subject{Command: "insert", Collection: "orders"}
	if got := c.names(EffectRefuse, s, 1); got != "a b c d here" {
		t.Errorf("in order: %q", got)
	}
	s.Monitor = true
	if got := c.names(EffectRefuse, s, 1); got != "here" {
		t.Errorf("a monitor's: %q", got)
	}
	if got := c.names(EffectRefuse, Subject{}, 1); got != "b here" {
		t.Errorf("nothing known: %q", got)
	}
	if compile(1, 0, refusal("x", When{Link: []string{"other"}})) != nil {
		t.Error("rules for other links are some")
	}
}

func TestRules_Limits(t *testing.T) {
	for _, tt := range []struct {
		limit Limit
		want  string
	}{
		{Limit{}, "######"},
		{Limit{Nth: 3}, "..#..."},
		{Limit{First: 2}, "##...."},
		{Limit{First: 4, Nth: 4}, "...#.."},
		{Limit{Probability: 1}, "######"},
	} {
		r := refusal("r", When{})
		r.Limit = tt.limit
		b := compile(1, 0, r).Next(EffectRefuse, &Subject{}, 1, nil)
		got := ""
		for range 6 {
			if _, fires := b.Fire(); fires {
				got += "#"
			} else {
				got += "."
			}
		}
		if got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.limit, got, tt.want)
		}
		if h := b.Hits.(*countedHits); h.hits != uint64(strings.Count(tt.want, "#")) || h.matches != 6 {
			t.Errorf("%+v: counted %+v", tt.limit, h)
		}
	}
	r := refusal("r", When{})
	r.Limit.Until = time.Second
	c := compile(1, 500, r)
	if end := wire.Stamp(500).Add(time.Second); c.names(EffectRefuse, Subject{}, end-1) != "r" || c.names(EffectRefuse, Subject{}, end) != "" {
		t.Error("until is not the time since it was set")
	}
}

// Which matches fire depends on the seed, the link and the rule, and on nothing
// else; and so many do as were asked for.
func TestRules_DrawsAreRepeatable(t *testing.T) {
	draws := func(seed uint64, name string) string {
		r := refusal(name, When{})
		r.Limit.Probability = 0.3
		b := compile(seed, 0, r).Next(EffectRefuse, &Subject{}, 1, nil)
		got := make([]byte, 2000)
		for i := range got {
			got[i] = '.'
			if n, fires := b.Fire(); fires {
				got[i] = '#'
				if want := fmt.Sprintf("%d:%s:%d", seed, name, i+1); b.Draw(n) != want {
					t.Fatalf("draw %s, want %s", b.Draw(n), want)
				}
			}
		}
		return string(got)
	}
	a := draws(42, "a")
	if a != draws(42, "a") {
		t.Error("the same seed draws otherwise")
	}
	if a == draws(43, "a") || a == draws(42, "b") {
		t.Error("another seed or another rule draws the same")
	}
	if rate := float64(strings.Count(a, "#")) / 2000; math.Abs(rate-0.3) > 0.05 {
		t.Errorf("%.3f of all fire, want 0.3", rate)
	}
}

func TestRules_WhatMustBeInspected(t *testing.T) {
	for _, tt := range []struct {
		rule                 Rule
		onMongo, onOtherwise bool
	}{
		{Rule{Name: "a", Effect: EffectRefuse, With: With{Code: "91"}}, true, true},
		{Rule{Name: "a", Effect: EffectHold}, true, false},
		{Rule{Name: "a", Effect: EffectHold, When: When{Monitors: true}}, false, false},
		{Rule{Name: "a", Effect: EffectHold, When: When{Monitors: true, User: []string{"ann"}}}, true, true},
	} {
		c := compile(1, 0, tt.rule)
		if c.Inspect(true) != tt.onMongo || c.Inspect(false) != tt.onOtherwise {
			t.Errorf("%+v: %v and %v", tt.rule, c.Inspect(true), c.Inspect(false))
		}
	}
	if (*Rules)(nil).Inspect(true) {
		t.Error("no rules must be inspected")
	}
}

func TestRule_Check(t *testing.T) {
	for _, r := range []Rule{
		{},
		{Name: "a", Effect: NumEffects},
		{Name: "a", Effect: EffectRefuse, With: With{Code: "1234A6"}},
		{Name: "a", Effect: EffectRefuse, With: With{Code: "-1"}},
		{Name: "a", Effect: EffectLatency, With: With{Delay: -1}},
		{Name: "a", Effect: EffectLatency, With: With{Delay: time.Hour * 24 * 365 * 200}},
		{Name: "a", Effect: EffectLoss, With: With{Loss: Loss{Good: 1}}},
		{Name: "a", Effect: EffectSlicer, With: With{Size: 5, Variation: 5}},
		{Name: "a", Effect: EffectLimitData, With: With{Bytes: -1}},
		{Name: "a", Effect: EffectHold, When: When{WriteConcern: []Concern{{}}}},
		{Name: "a", Effect: EffectHold, When: When{Direction: 7}},
		{Name: "a", Effect: EffectHold, When: When{Command: []string{"x"}, SynchronousCommit: []string{"on"}}},
		{Name: "a", Effect: EffectHold, Limit: Limit{Probability: math.NaN()}},
		{Name: "a", Effect: EffectHold, When: When{User: make([]string, 100), Application: make([]string, 100)}},
	} {
		if r.Check() == nil {
			t.Errorf("%+v is no problem", r)
		}
	}
	if err := CheckRules([]Rule{{Name: "a", Effect: EffectHold}, {Name: "a", Effect: EffectHold}}); err == nil {
		t.Error("two rules of one name are no problem")
	}
}

// rulesOf makes so many rules, of which each matches a collection of its own.
func rulesOf(n int) *Rules {
	rules := make([]Rule, n)
	for i := range rules {
		rules[i] = refusal(fmt.Sprint("r", i), When{Command: []string{"insert"}, Collection: []string{fmt.Sprint("c", i)}})
	}
	return compile(1, 0, rules...)
}

// BenchmarkRules_Next is flat: what is looked up is not searched for.
func BenchmarkRules_Next(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000} {
		for name, collection := range map[string]string{"match": "c0", "none": "other"} {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				c := rulesOf(n)
				s := Subject{From: "app", Command: "insert", Collection: collection, Database: "shop"}
				b.ReportAllocs()
				for b.Loop() {
					c.Next(EffectRefuse, &s, 1, nil)
				}
			})
		}
	}
}

func TestRules_DecidingAllocatesNothing(t *testing.T) {
	c := rulesOf(1000)
	s := Subject{Command: "insert", Collection: "c500"}
	if n := testing.AllocsPerRun(100, func() {
		if b := c.Next(EffectRefuse, &s, 1, nil); b == nil || b.Name != "r500" {
			t.Fatal("not found")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
