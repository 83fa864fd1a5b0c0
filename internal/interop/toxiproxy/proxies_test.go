package toxiproxy

import "testing"

const (
	form    = "Content-Type: application/x-www-form-urlencoded"
	text    = "Content-Type: text/plain"
	browser = "User-Agent: Mozilla/5.0 (X11; Linux x86_64)"
)

func TestCreate(t *testing.T) {
	compare(t, []step{
		{do: `GET /proxies`},
		{do: `POST /proxies {"name":"a","listen":"127.0.0.1:0","upstream":"{upstream}","enabled":true}`, save: "a"},
		{do: `POST /proxies {"name":"a","listen":"127.0.0.1:0","upstream":"{upstream}"}`},
		{do: `POST /proxies {"name":"resolved","listen":"localhost:0","upstream":"{upstream}"}`},
		{do: `POST /proxies {"name":"anywhere","upstream":"{upstream}"}`},
		{do: `POST /proxies {"name":"off","listen":"localhost:0","upstream":"{upstream}","enabled":false}`},
		{do: `POST /proxies {"name":"off","upstream":"{upstream}"}`},
		{do: `POST /proxies {"name":"off2","upstream":"{upstream}","enabled":false}`},
		{do: `POST /proxies {"name":"null","listen":"127.0.0.1:0","upstream":"{upstream}","enabled":null}`},
		{do: `POST /proxies {"name":"null2","listen":null,"upstream":"{upstream}"}`},
		// an upstream is looked up when somebody connects
		{do: `POST /proxies {"name":"nowhere","listen":"127.0.0.1:0","upstream":"no-such-host.invalid:5432"}`},
		{do: `POST /proxies {"name":"here","listen":"127.0.0.1:0","upstream":":5432"}`},
		{do: `POST /proxies {"name":"ipv6","listen":"127.0.0.1:0","upstream":"[::1]:5432"}`},
		{do: `POST /proxies {"name":"compose","listen":"127.0.0.1:0","upstream":"my_db.internal:5432"}`},
		{do: `POST /proxies {"NAME":"case","Listen":"127.0.0.1:0","uPSTREAM":"{upstream}"}`},
		{do: `POST /proxies {"name":"more","listen":"127.0.0.1:0","upstream":"{upstream}","unknown":[1,{"x":2}]}`},
		{do: `POST /proxies {"name":"rest","listen":"127.0.0.1:0","upstream":"{upstream}"} and what follows {`},
		{do: `POST /proxies {"name":"form","listen":"127.0.0.1:0","upstream":"{upstream}"}`, head: form},
		{do: `POST /proxies {"name":"text","listen":"127.0.0.1:0","upstream":"{upstream}"}`, head: text},
		{do: `POST /proxies {"name":"two words","listen":"127.0.0.1:0","upstream":"{upstream}"}`},
		{do: `POST /proxies {"name":"a/b","listen":"127.0.0.1:0","upstream":"{upstream}"}`},
		{do: `POST /proxies {"name":"<b>&\u2028é","listen":"127.0.0.1:0","upstream":"{upstream}"}`},
		{do: `POST /proxies {"name":"100%","listen":"127.0.0.1:0","upstream":"{upstream}"}`},
		{do: `GET /proxies`},
		{do: `GET /proxies/two%20words`},
		{do: `GET /proxies/two+words`},
		{do: `GET /proxies/a/b`},
		{do: `GET /proxies/a%2Fb`},
		{do: `GET /proxies/100%25`},
		{do: `GET /proxies/%3Cb%3E&%E2%80%A8%C3%A9`},
		{do: `DELETE /proxies/two%20words`},
		{do: `DELETE /proxies/two%20words`},
	})
}

