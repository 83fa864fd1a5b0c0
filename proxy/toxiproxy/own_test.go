package toxiproxy

import (
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/proxy"
)

// A toxic with a ttl is gone by itself, for connections and in the lists.
func TestToxics_TTL(t *testing.T) {
	drivers(t, func(t *testing.T, driver string) {
		r := newRig(t, proxy.Config{Driver: driver})
		c := r.dial(r.add("a"))
		c.echoes("before")
		r.toxic("a", `{"type":"bandwidth","attributes":{"rate":0,"ttl":200}}`)
		r.toxic("a", `{"type":"latency","attributes":{"latency":3600000,"ttl":"0.2s"}}`)
		r.does("GET /proxies/a/toxics/latency_downstream", 200,
			`{"attributes":{"latency":3600000,"jitter":0,"ttl":"0.2s"},"name":"latency_downstream","type":"latency","stream":"downstream","toxicity":1}`)
		c.echoes("waits for the end of both")
		soon(t, "they are gone", func() bool { return r.raw("GET", "/proxies/a/toxics", "").body == "[]" })
		if n := len(r.proxy.Toxics()); n != 0 {
			t.Errorf("%d are in force", n)
		}
	})
}

// A type that Toxiproxy has not is listed, changed and taken away as any other.
func TestToxics_OurTypes(t *testing.T) {
	r := newRig(t, proxy.Config{})
	r.add("a")
	refuse := `{"attributes":{"code":112,"first":2,"match":{"collection":["orders"],"command":"insert"}},"name":"refuse_downstream","type":"refuse","stream":"downstream","toxicity":1}`
	r.does(`POST /proxies/a/toxics {"type":"refuse","attributes":{"match":{"collection":["orders"],"command":"insert"},"code":112,"first":2}}`, 200, refuse)
	rule := r.proxy.Toxics()[0].Rule
	if rule.Effect != inject.EffectRefuse || rule.With.Code != "112" || rule.Limit.First != 2 || rule.Stacks ||
		rule.When.Collection[0] != "orders" || rule.When.Link[0] != "a" || rule.When.Direction != inject.BothWays || rule.When.Monitors {
		t.Errorf("%+v", rule)
	}
	r.does(`PATCH /proxies/a/toxics/refuse_downstream {"attributes":{"code":"91","first":null}}`, 200,
		strings.NewReplacer("112", `"91"`, `"first":2,`, "").Replace(refuse))
	r.does("DELETE /proxies/a/toxics/refuse_downstream", 204, "")

	// As Toxiproxy's command line sends it.
	r.toxic("a", `{"name":"x","type":"refuse","stream":"upstream","attributes":{"code":"57P01","fatal":"true","match":"statement=COMMIT,statement=INSERT,user=bob"}}`)
	rule = r.proxy.Toxics()[0].Rule
	if w := rule.When; strings.Join(w.Statement, " ") != "COMMIT INSERT" || w.User[0] != "bob" || !rule.With.Fatal {
		t.Errorf("%+v", rule)
	}
	r.does("DELETE /proxies/a/toxics/x", 204, "")

	// hold is on bytes, so it stacks, and has its stream's direction.
	r.toxic("a", `{"type":"hold","stream":"upstream","toxicity":0.5}`)
	if rule := r.proxy.Toxics()[0].Rule; !rule.Stacks || rule.When.Direction != inject.OnlyToServer || rule.Limit.Probability != 0.5 || !rule.When.Monitors {
		t.Errorf("%+v", rule)
	}
	// lag is of a member's whole stream, and the first is the one.
	r.toxic("a", `{"type":"lag","attributes":{"delay":"2s","match":{"application":"s1"}}}`)
	if rule := r.proxy.Toxics()[1].Rule; rule.Stacks || rule.With.Delay != 2*time.Second || rule.When.Direction != inject.BothWays {
		t.Errorf("%+v", rule)
	}
	r.does("POST /reset", 204, "")
	for _, name := range inject.EffectNames() {
		if types[name] == nil && !effectNamed(name) {
			t.Errorf("effect %s is no type", name)
		}
	}
}

// Names can be anything, and never meet in the rules.
func TestToxics_Names(t *testing.T) {
	r := newRig(t, proxy.Config{})
	for _, name := range []string{"a/b", "a", "ü ü", "%2F"} {
		r.add(name)
	}
	r.does(`POST /populate [{"name":"x/y","upstream":"x:1","toxics":[{"name":"z","type":"timeout"}]},{"name":"x","upstream":"x:1","toxics":[{"name":"y/z","type":"timeout"}]}]`, 201, "")
	r.toxic("%C3%BC%20%C3%BC", `{"name":"ä/","type":"timeout"}`)
	if n := len(r.proxy.Toxics()); n != 3 {
		t.Errorf("%d toxics", n)
	}
}
