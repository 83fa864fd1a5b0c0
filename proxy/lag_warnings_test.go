package proxy

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

func lagBy(d time.Duration, w inject.When, acknowledgements bool) inject.Rule {
	return inject.Rule{Name: "r", Effect: inject.EffectLag, When: w, With: inject.With{Delay: d, Acknowledgements: acknowledgements}}
}

func TestRuleWarnings(t *testing.T) {
	set := LinkConfig{Name: "m", To: "rs0.a", Protocol: wire.MongoDB, Sources: []Source{{Name: "rs0.b"}}}
	standby := LinkConfig{Name: "s", From: "pg.s1", To: "pg.p", Protocol: wire.Postgres}
	with := func(s, r time.Duration) LinkConfig {
		l := standby
		l.WALTimeouts = WALTimeouts{s, r}
		return l
	}
	const flow, report, source = "flow control", "replSetUpdatePosition", "maxSyncSourceLagSecs"
	const receiver, sender = "half of wal_receiver_timeout", "half of wal_sender_timeout"
	for name, tt := range map[string]struct {
		rule inject.Rule
		link LinkConfig
		want []string
	}{
		"at 5 s":                    {lagBy(5*time.Second, inject.When{}, true), set, nil},
		"above 5 s":                 {lagBy(5*time.Second+1, inject.When{From: []string{"rs0.b"}}, false), set, []string{flow}},
		"above 15 s":                {lagBy(16*time.Second, inject.When{}, false), set, []string{flow}},
		"above 15 s, reports too":   {lagBy(16*time.Second, inject.When{}, true), set, []string{flow, report}},
		"above 30 s":                {lagBy(31*time.Second, inject.When{}, false), set, []string{flow, source}},
		"nobody's":                  {lagBy(time.Hour, inject.When{From: []string{"rs0.c"}}, true), set, nil},
		"another link's":            {lagBy(time.Hour, inject.When{Link: []string{"x"}}, true), set, nil},
		"another end's":             {lagBy(time.Hour, inject.When{To: []string{"rs0.b"}}, true), set, nil},
		"another effect":            {inject.Rule{Effect: inject.EffectLatency, With: inject.With{Delay: time.Hour}}, set, nil},
		"standby, at half":          {lagBy(30*time.Second, inject.When{}, false), standby, nil},
		"standby, above half":       {lagBy(31*time.Second, inject.When{}, false), standby, []string{receiver, sender}},
		"standby, both ways":        {lagBy(16*time.Second, inject.When{}, true), standby, []string{receiver, sender}},
		"standby, short time-outs":  {lagBy(3*time.Second, inject.When{}, false), with(7*time.Second, 5*time.Second), []string{receiver}},
		"standby, for ever":         {lagBy(time.Hour, inject.When{}, true), with(Never, Never), nil},
		"a protocol yet to be told": {lagBy(31*time.Second, inject.When{}, false), LinkConfig{}, []string{flow, source, receiver, sender}},
	} {
		got := RuleWarnings([]inject.Rule{tt.rule}, []LinkConfig{tt.link, tt.link})
		if len(got) != len(tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
			continue
		}
		for i, w := range got {
			if w.Rule != tt.rule.Name || !strings.Contains(w.Text, tt.want[i]) {
				t.Errorf("%s: %v, want %v", name, got, tt.want)
			}
		}
	}
}

// The log says it at the start and when rules are set, once for as long as they're
// in force.
func TestProxy_WarnsOfLags(t *testing.T) {
	var log logBuffer
	const said = "flow control"
	want := func(when string, n int) {
		t.Helper()
		if got := log.count(said); got != n {
			t.Errorf("%s: said %d times, want %d", when, got, n)
		}
	}
	link := LinkConfig{Name: "m", Listen: "127.0.0.1:0", Upstream: "127.0.0.1:1", Protocol: wire.MongoDB}
	p, err := Start(context.Background(), Config{
		Links: []LinkConfig{link}, Rules: []inject.Rule{lagBy(6*time.Second, inject.When{}, false)}, Log: log.logger(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Shutdown(context.Background()) }()
	want("at the start", 1)
	set := func(rules ...inject.Rule) {
		t.Helper()
		if err := p.SetRules(rules); err != nil {
			t.Fatal(err)
		}
	}
	set(lagBy(6*time.Second, inject.When{}, false))
	want("the same again", 1)
	set(lagBy(7*time.Second, inject.When{}, false))
	want("another one", 2)
	set()
	set(lagBy(7*time.Second, inject.When{}, false))
	want("after it was gone", 3)
	link.Delay = inject.Symmetric(time.Second, 0)
	if err := p.Reload([]LinkConfig{link}); err != nil {
		t.Fatal(err)
	}
	want("after a reload that changes something else", 3)
}

// What a server was found to have goes before what was taken for it.
func TestProxy_WarnsByWhatWasFound(t *testing.T) {
	var log logBuffer
	p, err := Start(context.Background(), Config{
		Links: []LinkConfig{{Name: "s", To: "pg.p", Listen: "127.0.0.1:0", Upstream: "127.0.0.1:1", Protocol: wire.Postgres}},
		Rules: []inject.Rule{lagBy(3*time.Second, inject.When{}, false)}, Log: log.logger(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Shutdown(context.Background()) }()
	if n := log.count("wal_sender_timeout"); n != 0 {
		t.Errorf("said %d times before it was known", n)
	}
	for range 2 {
		p.FoundWALTimeouts("pg.p", WALTimeouts{Sender: 5 * time.Second})
		p.FoundWALTimeouts("pg.x", WALTimeouts{Sender: time.Second})
	}
	if s, r := log.count("half of wal_sender_timeout (5s)"), log.count("half of wal_receiver_timeout"); s != 1 || r != 0 {
		t.Errorf("said %d times of the sender, %d times of the receiver", s, r)
	}
}
