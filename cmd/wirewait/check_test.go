package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheck_WarnsOfLags(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wirewait.yaml")
	text := `clusters:
  rs0: {protocol: mongodb, members: {a: {site: x, upstream: "a:1"}, b: {site: x, upstream: "b:1"}, c: {site: x, upstream: "c:1"}}}
links:
  - {from: members, to: rs0.a, listen: "127.0.0.1:27201"}
rules:
  - {name: slow, effect: lag, when: {from: rs0.b}, with: {delay: 5s}}
  - {name: slower, effect: lag, when: {from: rs0.c}, with: {delay: 8s}}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := transcript(t, "wirewait check "+path)
	if !strings.Contains(got, "warning: rule slower: MongoDB: 8s is more than 5s") || strings.Count(got, "warning:") != 1 ||
		!strings.Contains(got, "no problems") || strings.Contains(got, "exit") {
		t.Error(got)
	}
}
