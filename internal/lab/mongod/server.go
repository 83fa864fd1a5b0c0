package mongod

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Options say how a server of its own behaves. The zero value is usable: a
// standalone server of version 8.0 that compresses nothing and never dawdles.
type Options struct {
	// ServerDelay is asked once per command, hello included, how long the server
	// thinks before it answers; nil: not at all. It's called by many connections
	// at once.
	ServerDelay func(Command) time.Duration
	// Compressors that the server accepts: "snappy", "zlib", "zstd".
	Compressors []string
	// MaxWireVersion in hello; 0 means 25, that of version 8.0.
	MaxWireVersion int32
	// SetName makes the server the only member, and primary, of a replica set:
	// its hello names itself, and replies carry opTime, electionId, $clusterTime
	// and operationTime, which a standalone server doesn't have. Drivers must be
	// given directConnection=true (URI does), or they leave a proxy for the
	// address that hello names.
	SetName string
	// StreamHello gives hello a topologyVersion, so that drivers' monitors ask to
	// be told of changes (of which there are none) instead of asking every time.
	StreamHello bool
	// Engine is what operations wait for before they are done.
	Engine Engine
}

// Server is a running server. Its methods are safe for concurrent use.
type Server struct {
	options  Options
	listener net.Listener
	codec    *codec
	cursors  *cursors
	process  bson.ObjectID // in topologyVersion
	started  time.Time

	dir     string   // of its files; empty: none
	journal *journal // nil: none
	truth   *recorder
	member  *Member // what of a set's member outlives this process; nil: it's none
	gate    gate
	counters
	admission   admission
	checkpoints checkpoints

	ctx    context.Context // ends with Stop, or with what its cause says
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	// mu guards the data and what replication knows. Nothing waits, reads or
	// writes while it's held, but for a vote's file and a rollback's journal.
	mu       sync.Mutex
	data     store
	sessions sessions
	set      *replication // nil: standalone
	inbox    queue        // fetched, not yet in the oplog
	outbox   queue        // in the oplog, not yet applied

	connections sync.Mutex // guards what follows
	open        map[*connection]struct{}
	lastID      int64
	stopped     bool
}

// Start opens a server on a free port of 127.0.0.1. It keeps its data in memory.
func Start(o Options) (*Server, error) {
	s, err := newServer(o)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.codec.close()
		return nil, fmt.Errorf("open the mongodb lab: %w", err)
	}
	if o.SetName != "" {
		only := configMember{host: l.Addr().String(), votes: 1, priority: 1}
		s.set = newReplication(&config{name: o.SetName, id: bson.NewObjectID(), members: []configMember{only}}, 0)
		s.data = store{}
		s.reign(1)
	}
	s.serve(l)
	return s, nil
}

func newServer(o Options) (*Server, error) {
	for _, name := range o.Compressors {
		if name == "" || !slices.Contains(compressorNames[:], name) {
			return nil, fmt.Errorf("compressor %q: use snappy, zlib or zstd", name)
		}
	}
	if o.MaxWireVersion == 0 {
		o.MaxWireVersion = wireVersion
	}
	codec, err := newCodec()
	if err != nil {
		return nil, err
	}
	s := &Server{
		options: o, codec: codec, cursors: newCursors(), process: bson.NewObjectID(), started: time.Now(),
		data: store{}, sessions: sessions{}, open: map[*connection]struct{}{},
	}
	s.admission.writes.total, s.admission.reads.total = o.Engine.tickets(), o.Engine.tickets()
	s.admission.flow.target = maxFlowTickets
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s, nil
}

// serve begins to take connections.
func (s *Server) serve(l net.Listener) {
	s.listener = l
	s.wg.Go(s.accept)
}

// Addr is where the server listens.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// URI is a connection string for a driver that dials addr, which is Addr or
// that of a proxy in front of it, and nothing else.
func (s *Server) URI(addr string) string {
	return "mongodb://" + addr + "/?directConnection=true"
}

// Stop closes the listener and all connections, and waits for their end. It may
// be called more than once.
func (s *Server) Stop() {
	// First of all: who has seen a connection of its own end must not be answered on
	// another any more.
	s.cancel(nil)
	s.connections.Lock()
	first := !s.stopped
	s.stopped = true
	for c := range s.open {
		c.Close()
	}
	s.connections.Unlock()
	s.listener.Close()
	s.wg.Wait()
	if first {
		s.codec.close()
	}
}

func (s *Server) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		if conn := s.add(c); conn != nil {
			s.wg.Go(func() { s.converse(conn) })
		}
	}
}

// add takes note of a connection and numbers it; nil: the server has stopped.
func (s *Server) add(c net.Conn) *connection {
	s.connections.Lock()
	defer s.connections.Unlock()
	if s.stopped {
		c.Close()
		return nil
	}
	s.lastID++
	conn := &connection{Conn: c, id: s.lastID}
	conn.ctx, conn.cancel = context.WithCancel(s.ctx)
	s.open[conn] = struct{}{}
	return conn
}
