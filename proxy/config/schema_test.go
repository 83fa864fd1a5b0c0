package config

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wirewait/wirewait/inject"
)

// schema is as much of JSON Schema as these tests look at.
type schema struct {
	AdditionalProperties any               `json:"additionalProperties"`
	Properties           map[string]schema `json:"properties"`
	Enum                 []string          `json:"enum"`
	Defs                 map[string]schema `json:"$defs"`
	Required             []string          `json:"required"`
}

func document(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestSchema_HasTheParsersKeys: an editor offers and accepts what the parser
// reads, neither more nor less.
func TestSchema_HasTheParsersKeys(t *testing.T) {
	var root schema
	if err := json.Unmarshal(document(t, "wirewait.schema.json"), &root); err != nil {
		t.Fatal(err)
	}
	objects := maps.Clone(root.Defs)
	objects[""] = root
	for name, keys := range keySets() {
		o, ok := objects[name]
		if !ok || o.AdditionalProperties != false {
			t.Errorf("%s: it's missing, or takes any key", keys.what)
		}
		if got, want := slices.Sorted(maps.Keys(o.Properties)), slices.Sorted(slices.Values(keys.known)); !slices.Equal(got, want) {
			t.Errorf("%s: the schema has %v, and the parser reads %v", keys.what, got, want)
		}
		for _, k := range o.Required {
			if !slices.Contains(keys.known, k) {
				t.Errorf("%s: required %s isn't a key", keys.what, k)
			}
		}
	}
	for where, words := range map[[2]string][]string{
		{"link", "protocol"}: protocolWords, {"cluster", "protocol"}: clusterWords,
		{"pair", "distribution"}: distributionWords, {"when", "direction"}: directionWords, {"rule", "effect"}: inject.EffectNames(), {"tls", "client"}: clientTLSWords, {"tls", "server"}: serverTLSWords,
	} {
		if got := objects[where[0]].Properties[where[1]].Enum; !slices.Equal(got, words) {
			t.Errorf("%v: the schema has %v, and the parser knows %v", where, got, words)
		}
	}
}

// keySets are by the name that the schema gives them; the file itself has none.
func keySets() map[string]keySet {
	return map[string]keySet{
		"": fileKeys, "pair": pairKeys, "loss": lossKeys, "cluster": clusterKeys, "member": memberKeys, "link": linkKeys,
		"delay": delayKeys, "mesh": meshKeys, "tls": tlsKeys, "proxyHeaders": proxyProtocolKeys,
		"rule": ruleKeys, "when": whenKeys, "concern": concernKeys, "with": withKeys, "limit": limitKeys,
	}
}

// TestDocs_NameEveryKey: those that are read, and those that are not yet.
func TestDocs_NameEveryKey(t *testing.T) {
	doc := string(document(t, "configuration.md")) + string(document(t, "rules.md"))
	for _, keys := range keySets() {
		for _, k := range slices.Concat(keys.known, slices.Collect(maps.Keys(keys.later))) {
			if !strings.Contains(doc, "`"+k+"`") {
				t.Errorf("neither docs/configuration.md nor docs/rules.md names %s of %s", k, keys.what)
			}
		}
	}
}

// TestDocs_FilesAreGood: what the page shows as a whole file is one.
func TestDocs_FilesAreGood(t *testing.T) {
	files := 0
	for i, block := range strings.Split(string(document(t, "configuration.md"))+string(document(t, "rules.md")), "```") {
		text, ok := strings.CutPrefix(block, "yaml\n")
		if i%2 == 0 || !ok {
			continue
		}
		files++
		if _, err := Parse("configuration.md", []byte(text), variables); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
	if files < 3 {
		t.Errorf("only %d files were found", files)
	}
}
