package toxiproxy

import (
	"fmt"
	"testing"
)

// proxyA is where scripts about toxics begin.
var proxyA = step{do: `POST /proxies {"name":"a","listen":"127.0.0.1:0","upstream":"{upstream}"}`}

// ofType is a script that adds a toxic of a type and shows it.
func ofType(typ string, attributes string) []step {
	return []step{
		{do: fmt.Sprintf(`POST /proxies/a/toxics {"type":%q,"attributes":%s}`, typ, attributes)},
		{do: fmt.Sprintf(`GET /proxies/a/toxics/%s_downstream`, typ)},
		{do: fmt.Sprintf(`POST /proxies/a/toxics {"name":"up","type":%q,"stream":"upstream","toxicity":0.25,"attributes":%s}`, typ, attributes)},
		{do: `GET /proxies/a/toxics`},
		{do: `GET /proxies`},
		{do: `DELETE /proxies/a/toxics/up`},
		{do: fmt.Sprintf(`DELETE /proxies/a/toxics/%s_downstream`, typ)},
	}
}

func TestToxics(t *testing.T) {
	script := []step{proxyA, {do: `GET /proxies/a/toxics`}}
	for _, toxic := range [][2]string{
		{"latency", `{"latency":20,"jitter":5}`}, {"bandwidth", `{"rate":100}`}, {"slow_close", `{"delay":30}`},
		{"timeout", `{"timeout":1000}`}, {"reset_peer", `{"timeout":500}`}, {"limit_data", `{"bytes":4096}`},
		{"slicer", `{"average_size":64,"size_variation":8,"delay":10}`}, {"noop", `{}`},
	} {
		script = append(script, ofType(toxic[0], toxic[1])...)
	}
	// without attributes they are 0
	for _, typ := range []string{"latency", "bandwidth", "slow_close", "timeout", "reset_peer", "limit_data", "noop"} {
		script = append(script, ofType(typ, `{}`)...)
		script = append(script, ofType(typ, `null`)...)
		script = append(script, step{do: fmt.Sprintf(`POST /proxies/a/toxics {"name":"x","type":%q}`, typ)}, step{do: `DELETE /proxies/a/toxics/x`})
	}
	compare(t, script)
}

func TestToxics_StreamsAndNames(t *testing.T) {
	compare(t, []step{proxyA,
		{do: `POST /proxies/a/toxics {"type":"latency","stream":"downstream"}`},
		{do: `POST /proxies/a/toxics {"type":"latency","stream":"upstream"}`},
		{do: `POST /proxies/a/toxics {"type":"latency","stream":"Upstream"}`},
		{do: `POST /proxies/a/toxics {"type":"latency","stream":"DOWNSTREAM"}`},
		{do: `POST /proxies/a/toxics {"name":"null","type":"noop","stream":null}`},
		{do: `POST /proxies/a/toxics {"type":"latency"}`},
		{do: `POST /proxies/a/toxics {"name":"latency_upstream","type":"noop"}`},
		{do: `POST /proxies/a/toxics {"name":"","type":"bandwidth"}`},
		{do: `POST /proxies/a/toxics {"name":null,"type":"timeout"}`},
		{do: `POST /proxies/a/toxics {"NAME":"case","Type":"noop","STREAM":"upstream","Toxicity":0.5,"Attributes":{}}`},
		{do: `POST /proxies/a/toxics {"name":"two words","type":"noop"}`},
		{do: `POST /proxies/a/toxics {"name":"a/b","type":"noop"}`},
		{do: `POST /proxies/a/toxics {"name":"<>&","type":"noop"}`},
		{do: `POST /proxies/a/toxics {"name":"form","type":"latency","attributes":{"latency":7}}`, head: form},
		{do: `POST /proxies/a/toxics {"name":"more","type":"latency","unknown":1,"attributes":{"latency":7,"unknown":"x"}} and what follows`},
		{do: `POST /proxies/a/toxics {"name":"case2","type":"latency","attributes":{"LATENCY":7,"Jitter":1}}`},
		{do: `POST /proxies/a/toxics {"name":"nulls","type":"latency","toxicity":null,"attributes":{"latency":null,"jitter":1}}`},
		{do: `POST /proxies/a/toxics {"name":"none","type":"noop","toxicity":0}`},
		{do: `POST /proxies/a/toxics {"name":"some","type":"noop","toxicity":0.1}`},
		{do: `POST /proxies/a/toxics {"name":"tiny","type":"noop","toxicity":1e-7}`},
		{do: `POST /proxies/a/toxics {"name":"float32","type":"noop","toxicity":0.123456789}`},
		{do: `POST /proxies/a/toxics {"name":"below","type":"noop","toxicity":-3}`},
		{do: `POST /proxies/a/toxics {"name":"above","type":"noop","toxicity":7}`},
		{do: `GET /proxies/a/toxics`},
		{do: `GET /proxies/a/toxics/two%20words`},
		{do: `GET /proxies/a/toxics/%3C%3E&`},
		{do: `GET /proxies/a/toxics/a%2Fb`},
		{do: `DELETE /proxies/a/toxics/two%20words`},
		{do: `GET /proxies/a`},
	})
}