func TestCreate_Bad(t *testing.T) {
	compare(t, []step{
		{do: `POST /proxies`},
		{do: `POST /proxies {`},
		{do: `POST /proxies hello`},
		{do: `POST /proxies name=a&upstream=b`, head: form},
		{do: `POST /proxies []`},
		{do: `POST /proxies "name"`},
		{do: `POST /proxies 1`},
		{do: `POST /proxies null`},
		{do: `POST /proxies {}`},
		{do: `POST /proxies {"upstream":"{upstream}"}`},
		{do: `POST /proxies {"name":"","upstream":"{upstream}"}`},
		{do: `POST /proxies {"name":null,"upstream":"{upstream}"}`},
		{do: `POST /proxies {"name":"a"}`},
		{do: `POST /proxies {"name":"a","upstream":""}`},
		{do: `POST /proxies {"name":1,"upstream":"{upstream}"}`},
		{do: `POST /proxies {"name":"a","upstream":5432}`},
		{do: `POST /proxies {"name":"a","upstream":"{upstream}","listen":8080}`},
		{do: `POST /proxies {"name":"a","upstream":"{upstream}","enabled":"yes"}`},
		{do: `POST /proxies {"name":"a","upstream":"{upstream}","enabled":1}`},
		{do: `POST /proxies {"name":"a","upstream":"{upstream}",}`},
		{do: `POST /proxies {"name":"a","listen":"127.0.0.1:{taken}","upstream":"{upstream}"}`},
		{do: `POST /proxies {"name":"a","listen":"127.0.0.1","upstream":"{upstream}"}`},
		{do: `POST /proxies {"name":"a","listen":"127.0.0.1:99999","upstream":"{upstream}"}`},
		{do: `POST /proxies {"name":"a","listen":"127.0.0.1:no-port","upstream":"{upstream}"}`},
		{do: `POST /proxies {"name":"a","listen":"1:2:3","upstream":"{upstream}"}`},
		{do: `POST /proxies {"name":"a","listen":"192.0.2.1:0","upstream":"{upstream}"}`},
		// disabled, it isn't tried
		{do: `POST /proxies {"name":"a","listen":"127.0.0.1","upstream":"{upstream}","enabled":false}`},
		{do: `GET /proxies`},
	})
}

func TestUpdate(t *testing.T) {
	compare(t, []step{
		{do: `POST /proxies {"name":"a","listen":"127.0.0.1:0","upstream":"{upstream}"}`, save: "a"},
		{do: `POST /proxies/a/toxics {"type":"latency","attributes":{"latency":5}}`},
		{do: `POST /proxies/a {}`},
		{do: `PATCH /proxies/a {}`},
		{do: `PATCH /proxies/a null`},
		{do: `POST /proxies/a {"enabled":false}`},
		{do: `POST /proxies/a {"enabled":false}`},
		{do: `GET /proxies/a`},
		{do: `PATCH /proxies/a {"enabled":true}`},
		{do: `PATCH /proxies/a {"enabled":true}`},
		{do: `PATCH /proxies/a {"enabled":null,"listen":null,"upstream":null}`},
		{do: `POST /proxies/a {"name":"b"}`},
		{do: `GET /proxies/b`},
		{do: `POST /proxies/a {"listen":"127.0.0.1:{a}"}`},
		{do: `POST /proxies/a {"listen":"localhost:{a}"}`},
		{do: `POST /proxies/a {"toxics":[]}`},
		{do: `POST /proxies/a {"upstream":"localhost:1"}`},
		{do: `POST /proxies/a {"upstream":"no-such-host.invalid:1"}`},
		{do: `POST /proxies/a {"listen":"127.0.0.1:0"}`, save: "b"},
		{do: `POST /proxies/a {"listen":"127.0.0.1:{a}","upstream":"{upstream}","enabled":true}`, head: form},
		{do: `POST /proxies/a {"listen":"127.0.0.1:{b}","enabled":false}`},
		{do: `POST /proxies/a {"listen":"localhost:{a}"}`},
		{do: `GET /proxies/a`},
		{do: `POST /proxies/a {"enabled":true}`},
		{do: `GET /proxies`},
		{do: `DELETE /proxies/a`},
		{do: `GET /proxies`},
	})
}

