package main

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/internal/lab/mongod"
	"github.com/wirewait/wirewait/proxy"
	"github.com/wirewait/wirewait/proxy/config"
)

// TestFile_MembersShareListeners runs a replica set whose members reach each
// other by one listener each, as a configuration of MongoDB has it, at unequal
// distances: every connection has the delay of its two ends.
func TestFile_MembersShareListeners(t *testing.T) {
	distance := map[string]time.Duration{
		"rs0.a rs0.b": 8 * time.Millisecond, "rs0.a rs0.c": 4 * time.Millisecond, "rs0.b rs0.c": 12 * time.Millisecond,
	}
	for pair, d := range distance {
		from, to, _ := strings.Cut(pair, " ")
		distance[to+" "+from] = d
	}
	for basis, tc := range map[string]struct {
		sources    string
		from       [3]string
		noHostInfo bool
	}{
		"host_info": {},
		"heartbeat": {noHostInfo: true},
		"address":   {"sources: {127.0.0.2: rs0.a, 127.0.0.3: rs0.b, 127.0.0.4: rs0.c}", [3]string{"127.0.0.2", "127.0.0.3", "127.0.0.4"}, true},
	} {
		t.Run(basis, func(t *testing.T) {
			t.Parallel()
			if tc.from[0] != "" && runtime.GOOS != "linux" {
				t.Skip("only Linux has all of 127.0.0.0/8")
			}
			p, set := startMembers(t, tc.sources, tc.from, tc.noHostInfo)
			seen := map[string]bool{}
			for deadline := time.Now().Add(time.Minute); len(seen) < len(distance); time.Sleep(5 * time.Millisecond) {
				for _, c := range p.Connections() {
					if c.Basis != basis {
						continue
					}
					pair := c.From + " " + strings.TrimPrefix(c.Link, "members-")
					if want, ok := distance[pair]; !ok || c.Delay.RTT() != want {
						t.Fatalf("from %s over %s: a round trip of %v, want %v", c.From, c.Link, c.Delay.RTT(), want)
					}
					seen[pair] = true
				}
				if time.Now().After(deadline) {
					t.Fatalf("only these were told by %s: %v of %+v", basis, seen, p.Connections())
				}
			}
			if set.Primary() == nil {
				t.Error("the set has no primary")
			}
		})
	}
}

// startMembers runs a set behind the links of a file.
func startMembers(t *testing.T, sources string, from [3]string, noHostInfo bool) (*proxy.Proxy, *mongod.Set) {
	t.Helper()
	ports, err := mongod.ReservePorts(3)
	if err != nil {
		t.Fatal(err)
	}
	parse := func(listen ...string) []proxy.LinkConfig {
		f, err := config.Parse("wirewait.yaml", fmt.Appendf(nil, `
%s
network:
  - {between: [sgp, fra], rtt: 8ms}
  - {between: [sgp, syd], rtt: 4ms}
  - {between: [fra, syd], rtt: 12ms}
clusters:
  rs0: {protocol: mongodb, members: {a: {site: sgp, upstream: %q}, b: {site: fra, upstream: %q}, c: {site: syd, upstream: %q}}}
links:
  - {from: members, to: rs0.a, listen: %q}
  - {from: members, to: rs0.b, listen: %q}
  - {from: members, to: rs0.c, listen: %q}
`, sources, ports.Addr(0), ports.Addr(1), ports.Addr(2), listen[0], listen[1], listen[2]), nil)
		if err != nil {
			t.Fatal(err)
		}
		return f.ProxyLinks()
	}
	p, err := proxy.Start(context.Background(), proxy.Config{Links: parse("127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		_ = p.Shutdown(now)
	})
	// What members call each other is where the links listen, once that is known.
	var listens []string
	options := mongod.SetOptions{Ports: ports, NoHostInfo: noHostInfo, HeartbeatInterval: 50 * time.Millisecond}
	for i, l := range p.Links() {
		listens = append(listens, l.Addr().String())
		options.Members = append(options.Members, mongod.MemberOptions{Host: l.Addr().String(), From: from[i]})
	}
	if err := p.Reload(parse(listens...)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	set, err := mongod.StartSet(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	return p, set
}
