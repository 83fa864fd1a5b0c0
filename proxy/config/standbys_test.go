package config

import (
	"testing"
)

func TestParse_Standbys(t *testing.T) {
	const text = `
network: [{between: [sgp, fra], rtt: 160ms}]
clusters:
  pg:
    protocol: postgres
    synchronous_standby_names: ANY 1 (S1, "two")
    members:
      p: {site: sgp, upstream: "p:1"}
      s1: {site: fra}
      s2: {site: fra, application_name: two}
  other: {protocol: postgres, members: {p: {site: sgp, upstream: "q:1"}}}
links: [{from: pg.s1, to: pg.p, listen: "127.0.0.1:1"}]
`
	got := good(t, text).Standbys
	if len(got) != 3 {
		t.Fatalf("%v, want one for each member of pg", got)
	}
	for _, member := range []string{"pg.p", "pg.s1", "pg.s2"} {
		if n := got[member]; n == nil || !n.Any || n.Count != 1 || len(n.Names) != 2 || n.Names[1] != "two" {
			t.Errorf("%s: %+v", member, n)
		}
	}
}
