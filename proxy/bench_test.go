//go:build unix

package proxy

import (
	"context"
	"io"
	"net"
	"testing"

	"github.com/wirewait/wirewait/proxy/pump"
	"github.com/wirewait/wirewait/wire"
)

// relay is the baseline: what a plain Go relay does, with a 32 KiB copy and no
// splice.
func relay(b *testing.B, upstream string) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { ln.Close() })
	pipe := func(dst, src net.Conn) {
		defer dst.Close()
		_, _ = io.CopyBuffer(struct{ io.Writer }{dst}, struct{ io.Reader }{src}, make([]byte, 32<<10))
	}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", upstream)
			if err != nil {
				c.Close()
				continue
			}
			go pipe(s, c)
			go pipe(c, s)
		}
	}()
	return ln.Addr().String()
}

// BenchmarkPing is the round trip of 128 bytes, one connection, all in one
// process. For figures of separate processes see internal/bench.
func BenchmarkPing(b *testing.B) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); echo(c) }()
		}
	}()
	up := ln.Addr().String()
	proxied := func(protocol wire.Protocol) func(*testing.B) string {
		return func(b *testing.B) string {
			p, err := Start(context.Background(), Config{Links: []LinkConfig{{Listen: "127.0.0.1:0", Upstream: up, Protocol: protocol}}})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = p.Shutdown(context.Background()) })
			return p.Links()[0].Addr().String()
		}
	}
	for _, way := range []struct {
		name string
		addr func(*testing.B) string
	}{
		{"direct", func(*testing.B) string { return up }},
		{"relay", func(b *testing.B) string { return relay(b, up) }},
		{"wirewait", proxied(wire.TCP)},
	} {
		b.Run(way.name, func(b *testing.B) {
			c, err := net.Dial("tcp", way.addr(b))
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			buf := make([]byte, 128)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Write(buf); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(c, buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCounters is what a look at 10,000 connections costs, which is what
// /metrics and /v1/links take; the lock of each is held for a moment.
func BenchmarkCounters(b *testing.B) {
	p, err := newProxy(Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Shutdown(context.Background())
	if err := p.Reload([]LinkConfig{{Name: "a", Listen: "127.0.0.1:0", Upstream: "127.0.0.1:1", Protocol: wire.TCP}}); err != nil {
		b.Fatal(err)
	}
	for range 10_000 {
		p.conns[&conn{link: p.links[0], pump: pump.New(pump.Config{Session: wire.NewOpaque()})}] = struct{}{}
	}
	for b.Loop() {
		if n := p.Counters(); n.ConnectionsOpen != 10_000 {
			b.Fatal(n.ConnectionsOpen)
		}
	}
	clear(p.conns)
}
