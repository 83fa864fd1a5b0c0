package lab

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/wire"
)

// MongoOptions say how the peer behaves. The zero value is usable: a
// standalone server of version 7.0 that compresses nothing and never dawdles.
type MongoOptions struct {
	// ServerDelay is asked once per command, hello included, how long the peer
	// thinks before it answers; nil: not at all. It's called by many connections
	// at once.
	ServerDelay func(MongoCommand) time.Duration
	// Compressors that the peer accepts: "snappy", "zlib", "zstd".
	Compressors []string
	// MaxWireVersion in hello; 0 means 21, that of version 7.0.
	MaxWireVersion int32
	// SetName makes the peer the only member, and primary, of a replica set: its
	// hello names itself, and replies carry opTime, electionId, $clusterTime and
	// operationTime, which a standalone server doesn't have. Drivers must be
	// given directConnection=true (URI does), or they leave a proxy for the
	// address that hello names.
	SetName string
	// StreamHello gives hello a topologyVersion, so that drivers' monitors ask to
	// be told of changes (of which there are none) instead of asking every time.
	StreamHello bool
}

// MongoCommand is a command that reached the peer.
type MongoCommand struct {
	Name       string // as sent: "insert"
	Database   string
	Collection string // empty if the command has none
	// WriteConcern has W, J and WTimeout as sent; zero if none was.
	WriteConcern wire.WriteConcern
	NoReply      bool   // the client wants no reply (w: 0)
	Compressor   string // of the request; empty: not compressed
	Checksum     bool   // the request carried one, and it was right
}

// Mongo is a running peer. Its methods are safe for concurrent use.
type Mongo struct {
	options  MongoOptions
	listener net.Listener
	codec    *codec
	clock    *oplogClock // nil: standalone
	store    *store
	cursors  *cursors
	sessions *sessions
	process  bson.ObjectID // in topologyVersion

	ctx    context.Context // ends with Stop
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	conns   map[net.Conn]struct{}
	lastID  int64
	stopped bool
}

// StartMongo opens a peer on a free port of 127.0.0.1.
func StartMongo(o MongoOptions) (*Mongo, error) {
	for _, name := range o.Compressors {
		if name == "" || !slices.Contains(compressorNames[:], name) {
			return nil, fmt.Errorf("compressor %q: use snappy, zlib or zstd", name)
		}
	}
	if o.MaxWireVersion == 0 {
		o.MaxWireVersion = 21
	}
	codec, err := newCodec()
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		codec.close()
		return nil, fmt.Errorf("open the mongodb peer: %w", err)
	}
	m := &Mongo{
		options: o, listener: l, codec: codec,
		store: newStore(), cursors: newCursors(), sessions: newSessions(),
		conns: map[net.Conn]struct{}{}, process: bson.NewObjectID(),
	}
	if o.SetName != "" {
		m.clock = &oplogClock{}
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.wg.Go(m.accept)
	return m, nil
}

// Addr is where the peer listens.
func (m *Mongo) Addr() string { return m.listener.Addr().String() }

// URI is a connection string for a driver that dials addr, which is Addr or
// that of a proxy in front of it, and nothing else.
func (m *Mongo) URI(addr string) string {
	return "mongodb://" + addr + "/?directConnection=true"
}

// Stop closes the listener and all connections, and waits for their end. It may
// be called more than once.
func (m *Mongo) Stop() {
	m.mu.Lock()
	first := !m.stopped
	m.stopped = true
	for c := range m.conns {
		c.Close()
	}
	m.mu.Unlock()
	m.cancel()
	m.listener.Close()
	m.wg.Wait()
	if first {
		m.codec.close()
	}
}

func (m *Mongo) accept() {
	for {
		c, err := m.listener.Accept()
		if err != nil {
			return
		}
		if id := m.add(c); id != 0 {
			m.wg.Go(func() { m.serve(c, id) })
		}
	}
}

// add takes note of a connection and numbers it; 0: the peer has stopped.
func (m *Mongo) add(c net.Conn) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped {
		c.Close()
		return 0
	}
	m.conns[c] = struct{}{}
	m.lastID++
	return m.lastID
}

// serve answers one connection until it ends. Like a server it answers one
// request after the other, and closes the connection on a malformed one.
func (m *Mongo) serve(c net.Conn, id int64) {
	defer func() {
		c.Close()
		m.mu.Lock()
		delete(m.conns, c)
		m.mu.Unlock()
	}()
	r := bufio.NewReader(c)
	for {
		q, err := m.codec.read(r)
		if err != nil {
			return
		}
		q.connection = id
		if wait, ok := m.awaits(q); ok {
			if m.stream(c, q, wait) != nil {
				return
			}
			continue
		}
		reply := m.answer(q)
		if d := m.delay(q); d > 0 && pause(m.ctx, d) != nil {
			return
		}
		if q.NoReply {
			continue
		}
		b, err := m.codec.reply(q, reply)
		if err != nil {
			return
		}
		if _, err := c.Write(b); err != nil {
			return
		}
	}
}

func (m *Mongo) delay(q *request) time.Duration {
	if m.options.ServerDelay == nil {
		return 0
	}
	return m.options.ServerDelay(q.MongoCommand)
}

// answer runs a command and gives its reply the fields that all replies have.
func (m *Mongo) answer(q *request) bson.D {
	reply, err := m.dispatch(q)
	if err != nil {
		reply = errorReply(err)
	} else {
		reply = append(reply, bson.E{Key: "ok", Value: 1.0})
	}
	if m.clock == nil {
		return reply
	}
	return append(reply, m.clock.gossip(q)...)
}
