package config

import (
	"strings"
	"testing"

	"github.com/wirewait/wirewait/trace"
)

const setFile = `
network: [{between: [app, s], rtt: 1ms}]
clusters:
  rs0: {protocol: mongodb, members: {
    a: {site: s, upstream: "a:1"}, b: {site: s, votes: 0, priority: 0, tags: {dc: east}}, c: {site: s, id: 7, arbiter: true}}}
links: [{from: app, to: rs0.a, listen: "127.0.0.1:1"}]
`

func TestSets_MembersAndIDs(t *testing.T) {
	f, err := Parse("f", []byte(setFile), variables)
	if err != nil {
		t.Fatal(err)
	}
	set := f.Sets["rs0.b"]
	if set == nil || set != f.Sets["rs0.a"] || len(f.Sets) != 3 || len(set.Members) != 3 {
		t.Fatalf("%+v", f.Sets)
	}
	for i, want := range []trace.SetMember{{Name: "rs0.a", Votes: 1}, {Name: "rs0.b", ID: 1}, {Name: "rs0.c", ID: 7, Votes: 1, Arbiter: true}} {
		if m := set.Members[i]; m.Name != want.Name || m.ID != want.ID || m.Votes != want.Votes || m.Arbiter != want.Arbiter {
			t.Errorf("%+v, want %+v", m, want)
		}
	}
	if set.Members[1].Tags["dc"] != "east" {
		t.Errorf("%+v", set.Members[1])
	}
}

// One id said, and the same by place.
func TestSets_IDsThatCollide(t *testing.T) {
	_, err := Parse("f", []byte(strings.Replace(setFile, "id: 7", "id: 1", 1)), variables)
	if err == nil || !strings.Contains(err.Error(), "rs0.b and rs0.c both have the id 1") {
		t.Errorf("%v", err)
	}
}
