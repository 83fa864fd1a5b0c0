package config

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
)

// everyRule has each key with a value, and what it's read as.
var everyRule = map[string]inject.Rule{
	`{name: a, effect: refuse, when: {link: orders, from: app, to: rs0.a, command: [insert, findAndModify], collection: carts,
	  database: shop, user: ann, application: till, write_concern: [majority, 1, {j: true}, {w: 2, j: false}], monitors: true},
	  with: {code: 189, message: no, labels: [A, B]}, limit: {probability: 1%, nth: 3, first: 5, until: 10m}}`: {
		Name: "a", Effect: inject.EffectRefuse,
		When: inject.When{
			Link: []string{"orders"}, From: []string{"app"}, To: []string{"rs0.a"}, Command: []string{"insert", "findAndModify"},
			Collection: []string{"carts"}, Database: []string{"shop"}, User: []string{"ann"}, Application: []string{"till"},
			WriteConcern: []inject.Concern{{W: "majority"}, {W: "1"}, {J: "true"}, {W: "2", J: "false"}}, Monitors: true,
		},
		With:  inject.With{Code: "189", Message: "no", Labels: []string{"A", "B"}},
		Limit: inject.Limit{Probability: 0.01, Nth: 3, First: 5, Until: 10 * time.Minute},
	},
	`{name: b, effect: refuse, when: {statement: COMMIT, synchronous_commit: "on"}, with: {code: 57P01, fatal: true}}`: {
		Name: "b", Effect: inject.EffectRefuse,
		When: inject.When{Statement: []string{"COMMIT"}, SynchronousCommit: []string{"on"}},
		With: inject.With{Code: "57P01", Fatal: true},
	},
	`{name: c, effect: fail_reply, with: {code: 64, write_concern_error: true}}`: {
		Name: "c", Effect: inject.EffectFailReply, With: inject.With{Code: "64", WriteConcernError: true},
	},
	`{name: d, effect: latency, when: {direction: to_client}, with: {delay: 1.5s, jitter: 20ms}}`: {
		Name: "d", Effect: inject.EffectLatency, When: inject.When{Direction: inject.OnlyToClient},
		With: inject.With{Delay: 1500 * time.Millisecond, Jitter: 20 * time.Millisecond},
	},
	`{name: e, effect: slicer, with: {size: 64B, variation: 8B, delay: 10ms}}`: {
		Name: "e", Effect: inject.EffectSlicer, With: inject.With{Size: 64, Variation: 8, Delay: 10 * time.Millisecond},
	},
	`{name: f, effect: loss, with: {loss: {p: 0.1%, r: 30%}}}`: {
		Name: "f", Effect: inject.EffectLoss, With: inject.With{Loss: inject.Loss{P: 0.001, R: 0.3, Bad: 1}},
	},
	`{name: g, effect: loss, with: {loss: 2%}}`:                {Name: "g", Effect: inject.EffectLoss, With: inject.With{Loss: inject.RandomLoss(0.02)}},
	`{name: h, effect: bandwidth, with: {bandwidth: 1Mbit/s}}`: {Name: "h", Effect: inject.EffectBandwidth, With: inject.With{Bandwidth: 1e6}},
	`{name: i, effect: bandwidth, with: {bandwidth: 0}}`:       {Name: "i", Effect: inject.EffectBandwidth},
	`{name: j, effect: limit_data, with: {bytes: 64KiB}}`:      {Name: "j", Effect: inject.EffectLimitData, With: inject.With{Bytes: 64 << 10}},
	`{name: k, effect: timeout, with: {after: 2s}}`:            {Name: "k", Effect: inject.EffectTimeout, With: inject.With{After: 2 * time.Second}},
	`{name: l, effect: reset_peer, with: {after: 0}}`:          {Name: "l", Effect: inject.EffectResetPeer},
	`{name: m, effect: slow_close, with: {delay: 1s}}`:         {Name: "m", Effect: inject.EffectSlowClose, With: inject.With{Delay: time.Second}},
	`{name: n, effect: hold, when: {direction: to_server}}`:    {Name: "n", Effect: inject.EffectHold, When: inject.When{Direction: inject.OnlyToServer}},
	`{name: p, effect: lag, when: {from: rs0.b}, with: {delay: 4s}}`: {
		Name: "p", Effect: inject.EffectLag, When: inject.When{From: []string{"rs0.b"}}, With: inject.With{Delay: 4 * time.Second},
	},
	`{name: q, effect: lag, when: {application: s1}, with: {delay: 4s, ramp: 0.25, acknowledgements: true}}`: {
		Name: "q", Effect: inject.EffectLag, When: inject.When{Application: []string{"s1"}},
		With: inject.With{Delay: 4 * time.Second, Ramp: 0.25, Acknowledgements: true},
	},
	`{name: o, effect: lose_reply, when: {command: [insert]}}`: {Name: "o", Effect: inject.EffectLoseReply, When: inject.When{Command: []string{"insert"}}},
}

// What is read of a file is what its JSON says as well.
func TestParseRules_FromYAMLAndJSON(t *testing.T) {
	for text, want := range everyRule {
		got, err := ParseRules("rules", []byte(text))
		if err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Errorf("%s:\n%+v, %v\nwant\n%+v", text, got, err, want)
			continue
		}
		b, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseRules("json", b)
		if err != nil || len(again) != 1 || !reflect.DeepEqual(again[0], want) {
			t.Errorf("%s:\n%+v, %v\nwant\n%+v", b, again, err, want)
		}
	}
}

func TestParse_RulesOfAFile(t *testing.T) {
	const text = `
links:
  - {name: orders, listen: "127.0.0.1:5433", upstream: "db:5432", rtt: 0}
rules:
  - {name: a, effect: hold, when: {link: orders}}
  - {name: b, effect: lose_reply, when: {statement: COMMIT}}
`
	f, err := Parse("wirewait.yaml", []byte(text), variables)
	if err != nil || len(f.Rules) != 2 || f.Rules[0].Name != "a" || f.Rules[1].Name != "b" {
		t.Fatalf("%+v, %v", f, err)
	}
}
