package toxiproxy

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	client "github.com/Shopify/toxiproxy/v2/client"

	"github.com/wirewait/wirewait/internal/interop/rig"
)

// TestOwnTypes: the Go client and the command line list, change and remove types
// of toxics that they have never heard of.
func TestOwnTypes(t *testing.T) {
	s := start(t, false)
	s.proxy(t, "p", sink(t))
	p, err := client.NewClient(s.addr).Proxy("p")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.AddToxic("lost", "lose_reply", "downstream", 1, client.Attributes{"match": map[string]any{"statement": "COMMIT"}, "ttl": "1h"}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpdateToxic("lost", 0.5, client.Attributes{"first": 3}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		args []string
		want string
	}{
		{[]string{"toxic", "add", "-t", "refuse", "-a", "match=command=insert;collection=carts", "-a", "code=189", "p"}, "Added downstream refuse toxic 'refuse_downstream' on proxy 'p'\n"},
		{[]string{"toxic", "update", "-n", "refuse_downstream", "-a", "code=91", "p"}, "Updated toxic 'refuse_downstream' on proxy 'p'\n"},
		{[]string{"inspect", "p"}, "lost\ttype=lose_reply\tstream=downstream\ttoxicity=0.50\tattributes=[\tfirst=3\tmatch=map[statement:COMMIT]\tttl=1h\t]\n" +
			"refuse_downstream\ttype=refuse\tstream=downstream\ttoxicity=1.00\tattributes=[\tcode=91\tmatch=command=insert;collection=carts\t]\n"},
		{[]string{"toxic", "remove", "-n", "lost", "p"}, "Removed toxic 'lost' on proxy 'p'\n"},
	} {
		if out, errs, code := cli(t, s.addr, step.args...); out != step.want || code != 0 {
			t.Errorf("toxiproxy-cli %s says %q %q (%d), want %q", strings.Join(step.args, " "), out, errs, code, step.want)
		}
	}
	if toxics, err := p.Toxics(); err != nil || len(toxics) != 1 || toxics[0].Name != "refuse_downstream" {
		t.Errorf("left are %+v, %v", toxics, err)
	}
}

// TestRun_LinksAreProxies: the links of a file are proxies to the client, and its
// proxies are links. A reset takes the toxics, and nothing of the file.
func TestRun_LinksAreProxies(t *testing.T) {
	s := &server{addr: rig.FreeAddr(t)}
	listen := rig.FreeAddr(t)
	file := filepath.Join(t.TempDir(), "wirewait.yaml")
	text := fmt.Sprintf("admin: %q\nlinks:\n  - {name: orders, listen: %q, upstream: %q, rtt: 2ms}\n"+
		"rules:\n  - {name: slow, when: {link: orders}, effect: latency, with: {delay: 1ms}}\n", s.addr, listen, echo(t))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run(t, exec.Command(program(t, "wirewait"), "run", file))
	c := client.NewClient(s.addr)
	orders, err := c.Proxy("orders")
	if err != nil || orders.Listen != listen || !orders.Enabled {
		t.Fatalf("the link is %+v, %v", orders, err)
	}
	made, err := c.CreateProxy("made", "127.0.0.1:0", echo(t))
	if err != nil {
		t.Fatal(err)
	}
	if links := s.do(t, "GET", "/v1/links", ""); !strings.Contains(links, `"made"`) || !strings.Contains(links, made.Listen) {
		t.Errorf("no link is made: %s", links)
	}
	conn := dial(t, listen)
	for _, p := range []*client.Proxy{orders, made} {
		if _, err := p.AddToxic("", "latency", "downstream", 1, client.Attributes{"latency": 100}); err != nil {
			t.Fatal(err)
		}
	}
	if err := takes(100*time.Millisecond, func() error { return echoes(conn, "slow") }); err != nil {
		t.Error(err)
	}
	if err := made.Disable(); err != nil {
		t.Fatal(err)
	}
	if err := c.ResetState(); err != nil {
		t.Fatal(err)
	}
	all, err := c.Proxies()
	if err != nil || len(all) != 2 || len(all["orders"].ActiveToxics)+len(all["made"].ActiveToxics) != 0 || !all["made"].Enabled {
		t.Errorf("after a reset there are %+v, %v", all, err)
	}
	if rules := s.do(t, "GET", "/v1/rules", ""); !strings.Contains(rules, `"slow"`) {
		t.Errorf("the file's rule is gone: %s", rules)
	}
	if err := echoes(conn, "still open"); err != nil {
		t.Error(err)
	}
	if code, _, err := s.try(http.MethodGet, "/metrics", ""); err != nil || code != http.StatusOK {
		t.Errorf("wirewait's own metrics: %d, %v", code, err)
	}
}
