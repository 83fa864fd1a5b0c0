//go:build unix

package admin

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// asked are requests whose real answers are held against the file: every route
// and method of it once at least with success.
var asked = []struct {
	method, path, body string
	status             int
}{
	{"GET", "/v1/health", "", 200},
	{"GET", "/v1/config", "", 200},
	{"GET", "/v1/links", "", 200},
	{"PATCH", "/v1/links", `{"links": {"b": {"rtt": "2ms", "jitter": "1ms", "distribution": "normal", "correlation": "5%", "loss": "1%", "bandwidth": "1Gbit/s", "window": "6MiB"}}}`, 200},
	{"PATCH", "/v1/links", `{"links": {"nowhere": {"rtt": "2ms"}}}`, 404},
	{"GET", "/v1/links/{name}", "", 200},
	{"PATCH", "/v1/links/{name}", `{"delay": {"to_server": "20ms"}, "connect": false}`, 200},
	{"PATCH", "/v1/links/{name}", `{"rtt": 80}`, 400},
	{"PUT", "/v1/rules", `[{"name": "lost-acks", "effect": "lose_reply", "when": {"statement": "COMMIT", "link": "b"}, "limit": {"first": 1}}]`, 200},
	{"PUT", "/v1/rules", `[{"name": "x"}]`, 400},
	{"POST", "/v1/rules?at=start", `{"name": "slow", "effect": "latency", "with": {"delay": "5ms"}}`, 200},
	{"POST", "/v1/rules", `{"name": "slow", "effect": "latency", "with": {"delay": "5ms"}}`, 409},
	{"GET", "/v1/rules", "", 200},
	{"GET", "/v1/rules/lost-acks", "", 200},
	{"PATCH", "/v1/rules/lost-acks", `{"limit": {"first": null, "nth": 2}}`, 200},
	{"GET", "/v1/rules/{name}", "", 404},
	{"GET", "/v1/connections", "", 200},
	{"GET", "/v1/connections?link=a", "", 200},
	{"GET", "/v1/connections/{id}", "", 200},
	{"DELETE", "/v1/rules/slow", "", 200},
	{"DELETE", "/v1/connections/{id}", "", 200},
	{"GET", "/v1/connections/{id}", "", 404},
	{"GET", "/v1/waits", "", 200},
	{"GET", "/v1/waits?by=link,operation,basis,replication,concern&reads=true&exact=concern", "", 200},
	{"GET", "/v1/waits?by=concern&buckets=true", "", 200},
	{"GET", "/v1/waits?by=colour", "", 400},
	{"GET", "/v1/writes", "", 200},
	{"GET", "/v1/writes?link=a&waits_for=majority&limit=1", "", 200},
	{"GET", "/v1/writes?limit=none", "", 400},
	{"GET", "/v1/observed", "", 200},
	{"GET", "/v1/observed?server=rs0.a&limit=1", "", 200},
	{"GET", "/v1/observed?limit=0", "", 400},
	{"GET", "/v1/observed?server=nobody", "", 404},
	{"DELETE", "/v1/waits", "", 200},
	{"GET", "/v1/scenario", "", 200},
	{"PUT", "/v1/scenario", `{"name": "evening", "end": "1h", "steps": [{"name": "slow", "at": "0s", "links": {"a": {"rtt": "1s"}, "b": "base"}}]}`, 200},
	{"PUT", "/v1/scenario", `{"name": "evening", "end": "1h", "steps": [{"name": "slow", "at": "0s", "links": {"a": {"rtt": "1s"}, "b": "base"}}]}`, 409},
	{"DELETE", "/v1/scenario", "", 200},
	{"DELETE", "/v1/scenario", "", 409},
}