func TestToxics_Bad(t *testing.T) {
	compare(t, []step{proxyA,
		{do: `POST /proxies/a/toxics {"name":"t","type":"latency","attributes":{"latency":5}}`},
		{do: `POST /proxies/none/toxics {"type":"latency"}`},
		{do: `GET /proxies/none/toxics`}, {do: `GET /proxies/none/toxics/t`}, {do: `POST /proxies/none/toxics/t {}`}, {do: `DELETE /proxies/none/toxics/t`},
		{do: `GET /proxies/a/toxics/none`}, {do: `POST /proxies/a/toxics/none {}`}, {do: `PATCH /proxies/a/toxics/none`}, {do: `DELETE /proxies/a/toxics/none`},
		{do: `POST /proxies/a/toxics`},
		{do: `POST /proxies/a/toxics {`},
		{do: `POST /proxies/a/toxics []`},
		{do: `POST /proxies/a/toxics null`},
		{do: `POST /proxies/a/toxics {}`},
		{do: `POST /proxies/a/toxics type=latency`, head: form},
		{do: `POST /proxies/a/toxics {"type":""}`},
		{do: `POST /proxies/a/toxics {"type":"nothing"}`},
		{do: `POST /proxies/a/toxics {"type":"Latency"}`},
		{do: `POST /proxies/a/toxics {"type":1}`},
		{do: `POST /proxies/a/toxics {"type":"latency","name":1}`},
		{do: `POST /proxies/a/toxics {"type":"latency","stream":1}`},
		{do: `POST /proxies/a/toxics {"type":"latency","stream":""}`},
		{do: `POST /proxies/a/toxics {"type":"latency","stream":"sideways"}`},
		{do: `POST /proxies/a/toxics {"type":"nothing","stream":"sideways"}`},
		{do: `POST /proxies/a/toxics {"name":"t","type":"nothing"}`},
		{do: `POST /proxies/a/toxics {"name":"t","type":"latency"}`},
		{do: `POST /proxies/a/toxics {"name":"t","type":"latency","attributes":{"latency":"x"}}`},
		{do: `POST /proxies/a/toxics {"type":"latency","toxicity":"0.5"}`},
		{do: `POST /proxies/a/toxics {"type":"latency","toxicity":1e99}`},
		{do: `POST /proxies/a/toxics {"type":"latency","attributes":[]}`},
		{do: `POST /proxies/a/toxics {"type":"latency","attributes":"x"}`},
		{do: `POST /proxies/a/toxics {"type":"latency","attributes":{"latency":"100"}}`},
		{do: `POST /proxies/a/toxics {"type":"latency","attributes":{"latency":1.5}}`},
		{do: `POST /proxies/a/toxics {"type":"latency","attributes":{"latency":100.0}}`},
		{do: `POST /proxies/a/toxics {"type":"latency","attributes":{"latency":1e3}}`},
		{do: `POST /proxies/a/toxics {"type":"latency","attributes":{"latency":true}}`},
		{do: `POST /proxies/a/toxics {"type":"latency","attributes":{"latency":{}}}`},
		{do: `POST /proxies/a/toxics {"type":"latency","attributes":{"latency":9223372036854775808}}`},
		{do: `POST /proxies/a/toxics {"type":"bandwidth","attributes":{"rate":"fast"}}`},
		{do: `POST /proxies/a/toxics {"type":"noop","attributes":{"latency":"x"}}`},
		{do: `GET /proxies/a/toxics`},
	})
}

