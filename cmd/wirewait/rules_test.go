package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// TestRules_FromTheShell is a person who loses an acknowledgement, looks at what
// that did, changes the rule and takes it away.
func TestRules_FromTheShell(t *testing.T) {
	peer := startMongo(t)
	w := start(t, nil, "--listen", "127.0.0.1:0", "--upstream", peer.Addr())
	address := w.adminAddr()
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, []byte(`
- name: no-inserts
  when: {command: insert, collection: orders}
  effect: refuse
  with: {code: 91}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	rules := func(args ...string) (int, string, string) {
		return command(t, append([]string{"rules"}, args...)...)
	}
	at := []string{"--admin", address}
	if code, out, _ := rules(at...); code != 0 || out != "no rules\n" {
		t.Errorf("exit %d, %q", code, out)
	}
	if code, out, errs := rules(append([]string{"set"}, append(at, path)...)...); code != 0 || !strings.Contains(out, "no-inserts") {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	withMongo(t, peer.URI(w.addr())+"&retryWrites=false", func(c *mongo.Client) {
		orders := c.Database("shop").Collection("orders")
		if _, err := orders.InsertOne(t.Context(), bson.D{}); err == nil {
			t.Error("the insert was not refused")
		}
		_, out, _ := rules(at...)
		if !regexp.MustCompile(`(?m)^no-inserts +refuse +\{.*insert.*\} +\{code: 91\} +- +1 +1 +- +\d+$`).MatchString(out) {
			t.Errorf("the hit is not shown:\n%s", out)
		}
		if code, _, errs := rules("change", "--admin", address, "no-inserts", `{"when": {"collection": ["carts"]}}`); code != 0 {
			t.Errorf("exit %d, %s", code, errs)
		}
		if _, err := orders.InsertOne(t.Context(), bson.D{}); err != nil {
			t.Errorf("the rule is for carts now: %v", err)
		}
	})
	// What is printed can be set.
	_, plain, _ := rules("--plain", "--admin", address)
	if err := os.WriteFile(path, []byte(plain), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := rules("set", "--admin", address, path); code != 0 {
		t.Errorf("exit %d, %s", code, errs)
	}
	if code, _, errs := rules("add", "--admin", address, path); code != 1 || !strings.Contains(errs, "there is a rule no-inserts already") {
		t.Errorf("exit %d, %s", code, errs)
	}
	if code, out, errs := rules("remove", "--admin", address, "no-inserts"); code != 0 || out != "no rules\n" {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	if code, _, errs := rules("remove", "--admin", address, "no-inserts"); code != 1 || !strings.Contains(errs, "there is no rule") {
		t.Errorf("exit %d, %s", code, errs)
	}
	for _, args := range [][]string{{"set"}, {"remove"}, {"change", "x"}} {
		if code, _, errs := rules(args...); code != 2 || !strings.Contains(errs, "say which") {
			t.Errorf("%q: exit %d, %s", args, code, errs)
		}
	}
}