func TestUpdate_Bad(t *testing.T) {
	compare(t, []step{
		{do: `POST /proxies {"name":"a","listen":"127.0.0.1:0","upstream":"{upstream}"}`, save: "a"},
		{do: `POST /proxies {"name":"b","listen":"127.0.0.1:0","upstream":"{upstream}"}`, save: "b"},
		{do: `POST /proxies/a/toxics {"type":"latency","attributes":{"latency":5}}`},
		{do: `POST /proxies/none {"enabled":false}`},
		{do: `PATCH /proxies/none`},
		{do: `DELETE /proxies/none`},
		{do: `POST /proxies/a`},
		{do: `PATCH /proxies/a`},
		{do: `POST /proxies/a {`},
		{do: `POST /proxies/a []`},
		{do: `POST /proxies/a enabled=false`, head: form},
		{do: `POST /proxies/a {"enabled":"false"}`},
		{do: `POST /proxies/a {"upstream":1}`},
		{do: `POST /proxies/a {"listen":1}`},
		{do: `POST /proxies/a {"listen":"127.0.0.1"}`},
		{do: `POST /proxies/a {"listen":"127.0.0.1:99999"}`},
		{do: `POST /proxies/a {"listen":"127.0.0.1","enabled":false}`},
		{do: `GET /proxies/a`},
		// it's left disabled, with the address that it couldn't have
		{do: `POST /proxies/a {"listen":"127.0.0.1:{taken}"}`},
		{do: `GET /proxies/a`},
		{do: `POST /proxies/a {"enabled":true}`},
		{do: `GET /proxies/a`},
		{do: `POST /proxies/a {"listen":"127.0.0.1:{b}"}`},
		{do: `POST /proxies/a {"listen":"127.0.0.1:{b}","enabled":true}`},
		{do: `POST /proxies/a {"listen":"127.0.0.1:{a}","enabled":true}`},
		{do: `GET /proxies`},
	})
}

func TestPopulate(t *testing.T) {
	compare(t, []step{
		{do: `POST /populate []`},
		{do: `POST /populate [{"name":"a","listen":"127.0.0.1:0","upstream":"{upstream}"},{"name":"b","listen":"localhost:0","upstream":"{upstream}","enabled":false}]`, save: "a"},
		{do: `POST /proxies/a/toxics {"type":"latency","attributes":{"latency":5}}`},
		// the same: left alone, whatever it says of being enabled
		{do: `POST /populate [{"name":"a","listen":"127.0.0.1:{a}","upstream":"{upstream}"}]`},
		{do: `POST /populate [{"name":"a","listen":"localhost:{a}","upstream":"{upstream}","enabled":false}]`},
		{do: `GET /proxies`},
		// another: replaced, without its toxics
		{do: `POST /populate [{"name":"a","listen":"127.0.0.1:{a}","upstream":"localhost:1"}]`},
		{do: `POST /proxies/a/toxics {"type":"noop"}`},
		{do: `POST /populate [{"name":"a","listen":"127.0.0.1:0","upstream":"localhost:1"}]`, save: "moved"},
		{do: `POST /populate [{"name":"a","listen":"127.0.0.1:{a}","upstream":"localhost:1","enabled":false}]`},
		{do: `POST /populate [{"name":"a","listen":"127.0.0.1:{a}","upstream":"localhost:1","enabled":null}]`},
		{do: `POST /populate [{"name":"c","upstream":"{upstream}","listen":"127.0.0.1:0"},{"name":"c","upstream":"{upstream}","listen":"127.0.0.1:0"}]`},
		{do: `GET /proxies`},
		{do: `POST /populate [{"name":"d","upstream":"{upstream}","listen":"127.0.0.1:0"}] and what follows`, head: form},
		{do: `POST /populate null`},
	})
}

