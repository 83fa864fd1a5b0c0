package main

import (
	"testing"
	"time"
)

func TestTheory(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		tickets, clients int
		want             time.Duration
	}{{32, 8, 20 * ms}, {32, 32, 20 * ms}, {32, 128, 80 * ms}, {32, 500, 312500 * time.Microsecond}, {0, 8, 0}} {
		s := &ticketStudy{tickets: c.tickets, hold: 20 * ms}
		if got := s.theory(c.clients); got != c.want {
			t.Errorf("%d clients on %d tickets: %v, want %v", c.clients, c.tickets, got, c.want)
		}
	}
}
