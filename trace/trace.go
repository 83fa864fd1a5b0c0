// Package trace turns finished exchanges into waits: what a write waited for,
// part by part, with parts that add up to the whole. It knows protocols by
// name only and imports no OpenTelemetry; trace/otlp makes spans of what it
// finds.
//
//	request                                            reply
//	first in    last in        last out                last in        last out
//	   |-- receive --|-- request --|-- server --|-- repl --|-- reply --|
//	   |<------------------------- Total ---------------------------->|
//
// The path of an exchange:
//
//	connection --Offer--> queue (bounded, drops counted) --> one worker --> consumers
//	           --OfferReport-->                                 |
//	             between members                          attribution
//
// Offer never blocks, so that no connection ever waits for its own tracing.
// The worker hands each exchange to every consumer in turn; a consumer that
// does I/O puts a queue of its own in between. Where links between members were
// seen, a write waits a little with the worker until their reports are in, for
// they tell which member's acknowledgement released it (attribution.go).
package trace

import (
	"time"

	"github.com/wirewait/wirewait/wire"
)

// Conn is what is known of the connection that an exchange came over. It is
// shared by all its exchanges and immutable.
type Conn struct {
	// Link is the link's name; From and To are its ends (a site or a member).
	Link, From, To string
	// FromBasis is how From is known: "link", "address", "proxy_header",
	// "certificate", "host_info", "heartbeat" or "unknown". Empty with From.
	FromBasis string
	// ClientAddr is the client's host:port; "" or the path for a unix socket.
	ClientAddr string
	// ServerHost and ServerPort are the upstream as configured. For a unix
	// socket the host is its path and the port 0.
	ServerHost string
	ServerPort int
	// PeerAddr is the resolved ip:port of the upstream socket.
	PeerAddr string
	// UpstreamPort is our own port on the upstream socket: what the server's
	// log calls its remote.
	UpstreamPort int
	// Epoch is the wall-clock time of Stamp 0.
	Epoch time.Time
}

// Time is the wall-clock time of a stamp.
func (c *Conn) Time(s wire.Stamp) time.Time { return c.Epoch.Add(time.Duration(s)) }

// Finished is an exchange with its connection and its waits.
type Finished struct {
	*wire.Exchange
	Conn  *Conn
	Waits Waits
	// Marker is what went on as it began; nil: nothing in particular.
	Marker *Marker
	// Replication is what it waited for in other members, if links to them were
	// seen.
	Replication Replication
	// Meanwhile is what its server did during its server part, if that's watched
	// (Tracer.Activities).
	Meanwhile Meanwhile

	// defaultKnown: it's a write to a replica set that was asked for its default
	// write concern.
	defaultKnown bool
}

// Consumer gets every finished exchange. Consume is called by one worker, one
// exchange at a time, must not block, and must keep nothing of f, neither
// pointers nor slices: the worker uses f again, and other connections the
// exchange. Strings, Conn and Peer may be kept.
type Consumer interface{ Consume(f *Finished) }