func TestPopulate_Bad(t *testing.T) {
	compare(t, []step{
		{do: `POST /populate`},
		{do: `POST /populate {}`},
		{do: `POST /populate {"name":"a","upstream":"{upstream}"}`},
		{do: `POST /populate "a"`},
		{do: `POST /populate [`},
		{do: `POST /populate [1]`},
		{do: `POST /populate [null]`},
		{do: `POST /populate [{}]`},
		{do: `POST /populate [{"name":"a","upstream":"{upstream}"},{"upstream":"{upstream}"}]`},
		{do: `POST /populate [{"name":"a","upstream":"{upstream}"},{"name":"b","upstream":""}]`},
		{do: `POST /populate [{"name":"a","upstream":"{upstream}","enabled":"no"}]`},
		{do: `POST /populate [{"name":1,"upstream":"{upstream}"}]`},
		{do: `GET /proxies`},
		// those before the one that fails stay
		{do: `POST /populate [{"name":"a","listen":"127.0.0.1:0","upstream":"{upstream}"},{"name":"b","listen":"127.0.0.1:{taken}","upstream":"{upstream}"},{"name":"c","listen":"127.0.0.1:0","upstream":"{upstream}"}]`, save: "a"},
		{do: `GET /proxies`},
		{do: `POST /populate [{"name":"b","listen":"127.0.0.1","upstream":"{upstream}"}]`},
		{do: `POST /populate [{"name":"a","listen":"127.0.0.1","upstream":"{upstream}"}]`},
		{do: `GET /proxies`},
		// one that is to be replaced is stopped first
		{do: `POST /populate [{"name":"a","listen":"127.0.0.1:{taken}","upstream":"{upstream}"}]`},
		{do: `GET /proxies`},
		{do: `POST /populate [{"name":"a","listen":"127.0.0.1:{a}","upstream":"{upstream}"}]`},
	})
}

func TestReset(t *testing.T) {
	compare(t, []step{
		{do: `POST /reset`},
		{do: `POST /proxies {"name":"a","listen":"127.0.0.1:0","upstream":"{upstream}"}`},
		{do: `POST /proxies {"name":"b","listen":"127.0.0.1:0","upstream":"{upstream}","enabled":false}`},
		{do: `POST /proxies/a/toxics {"type":"latency","attributes":{"latency":5}}`},
		{do: `POST /proxies/b/toxics {"type":"timeout","stream":"upstream"}`},
		{do: `POST /proxies/a {"enabled":false}`},
		{do: `POST /reset`},
		{do: `GET /proxies`},
		{do: `POST /reset whatever`, head: form},
		{do: `DELETE /proxies/b`},
		{do: `POST /proxies/a {"enabled":false}`},
		{do: `POST /proxies/a {"listen":"127.0.0.1:{taken}"}`},
		{do: `POST /reset`},
		{do: `GET /proxies`},
	})
}

func TestMethods(t *testing.T) {
	script := []step{
		{do: `GET /version`}, {do: `POST /proxies {"name":"a","listen":"127.0.0.1:0","upstream":"{upstream}"}`},
		{do: `POST /proxies/a/toxics {"name":"t","type":"noop"}`},
		{do: `GET /nothing`}, {do: `GET /metrics`}, {do: `GET /proxies/a/nothing`}, {do: `GET /proxies/a/toxics/t/nothing`},
		{do: `GET /proxies/`}, {do: `GET /proxies/a/`}, {do: `GET /proxies/a/toxics/`}, {do: `GET /version/`}, {do: `POST /reset/`},
		{do: `GET //proxies`}, {do: `GET /proxies//a`}, {do: `POST //reset`}, {do: `GET /proxies/../version`}, {do: `GET /./version`},
		{do: `GET /proxies?x=y`}, {do: `GET /version?`}, {do: `GET /VERSION`},
		// of version 1
		{do: `GET /reset`}, {do: `GET /proxies/a/upstream/toxics`}, {do: `POST /proxies/a/downstream/toxics/latency {"enabled":true}`},
	}
	for _, path := range []string{"/version", "/proxies", "/populate", "/reset", "/proxies/a", "/proxies/a/toxics", "/proxies/a/toxics/t", "/nothing"} {
		for _, method := range []string{"HEAD", "OPTIONS", "PUT", "TRACE", "BREW"} {
			script = append(script, step{do: method + " " + path})
		}
		script = append(script, step{do: "GET " + path, head: browser}, step{do: "POST " + path, head: browser}, step{do: "HEAD " + path, head: browser})
	}
	for _, path := range []string{"/version", "/populate", "/proxies/a/toxics"} {
		script = append(script, step{do: "PATCH " + path}, step{do: "DELETE " + path})
	}
	compare(t, append(script,
		step{do: `GET /version`, head: "User-Agent: mozilla/5.0"},
		step{do: `GET /version`, head: "User-Agent: curl/8 (like Mozilla/5.0)"},
		step{do: `GET /version`, head: "Origin: http://example.org"},
		step{do: `GET /version`, head: "Accept: text/html"},
		step{do: `GET /proxies`}))
}