func TestToxics_Update(t *testing.T) {
	compare(t, []step{proxyA,
		{do: `POST /proxies/a/toxics {"name":"t","type":"latency","stream":"Upstream","toxicity":0.5,"attributes":{"latency":5,"jitter":2}}`},
		{do: `POST /proxies/a/toxics/t {}`},
		{do: `PATCH /proxies/a/toxics/t {"attributes":{"latency":6}}`},
		{do: `POST /proxies/a/toxics/t {"attributes":{"jitter":3}}`, head: form},
		{do: `POST /proxies/a/toxics/t {"toxicity":0.75}`},
		{do: `PATCH /proxies/a/toxics/t {"toxicity":null,"attributes":null}`},
		{do: `PATCH /proxies/a/toxics/t {"name":"u","type":"bandwidth","stream":"downstream","attributes":{"rate":1,"latency":7}}`},
		{do: `GET /proxies/a/toxics`},
		{do: `PATCH /proxies/a/toxics/t {"Attributes":{"LATENCY":8},"TOXICITY":1}`},
		{do: `PATCH /proxies/a/toxics/t null`},
		{do: `PATCH /proxies/a/toxics/t {"attributes":{"latency":0,"jitter":0},"toxicity":0} and what follows`},
		{do: `POST /proxies/a/toxics/t`},
		{do: `PATCH /proxies/a/toxics/t`},
		{do: `PATCH /proxies/a/toxics/t {`},
		{do: `PATCH /proxies/a/toxics/t []`},
		{do: `PATCH /proxies/a/toxics/t {"attributes":[]}`},
		{do: `PATCH /proxies/a/toxics/t {"attributes":{"latency":"x"}}`},
		{do: `PATCH /proxies/a/toxics/t {"attributes":{"latency":1.5}}`},
		{do: `PATCH /proxies/a/toxics/t {"toxicity":"x"}`},
		{do: `GET /proxies/a/toxics/t`},
		{do: `DELETE /proxies/a/toxics/t whatever`},
		{do: `DELETE /proxies/a/toxics/t`},
	})
}

// TestToxics_Order: those of the upstream stream come first, each in the order
// in which they were added.
func TestToxics_Order(t *testing.T) {
	script := []step{proxyA}
	for i, stream := range []string{"downstream", "upstream", "downstream", "upstream", "downstream"} {
		script = append(script, step{do: fmt.Sprintf(`POST /proxies/a/toxics {"name":"t%d","type":"latency","stream":%q,"attributes":{"latency":%d}}`, 9-i, stream, i)})
	}
	compare(t, append(script,
		step{do: `GET /proxies/a/toxics`},
		step{do: `PATCH /proxies/a/toxics/t9 {"attributes":{"latency":50}}`},
		step{do: `DELETE /proxies/a/toxics/t7`},
		step{do: `GET /proxies/a`},
		step{do: `POST /proxies/a/toxics {"name":"t7","type":"latency","stream":"downstream"}`},
		step{do: `POST /proxies/a {"enabled":false}`},
		step{do: `POST /proxies/a/toxics {"name":"while-off","type":"latency","stream":"upstream"}`},
		step{do: `GET /proxies/a/toxics`},
		step{do: `POST /proxies/a {"enabled":true}`},
		step{do: `GET /proxies/a/toxics`}))
}
