//go:build linux

package proxy

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wirewait/wirewait/wire"
)

// An upstream stops reading: the client is held back as it would be without a
// proxy, nothing is lost, and other connections of the link notice nothing.
func TestFailure_UpstreamStopsReadingForAWhile(t *testing.T) {
	eachDriver(t, upstreamStopsReadingForAWhile)
}

func upstreamStopsReadingForAWhile(t *testing.T, on driverName) {
	for protocol, talk := range conversations(t) {
		for delay, set := range delays {
			t.Run(protocol+"/"+delay, func(t *testing.T) {
				again, sum := make(chan struct{}), make(chan [32]byte, 1)
				var accepted atomic.Int32
				up := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
					if accepted.Add(1) > 1 { // one of the others
						_, _ = io.ReadFull(c, make([]byte, len(talk.request)))
						_, _ = c.Write(talk.reply)
						_, _ = io.Copy(io.Discard, c)
						return
					}
					<-again
					h := sha256.New()
					_, _ = io.Copy(h, c)
					sum <- [32]byte(h.Sum(nil))
				})
				p, l := on.start(t, LinkConfig{Protocol: wire.Protocol(protocol), Upstream: up, Delay: set})
				c := dialLink(t, l).(*net.TCPConn)
				soon(t, "the upstream has it", func() bool { return accepted.Load() == 1 })
				h := sha256.New()
				write := func(b []byte) (int, error) {
					n, err := c.Write(b)
					h.Write(b[:n])
					return n, err
				}
				if _, err := write(talk.request); err != nil {
					t.Fatal(err)
				}
				rest := writeUntilHeld(t, c, write, talk.nextRequest)
				for range 5 {
					askAnother(t, l, talk)
				}
				// 4 MiB may be late, besides what came in while they were on their way.
				if live := p.Counters().BytesLive; live < 1<<20 || live > 48<<20 {
					t.Errorf("%d bytes wait: not what a stalled peer is allowed", live)
				}
				close(again)
				_ = c.SetWriteDeadline(time.Time{})
				if _, err := write(rest); err != nil {
					t.Fatal(err)
				}
				_ = c.CloseWrite()
				if got := <-sum; got != [32]byte(h.Sum(nil)) {
					t.Error("the server got other bytes")
				}
				if p.Counters().StalledSeconds[wire.ToServer] == 0 {
					t.Error("the stall was not counted")
				}
				c.Close()
				ended(t, p)
			})
		}
	}
}

// askAnother has one exchange on a connection of its own.
func askAnother(t *testing.T, l *Link, talk conversation) {
	t.Helper()
	c := dialLink(t, l)
	defer c.Close()
	_, _ = c.Write(talk.request)
	got := make([]byte, len(talk.reply))
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, talk.reply) {
		t.Fatalf("another connection got %q, %v", got, err)
	}
}

// writeUntilHeld writes message after message until the socket takes nothing
// for a second, and returns the rest of the last one. To have written 64 MiB is
// a failure: nothing held the client back.
func writeUntilHeld(t *testing.T, c net.Conn, write func([]byte) (int, error), message []byte) (rest []byte) {
	t.Helper()
	for sent := 0; sent < 64<<20; {
		for rest = message; len(rest) > 0; {
			_ = c.SetWriteDeadline(time.Now().Add(time.Second))
			n, err := write(rest[:min(len(rest), 16<<10)])
			rest, sent = rest[n:], sent+n
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return rest
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Fatal("nothing held the client back")
	return nil
}
