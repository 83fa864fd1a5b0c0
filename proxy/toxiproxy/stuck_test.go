package toxiproxy

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/wirewait/wirewait/proxy"
)

// Every call is answered while peers don't read, a server's socket takes
// connections and says nothing, and bytes wait for ever.
func TestAPI_NeverFreezes(t *testing.T) {
	drivers(t, func(t *testing.T, driver string) {
		r := newRig(t, proxy.Config{Driver: driver, LineLimit: 1})
		silent, err := net.Listen("tcp", "127.0.0.1:0") // whose backlog takes connections
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		full := r.addTo("full", silent.Addr().String())
		var writers sync.WaitGroup
		defer writers.Wait()
		for range 4 {
			c := r.dial(full)
			defer c.Close()
			writers.Go(func() { _, _ = c.Write(make([]byte, 64<<20)) }) // until it's closed
		}
		// A server that doesn't answer at all: its dial hangs. (A documentation
		// address: RFC 5737. Where it's refused at once, the client is reset, maybe
		// while it connects, and the test is only easier.)
		hanging := r.addTo("hanging", "192.0.2.1:9")
		if c, err := net.Dial("tcp", hanging); err == nil {
			defer c.Close()
			_, _ = io.WriteString(c, "x")
		}
		soon(t, "a line is full", func() bool {
			for _, n := range r.proxy.Counters().Links {
				if n.Link == "full" {
					return n.Ways[0].Paused == 4
				}
			}
			return false
		})
		for _, p := range []string{"full", "hanging"} {
			for _, toxic := range []string{
				`{"name":"x","type":"latency","stream":"upstream","attributes":{"latency":3600000}}`,
				`{"name":"x","type":"bandwidth","stream":"upstream","attributes":{"rate":1}}`,
				`{"name":"x","type":"slicer","stream":"upstream","attributes":{"average_size":1,"delay":1000000}}`,
				`{"name":"x","type":"hold","stream":"upstream"}`,
				`{"name":"x","type":"slow_close","stream":"upstream","attributes":{"delay":3600000}}`,
				`{"name":"x","type":"limit_data","stream":"downstream","attributes":{"bytes":1}}`,
			} {
				r.toxic(p, toxic)
				r.does(fmt.Sprintf("PATCH /proxies/%s/toxics/x {\"toxicity\":0.5}", p), 200, "")
				r.does("DELETE /proxies/"+p+"/toxics/x", 204, "")
			}
			r.does("GET /proxies", 200, "")
			r.does("POST /reset", 204, "")
			r.does("PATCH /proxies/"+p+` {"enabled":false}`, 200, "")
			r.does("PATCH /proxies/"+p+` {"enabled":true}`, 200, "")
			r.does("DELETE /proxies/"+p, 204, "")
		}
		soon(t, "all connections are gone", func() bool { return len(r.proxy.Connections()) == 0 })
	})
}

// Many at once change the same proxies, and each call is answered.
func TestAPI_ManyAtOnce(t *testing.T) {
	r := newRig(t, proxy.Config{})
	at := r.add("shared")
	r.dial(at).echoes("x")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			name := fmt.Sprintf("p%d", i)
			for range 10 {
				r.does(`POST /proxies {"name":"`+name+`","listen":"127.0.0.1:0","upstream":"`+r.up+`"}`, 201, "")
				r.toxic("shared", `{"name":"`+name+`","type":"latency","attributes":{"latency":1}}`)
				r.toxic(name, `{"type":"bandwidth","attributes":{"rate":1000}}`)
				r.does("GET /proxies", 200, "")
				r.does("PATCH /proxies/"+name+` {"enabled":false}`, 200, "")
				r.does("DELETE /proxies/shared/toxics/"+name, 204, "")
				r.does("DELETE /proxies/"+name, 204, "")
			}
		})
	}
	all.Wait()
	r.does("GET /proxies/shared/toxics", 200, "[]")
	r.dial(at).echoes("x")
	if n := len(r.proxy.Links()); n != 1 {
		t.Errorf("%d links are left", n)
	}
}