// TestOpenAPI_IsWhatIsAnswered walks all routes of the server and of the file,
// which must be the same, and holds real answers and requests against it.
func TestOpenAPI_IsWhatIsAnswered(t *testing.T) {
	a, p, summary := control(t)
	d := document(t)
	dial(t, p, "a")
	x := &wire.Exchange{Protocol: wire.MongoDB, Operation: "insert", Write: true, Answered: true, OK: true}
	x.Mongo.WriteConcern = wire.WriteConcern{W: "majority", Source: "command"}
	write := &trace.Finished{Exchange: x, Conn: &trace.Conn{Link: "a"}, Waits: trace.Split(x)}
	write.Replication.Acknowledged = []trace.MemberWait{{Member: "rs0.b", SyncSource: "rs0.a"}}
	summary.Consume(write)
	write.Meanwhile = trace.Meanwhile{Activity: *sample(time.Now()), Samples: 1, Age: time.Second}
	a.slow.Consume(write)
	a.did.Watch("rs0.a", time.Second)
	a.did.Add("rs0.a", sample(time.Now()))
	var all Connections
	a.call("GET", "/v1/connections", "", &all)
	values := strings.NewReplacer("{name}", "a", "{id}", jsonNumber(all.Connections[0].ID))

	answered := map[string]bool{}
	for _, ask := range asked {
		pattern, _, _ := strings.Cut(ask.path, "?")
		if strings.HasPrefix(pattern, "/v1/rules/") {
			pattern = "/v1/rules/{name}"
		}
		operation, ok := dig(d, "paths", pattern, strings.ToLower(ask.method)).(object)
		if !ok {
			t.Errorf("the file has no %s %s", ask.method, pattern)
			continue
		}
		if ask.status == 404 && strings.Contains(ask.path, "{id}") { // it was cut
			soon(t, "it is gone", func() bool { return len(p.Connections()) == 0 })
		}
		status, answer := a.raw(ask.method, values.Replace(ask.path), ask.body)
		if status != ask.status {
			t.Errorf("%s %s: %d, want %d: %s", ask.method, ask.path, status, ask.status, answer)
		}
		response, ok := dig(operation, "responses", jsonNumber(uint64(status))).(object)
		if !ok {
			response = dig(operation, "responses", "default").(object)
		} else {
			answered[ask.method+" "+pattern] = true
		}
		holds(t, d, response, answer, ask.method+" "+ask.path)
		if ask.body != "" && status != 400 {
			holds(t, d, operation["requestBody"].(object), ask.body, "the body of "+ask.method+" "+ask.path)
		}
	}
	inFile := map[string]bool{}
	for path, item := range d["paths"].(object) {
		for method := range item.(object) {
			if method != "parameters" {
				inFile[strings.ToUpper(method)+" "+path] = true
			}
		}
	}
	var c Control
	served := slices.Sorted(maps.Keys(c.handlers()))
	if !slices.Equal(served, slices.Sorted(maps.Keys(inFile))) {
		t.Errorf("the server has\n%q\nthe file has\n%q", served, slices.Sorted(maps.Keys(inFile)))
	}
	if !slices.Equal(served, slices.Sorted(maps.Keys(answered))) {
		t.Errorf("the server has\n%q\nthis test asked, with success,\n%q", served, slices.Sorted(maps.Keys(answered)))
	}
}

func holds(t *testing.T, d, body object, text, what string) {
	t.Helper()
	body, err := resolve(d, body)
	if err != nil {
		t.Fatal(err)
	}
	schema, ok := dig(body, "content", "application/json", "schema").(object)
	if !ok {
		t.Fatalf("%s has no schema", what)
	}
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v in %q", what, err, text)
	}
	if err := conform(d, schema, v, "it"); err != nil {
		t.Errorf("%s: %v\n%s", what, err, text)
	}
}

func dig(at any, keys ...string) any {
	for _, k := range keys {
		m, _ := at.(object)
		at = m[k]
	}
	return at
}

// TestOpenAPI_NamesEveryField: a schema has the fields that its type has, those
// that are always there as required.
func TestOpenAPI_NamesEveryField(t *testing.T) {
	d := document(t)
	var effects []string
	for _, e := range dig(d, "components", "schemas", "NewRule", "properties", "effect", "enum").([]any) {
		effects = append(effects, e.(string))
	}
	if !slices.Equal(effects, inject.EffectNames()) {
		t.Errorf("the file has the effects %q, there are %q", effects, inject.EffectNames())
	}
	for _, v := range []any{
		Refusal{}, Health{}, Links{}, Link{}, LinkSource{}, LinkConnections{}, Way{}, Delay{}, OneWay{}, Connections{}, Connection{}, ConnectionWay{},
		Waits{}, Wait{}, Quantiles{}, Buckets{}, Writes{}, Write{}, WriteMember{}, Parts{}, Scenario{}, Rules{}, Rule{}, RuleLink{},
	} {
		typ := reflect.TypeOf(v)
		schema, ok := dig(d, "components", "schemas", typ.Name()).(object)
		if !ok {
			t.Errorf("the file has no schema %s", typ.Name())
			continue
		}
		var fields, always []string
		for i := range typ.NumField() {
			name, option, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			fields = append(fields, name)
			if option != "omitempty" {
				always = append(always, name)
			}
		}
		required := []string{}
		for _, r := range schema["required"].([]any) {
			required = append(required, r.(string))
		}
		slices.Sort(fields)
		slices.Sort(always)
		slices.Sort(required)
		if got := slices.Sorted(maps.Keys(schema["properties"].(object))); !slices.Equal(got, fields) {
			t.Errorf("%s: the schema has %q, the type %q", typ.Name(), got, fields)
		}
		if typ.Name() != "OneWay" && !slices.Equal(required, always) {
			t.Errorf("%s: the schema requires %q, and %q are always there", typ.Name(), required, always)
		}
	}
}
