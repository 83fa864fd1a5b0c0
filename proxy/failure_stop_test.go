//go:build linux

package proxy

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/wire"
)

// Drivers watch a server by a stream of hello replies that never ends. A stop
// must not wait for it until its patience is over.
func TestFailure_StopDoesNotWaitForMonitors(t *testing.T) { eachDriver(t, stopDoesNotWaitForMonitors) }

func stopDoesNotWaitForMonitors(t *testing.T, on driverName) {
	first := opMsg(100, 7, moreToCome, bson.D{{Key: "ok", Value: 1.0}})
	up := server(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1000))
		_, _ = c.Write(first)
		_, _ = io.Copy(io.Discard, c)
	})
	p, l := on.start(t, LinkConfig{Protocol: wire.MongoDB, Upstream: up, Delay: rtt(2 * time.Millisecond)})
	c := dialLink(t, l)
	_, _ = c.Write(opMsg(7, 0, exhaustAllowed, bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}}))
	if _, err := io.ReadFull(c, make([]byte, len(first))); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := p.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the monitor saw %v, want an orderly end", err)
	}
}
