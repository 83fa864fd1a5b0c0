package config

import (
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

func TestParsePatch_ChangesWhatItSays(t *testing.T) {
	before := inject.Symmetric(80*time.Millisecond, 5*time.Millisecond)
	before.Delay[wire.ToServer].Window = 1 << 20
	for _, tt := range []struct {
		text string
		want func(*inject.Settings)
	}{
		{`{"rtt": "100ms"}`, func(s *inject.Settings) { s.Delay[0].Base, s.Delay[1].Base = 50*time.Millisecond, 50*time.Millisecond }},
		{`{"rtt": 0}`, func(s *inject.Settings) { s.Delay[0], s.Delay[1] = inject.Delay{Window: 1 << 20}, inject.Delay{} }},
		{`{"delay": {"to_client": "7ms"}}`, func(s *inject.Settings) { s.Delay[1].Base = 7 * time.Millisecond }},
		{`{"jitter": "1ms", "distribution": "normal", "correlation": "25%"}`, func(s *inject.Settings) {
			for d := range s.Delay {
				s.Delay[d].Jitter, s.Delay[d].Distribution, s.Delay[d].Correlation = time.Millisecond, inject.Normal, 0.25
			}
		}},
		{`{"loss": "1%", "bandwidth": "8Mbit/s", "window": "none", "connect": false}`, func(s *inject.Settings) {
			for d := range s.Delay {
				s.Delay[d].Loss, s.Delay[d].Bandwidth, s.Delay[d].Window = inject.RandomLoss(0.01), 8_000_000, 0
			}
			s.FreeConnect = true
		}},
		{"rtt: 100ms\nbandwidth_per_connection: 1Gbit/s\n", func(s *inject.Settings) {
			for d := range s.Delay {
				s.Delay[d].Base, s.Delay[d].Bandwidth, s.Delay[d].PerConnection = 50*time.Millisecond, 1e9, true
			}
		}},
	} {
		p, err := ParsePatch("body", []byte(tt.text))
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		got, err := p.Apply(before)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		want := before
		if tt.want(&want); got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", tt.text, got, want)
		}
	}
}

func TestParsePatch_SaysEverythingThatIsWrong(t *testing.T) {
	for text, want := range map[string][]string{
		"":                           {"it is empty"},
		"{":                          {"not YAML"},
		"[]":                         {"a change of a link is a list"},
		"{}":                         {"nothing is changed: give at least one of rtt"},
		`{"rt": "80ms"}`:             {`"rt"`, "did you mean rtt?"},
		`{"rtt": 80}`:                {"rtt \"80\" has no unit: write 80ms"},
		`{"rtt": "${HOME}"}`:         {"the variable HOME is not set"},
		`{"rtt": "1s", "delay": {}}`: {"leave out one of rtt and delay"},
		`{"rtt": "fast", "loss": "2", "connect": 1, "bandwidth": "x", "distribution": "odd"}`: {
			"rtt is", "loss is \"2\": write a percentage", "connect is", "bandwidth is", "distribution is"},
	} {
		_, err := ParsePatch("body", []byte(text))
		if err == nil {
			t.Errorf("%s was taken", text)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v, want %q in it", text, err, w)
			}
		}
	}
	p, err := ParsePatch("body", []byte(`{"rtt": "2ms"}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Apply(inject.Symmetric(80*time.Millisecond, 5*time.Millisecond)); err == nil || !strings.Contains(err.Error(), "give a smaller jitter as well") {
		t.Errorf("jitter larger than the delay: %v", err)
	}
}

func TestParsePatches(t *testing.T) {
	all, err := ParsePatches("body", []byte(`{"links": {"a": {"rtt": "1s"}, "b": {"jitter": "1ms"}}}`))
	if err != nil || len(all) != 2 || *all["a"].Base[0] != 500*time.Millisecond || *all["b"].Jitter != time.Millisecond {
		t.Errorf("%+v, %v", all, err)
	}
	_, err = ParsePatches("body", []byte(`{"links": {"a": {"rtt": "x"}, "b": {"jitter": "y"}}}`))
	if err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("%v, want two problems", err)
	}
}
