package postgres

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// client is one row of the matrix.
type client struct {
	name string // as in the documentation
	does string // what it is made to do
	// version of the client, without the server's.
	version func(t *testing.T) string
	// run does the scenario on the empty database db at addr.
	run func(t *testing.T, addr, db string) outcome
	// writes are what the scenario writes, by operation.
	writes map[string]int
}

// outcome is what somebody who ran a program sees.
type outcome struct {
	Out, Err string
	Code     int
}

// compare runs c directly and through a link, and puts the row into the report.
func (s *server) compare(t *testing.T, c client) {
	t.Helper()
	version := c.version(t)
	const db = "matrix"
	s.freshDatabase(t, db)
	direct := c.run(t, s.Addr(), db)
	if direct.Code != 0 || direct.Out == "" {
		t.Fatalf("directly: exit code %d\n%s\n%s", direct.Code, tail(direct.Out), tail(direct.Err))
	}
	s.freshDatabase(t, db)
	l := startLink(t, s.Addr())
	through := c.run(t, l.Addr(), db)
	same(t, direct, through)
	got := l.finish()
	if !maps.Equal(got, c.writes) {
		t.Errorf("writes %v, want %v", got, c.writes)
	}
	report(t, row{Client: c.name, Version: version, Server: s.Version(), Does: c.does, Writes: got, Exchanges: l.all})
}

func same(t *testing.T, direct, through outcome) {
	t.Helper()
	if direct.Code != through.Code {
		t.Errorf("exit code %d, directly %d\n%s", through.Code, direct.Code, tail(through.Err))
	}
	if direct.Out != through.Out {
		t.Errorf("output: %s", difference(through.Out, direct.Out))
	}
	if direct.Err != through.Err {
		t.Errorf("errors: %s", difference(through.Err, direct.Err))
	}
}

// difference is the first line in which two outputs differ.
func difference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d is   %.300q\ndirectly it is %.300q", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, directly %d; the last is %.300q", len(g), len(w), tail(got))
}

func tail(s string) string { return s[max(0, len(s)-2000):] }
