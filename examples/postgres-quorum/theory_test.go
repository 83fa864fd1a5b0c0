package main

import (
	"testing"
	"time"

	"github.com/wirewait/wirewait/trace"
)

func TestQuorum(t *testing.T) {
	there := []standby{{"s1", 40}, {"s2", 100}, {"s3", 100}}
	for _, c := range []struct {
		names string
		there []standby
		want  time.Duration
		by    string
	}{
		{"FIRST 1 (s1, s2)", there, 40, "s1"},
		{"FIRST 1 (s2, s1)", there, 100, "s2"},
		{"s2", there, 100, "s2"},
		{"FIRST 1 (s2, s1)", there[:1], 40, "s1"}, // s2 is gone
		{"ANY 1 (s1, s2)", there, 40, "s1"},
		{"ANY 2 (s1, s2)", there, 100, "s2"},
		{"ANY 2 (s1, s2, s3)", there, 100, ""}, // s2 or s3
		{"ANY 2 (s1, s2)", there[:1], 0, ""},   // for ever
		{"", there, 0, ""},
	} {
		names, err := trace.ParseStandbyNames(c.names)
		if err != nil {
			t.Fatal(err)
		}
		if got, by := quorum(names, c.there); got != c.want || by != c.by {
			t.Errorf("%s: %v by %q, want %v by %q", c.names, got, by, c.want, c.by)
		}
	}
}
