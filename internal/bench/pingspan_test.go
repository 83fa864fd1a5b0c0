package main

import (
	"testing"

	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/wire"
)

// If a ping were not a whole write to wirewait, "every write" would measure
// nothing.
func TestPing_IsOneWrite(t *testing.T) {
	for _, c := range []struct {
		protocol       wire.Protocol
		operation      string
		hello, welcome []byte
		request, reply []byte
	}{
		{wire.Postgres, "INSERT", pgStartup(), pgWelcome, pgInsert(), pgInsertReply()},
		{wire.MongoDB, "insert", nil, nil, mongoInsert(), mongoInsertReply()},
	} {
		t.Run(string(c.protocol), func(t *testing.T) {
			session, err := proxy.NewSession(c.protocol, wire.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var writes int
			session.Open().Emit = func(x *wire.Exchange) bool {
				if x.Write && x.Answered && x.OK && x.Operation == c.operation {
					writes++
				}
				return false
			}
			var out [2]int64
			now := wire.Stamp(1)
			pass := func(dir wire.Direction, b []byte) {
				pieces := session.Frame(dir, b, now, nil)
				out[dir] += int64(len(b))
				session.Open().Departed(dir, out[dir], now+1)
				session.Decode(dir, b, pieces)
				now += 2
			}
			pass(wire.ToServer, c.hello)
			pass(wire.ToClient, c.welcome)
			for range 5 {
				if c.protocol == wire.MongoDB {
					copy(c.reply[8:12], c.request[4:8]) // responseTo
				}
				pass(wire.ToServer, c.request)
				pass(wire.ToClient, c.reply)
			}
			if err := session.Opaque(); err != nil {
				t.Fatal(err)
			}
			if writes != 5 {
				t.Errorf("5 pings were %d writes", writes)
			}
		})
	}
}
