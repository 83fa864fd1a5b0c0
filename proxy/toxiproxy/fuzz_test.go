package toxiproxy

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
)

// FuzzToxic: whatever is sent becomes a toxic whose rule can be in force and which
// is shown as JSON that makes the same rule, or a complaint with a code.
func FuzzToxic(f *testing.F) {
	for _, seed := range []string{
		`{"type":"latency","attributes":{"latency":100,"jitter":5}}`, `{"type":"bandwidth","stream":"Upstream","attributes":{"rate":0},"toxicity":0.5}`,
		`{"type":"slicer","attributes":{"average_size":10,"size_variation":3,"delay":100}}`, `{"type":"packet_loss","attributes":{"loss_rate":0.5,"correlation":1}}`,
		`{"type":"refuse","attributes":{"code":189,"first":1,"match":{"command":["insert","update"],"write_concern":{"w":1,"j":true}}}}`,
		`{"type":"refuse","attributes":{"code":"57P01","fatal":"true","match":"statement=COMMIT,user=bob","ttl":"30s"}}`,
		`{"type":"hold","attributes":{"ttl":1e3,"nth":2}}`, `{"type":"lag","attributes":{"delay":"2s"}}`, `{"type":"loss","attributes":{"loss":"1%"}}`,
		`{"type":"noop","attributes":null,"toxicity":null}`, `[]`, ``, `{"type":"timeout","attributes":{"timeout":9223372036854775807}}`,
	} {
		f.Add([]byte(seed), []byte(`{"attributes":{"latency":7,"rate":1,"first":null,"ttl":5},"toxicity":2}`))
	}
	now := time.Unix(1_000_000, 0)
	f.Fuzz(func(t *testing.T, text, change []byte) {
		made, err := readToxic("p", text, now)
		if err != nil {
			if e := asAPIError(err); e.Status/100 != 4 || e.Message == "" {
				t.Errorf("%d %q", e.Status, e.Message)
			}
			return
		}
		check(t, made, now)
		if next, err := made.changed("p", change, now); err == nil {
			check(t, next, now)
		}
	})
}

func check(t *testing.T, made *toxic, now time.Time) {
	t.Helper()
	if made.rule != nil {
		if err := inject.CheckRules([]inject.Rule{*made.rule}); err != nil {
			t.Error(err)
		}
	}
	text, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	again, err := readToxic("p", text, now)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if same, err := json.Marshal(again); err != nil || string(same) != string(text) {
		t.Errorf("%s, %s: %v", text, same, err)
	}
}

// FuzzProxies: a list of proxies is read whole or refused.
func FuzzProxies(f *testing.F) {
	for _, seed := range []string{
		`[]`, `{}`, `[{"name":"a","upstream":"b:1"}]`, `[{"name":"a","upstream":"b:1","enabled":null,"toxics":[{"type":"noop"}]}]`, `[null]`,
		`[{"name":"a","upstream":"b:1","toxics":[null]}]`, `[{"NAME":"a","upstream":"b:1","toxics":{}}]`, `null`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := readProxies(text, time.Unix(1_000_000, 0))
		if e := (*apiError)(nil); err != nil {
			if e = asAPIError(err); e.Status/100 != 4 {
				t.Errorf("%d %q", e.Status, e.Message)
			}
		}
		for _, w := range list {
			if w.Name == "" || w.Upstream == "" {
				t.Errorf("%+v", w)
			}
		}
	})
}
