//go:build linux

package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/wirewait/wirewait/inject"
	"github.com/wirewait/wirewait/wire"
)

// delays to try everything with.
var delays = map[string]inject.Settings{
	"undelayed": {},
	"delayed":   inject.Symmetric(8*time.Millisecond, 2*time.Millisecond),
}

// eachDeath runs f for both protocols, with and without a delay, for a process
// that dies with its buffers read (FIN) and with some unread (RST).
func eachDeath(t *testing.T, f func(t *testing.T, lc LinkConfig, talk conversation, die func(net.Conn), seen func(error) bool)) {
	for protocol, talk := range conversations(t) {
		for delay, set := range delays {
			lc := LinkConfig{Protocol: wire.Protocol(protocol), Delay: set}
			t.Run(fmt.Sprintf("%s/%s/FIN", protocol, delay), func(t *testing.T) {
				f(t, lc, talk, func(c net.Conn) { c.Close() }, func(err error) bool { return err == nil })
			})
			t.Run(fmt.Sprintf("%s/%s/RST", protocol, delay), func(t *testing.T) {
				f(t, lc, talk, func(c net.Conn) {
					soon(t, "what was written left this kernel", func() bool { return undelivered(c) == 0 })
					abort(c)
				}, func(err error) bool { return errors.Is(err, syscall.ECONNRESET) })
			})
		}
	}
}

// ended waits for the end of all connections and checks that nothing stays.
func ended(t *testing.T, p *Proxy) {
	t.Helper()
	soon(t, "the connection is gone", func() bool { return p.Counters().ConnectionsOpen == 0 })
	if n := p.Counters(); n.BytesLive != 0 || n.Opaque != 0 || len(n.DecodeFailures) != 0 || p.lines.used.Load() != 0 {
		t.Errorf("left behind: %+v, %d bytes of the budget", n, p.lines.used.Load())
	}
}

func TestFailure_UpstreamKilledInTheMiddleOfAMessage(t *testing.T) {
	eachDriver(t, upstreamKilledInTheMiddleOfAMessage)
}

func upstreamKilledInTheMiddleOfAMessage(t *testing.T, on driverName) {
	eachDeath(t, func(t *testing.T, lc LinkConfig, talk conversation, die func(net.Conn), seen func(error) bool) {
		part := talk.nextReply[:len(talk.nextReply)/2]
		lc.Upstream = server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
			_, _ = io.ReadFull(c, make([]byte, len(talk.request)))
			_, _ = c.Write(talk.reply)
			_, _ = io.ReadFull(c, make([]byte, len(talk.nextRequest)))
			_, _ = c.Write(part)
			die(c)
		})
		p, l := on.start(t, lc)
		c := dialLink(t, l)
		_, _ = c.Write(talk.request)
		_, _ = c.Write(talk.nextRequest)
		got, err := io.ReadAll(c)
		if want := join(talk.reply, part); !bytes.Equal(got, want) || !seen(err) {
			t.Errorf("%d bytes of %d, then %v", len(got), len(want), err)
		}
		c.Close()
		ended(t, p)
	})
}

func TestFailure_ClientKilledInTheMiddleOfAMessage(t *testing.T) {
	eachDriver(t, clientKilledInTheMiddleOfAMessage)
}

func clientKilledInTheMiddleOfAMessage(t *testing.T, on driverName) {
	eachDeath(t, func(t *testing.T, lc LinkConfig, talk conversation, die func(net.Conn), seen func(error) bool) {
		type outcome struct {
			b   []byte
			err error
		}
		saw := make(chan outcome, 1)
		lc.Upstream = server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
			first := make([]byte, len(talk.request))
			_, _ = io.ReadFull(c, first)
			_, _ = c.Write(talk.reply)
			rest, err := io.ReadAll(c)
			saw <- outcome{append(first, rest...), err}
		})
		p, l := on.start(t, lc)
		c := dialLink(t, l)
		_, _ = c.Write(talk.request)
		if _, err := io.ReadFull(c, make([]byte, len(talk.reply))); err != nil {
			t.Fatal(err)
		}
		part := talk.nextRequest[:len(talk.nextRequest)/2]
		_, _ = c.Write(part)
		die(c)
		o := <-saw
		if want := join(talk.request, part); !bytes.Equal(o.b, want) || !seen(o.err) {
			t.Errorf("%d bytes of %d, then %v", len(o.b), len(want), o.err)
		}
		ended(t, p)
	})
}

// Both sides half-close, one after the other, and each sends on after the other
// has ended.
func TestFailure_HalfClosesInBothOrders(t *testing.T) { eachDriver(t, halfClosesInBothOrders) }

func halfClosesInBothOrders(t *testing.T, on driverName) {
	fromClient, fromServer := bytes.Repeat([]byte("client "), 300_000), bytes.Repeat([]byte("server "), 300_000)
	// play is one side's part: the first to end waits for the other's bytes and
	// end; the second sends its bytes once it has seen the end of the first.
	play := func(c net.Conn, first bool, b []byte) ([]byte, error) {
		var got []byte
		var err error
		if !first {
			got, err = io.ReadAll(c)
		}
		_, werr := c.Write(b)
		cerr := c.(*net.TCPConn).CloseWrite()
		if first {
			got, err = io.ReadAll(c)
		}
		return got, errors.Join(err, werr, cerr)
	}
	for _, clientFirst := range []bool{true, false} {
		for delay, set := range delays {
			t.Run(fmt.Sprintf("client first %v/%s", clientFirst, delay), func(t *testing.T) {
				done := make(chan error, 1)
				up := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
					got, err := play(c, !clientFirst, fromServer)
					if err == nil && !bytes.Equal(got, fromClient) {
						err = fmt.Errorf("the server got %d bytes of %d, or others", len(got), len(fromClient))
					}
					done <- err
				})
				p, l := on.start(t, LinkConfig{Protocol: wire.TCP, Upstream: up, Delay: set})
				got, err := play(dialLink(t, l), clientFirst, fromClient)
				if err != nil || !bytes.Equal(got, fromServer) {
					t.Errorf("the client got %d bytes of %d, or others: %v", len(got), len(fromServer), err)
				}
				if err := <-done; err != nil {
					t.Error(err)
				}
				ended(t, p)
			})
		}
	}
}
