package toxiproxy

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"

	client "github.com/Shopify/toxiproxy/v2/client"
)

// TestGoClient makes every call of the Go client, well and badly.
func TestGoClient(t *testing.T) {
	var said [2]string
	var passed [2][]exchange
	for i, k := range kinds {
		r := record(t, start(t, k.real))
		said[i] = strings.Join(goCalls(t, r.addr), "\n")
		passed[i] = r.exchanges()
	}
	sameExchanges(t, passed[0], passed[1], 50)
	if said[0] != said[1] {
		t.Errorf("the client's results with toxiproxy:\n%s\nwith wirewait:\n%s", said[0], said[1])
	}
}

// goCalls is what each call returned, in short.
func goCalls(t *testing.T, addr string) (said []string) {
	t.Helper()
	var n names
	say := func(call string, result any, err error) {
		b, bad := json.Marshal(result)
		if bad != nil {
			t.Fatal(bad)
		}
		said = append(said, n.of(fmt.Sprintf("%s: %s, %v", call, b, err)))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	upstream := l.Addr().String()

	c := client.NewClient(addr)
	version, err := c.Version()
	say("Version", string(version), err)
	all, err := c.Proxies()
	say("Proxies", all, err)
	p, err := c.CreateProxy("orders", "localhost:0", upstream)
	say("CreateProxy", p, err)
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.CreateProxy("orders", "localhost:0", upstream)
	say("CreateProxy again", again, err)
	taken, err := c.CreateProxy("taken", upstream, upstream)
	say("CreateProxy on a taken port", taken, err)
	none, err := c.CreateProxy("", "", upstream)
	say("CreateProxy without a name", none, err)
	none, err = c.CreateProxy("x", "", "")
	say("CreateProxy without an upstream", none, err)
	none, err = c.Proxy("nobody")
	say("Proxy nobody", none, err)

	saved := c.NewProxy()
	saved.Name, saved.Listen, saved.Upstream, saved.Enabled = "saved", "127.0.0.1:0", upstream, false
	say("Save", saved, saved.Save())
	say("Enable", saved, saved.Enable())
	say("Disable", saved, saved.Disable())
	saved.Upstream = "localhost:1"
	say("Save with another upstream", saved, saved.Save())
	saved.Listen, saved.Enabled = upstream, true
	say("Save on a taken port", saved, saved.Save())
	say("Delete", nil, saved.Delete())
	say("Delete again", nil, saved.Delete())

	goToxics(c, p, say)

	all, err = c.Proxies()
	say("Proxies", all, err)
	p2, err := c.Proxy("orders")
	say("Proxy", p2, err)
	say("ResetState", nil, c.ResetState())
	left, err := p.Toxics()
	say("Toxics after a reset", left, err)

	many, err := c.Populate([]client.Proxy{
		{Name: "orders", Listen: p.Listen, Upstream: upstream, Enabled: true},
		{Name: "stock", Listen: "127.0.0.1:0", Upstream: upstream, Enabled: true},
		{Name: "off", Listen: "127.0.0.1:0", Upstream: upstream},
	})
	say("Populate", many, err)
	many, err = c.Populate([]client.Proxy{{Name: "late", Listen: upstream, Upstream: upstream, Enabled: true}})
	say("Populate on a taken port", many, err)
	many, err = c.Populate([]client.Proxy{{Upstream: upstream}})
	say("Populate without a name", many, err)
	many, err = c.Populate(nil)
	say("Populate with nothing", many, err)
	say("Delete", nil, p.Delete())
	all, err = c.Proxies()
	say("Proxies", all, err)
	return said
}

func goToxics(c *client.Client, p *client.Proxy, say func(string, any, error)) {
	for _, x := range []struct {
		name, typ, stream string
		toxicity          float32
		attributes        client.Attributes
	}{
		{"", "latency", "", 1, client.Attributes{"latency": 100, "jitter": 10}},
		{"", "latency", "upstream", -1, client.Attributes{"latency": 100}},
		{"slow", "bandwidth", "downstream", 0.5, client.Attributes{"rate": 1000}},
		{"late", "slow_close", "upstream", 1, client.Attributes{"delay": 10}},
		{"gone", "timeout", "upstream", 0, client.Attributes{"timeout": 1000}},
		{"reset", "reset_peer", "downstream", 0, client.Attributes{"timeout": 1000}},
		{"pieces", "slicer", "downstream", 1, client.Attributes{"average_size": 64, "size_variation": 32, "delay": 10}},
		{"short", "limit_data", "downstream", 0, client.Attributes{"bytes": 1 << 20}},
		{"nothing", "noop", "downstream", 1, nil},
		{"slow", "latency", "downstream", 1, nil},
		{"what", "no_such_type", "downstream", 1, nil},
		{"where", "latency", "sideways", 1, nil},
		{"bad", "latency", "downstream", 1, client.Attributes{"latency": "soon"}},
		{"half", "latency", "downstream", 1, client.Attributes{"latency": 0.5}},
	} {
		toxic, err := p.AddToxic(x.name, x.typ, x.stream, x.toxicity, x.attributes)
		say("AddToxic "+x.name+" "+x.typ, toxic, err)
	}
	toxics, err := p.Toxics()
	say("Toxics", toxics, err)
	toxic, err := p.UpdateToxic("slow", 0.25, client.Attributes{"rate": 2000})
	say("UpdateToxic", toxic, err)
	toxic, err = p.UpdateToxic("slow", -1, client.Attributes{"rate": 3000, "unknown": 1})
	say("UpdateToxic, its toxicity as it was", toxic, err)
	toxic, err = p.UpdateToxic("nobody", 1, nil)
	say("UpdateToxic nobody", toxic, err)
	toxic, err = p.UpdateToxic("slow", 1, client.Attributes{"rate": "fast"})
	say("UpdateToxic badly", toxic, err)
	say("RemoveToxic", nil, p.RemoveToxic("slow"))
	say("RemoveToxic again", nil, p.RemoveToxic("slow"))

	o := &client.ToxicOptions{ProxyName: p.Name, ToxicName: "option", ToxicType: "latency", Stream: "upstream", Toxicity: 1, Attributes: client.Attributes{"latency": 1}}
	toxic, err = c.AddToxic(o)
	say("Client.AddToxic", toxic, err)
	o.Attributes = client.Attributes{"latency": 2}
	toxic, err = c.UpdateToxic(o)
	say("Client.UpdateToxic", toxic, err)
	say("Client.RemoveToxic", nil, c.RemoveToxic(o))
	say("Client.RemoveToxic again", nil, c.RemoveToxic(o))
	o.ProxyName = "nobody"
	toxic, err = c.AddToxic(o)
	say("Client.AddToxic to nobody", toxic, err)
}
