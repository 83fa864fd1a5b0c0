package mongod

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Member is one of a set's members, running or not. Its methods are safe for
// concurrent use.
type Member struct {
	set     *Set
	index   int
	options MemberOptions
	dir     string
	truth   *recorder

	writeDelay, applyDelay atomic.Int64 // nanoseconds
	writeRate              atomic.Int64 // entries a second; 0: any number

	mu     sync.Mutex
	server *Server // nil: it isn't running
	paused bool
}

// Name of the member, as in MemberOptions.
func (m *Member) Name() string { return m.options.Name }

// Host is its address in the set's configuration.
func (m *Member) Host() string { return m.options.Host }

// Addr is where it listens, also while it doesn't run.
func (m *Member) Addr() string { return m.set.ports.Addr(m.index) }

func (m *Member) journalPath() string { return filepath.Join(m.dir, "oplog") }

// SetWriteDelay makes a secondary take this long from fetching an entry until it
// stands in its oplog, as one whose disk, or whose network, is behind would. It
// applies to what was fetched already, too.
func (m *Member) SetWriteDelay(d time.Duration) { m.setDelay(&m.writeDelay, d) }

// SetWriteRate makes a secondary put at most so many entries a second into its
// oplog, as one whose disk is too slow; 0: as many as come. What it can't take
// waits, and its lag grows.
func (m *Member) SetWriteRate(perSecond int) {
	m.writeRate.Store(int64(perSecond))
	m.setDelay(&m.writeDelay, time.Duration(m.writeDelay.Load())) // tells who waits
}

// atATime and pace divide a rate into batches of 20 ms.
func (m *Member) atATime() int {
	rate := m.writeRate.Load()
	if rate == 0 {
		return 0
	}
	return max(int(rate/50), 1)
}

// pace is how long so many entries take.
func (m *Member) pace(entries int) time.Duration {
	rate := m.writeRate.Load()
	if rate == 0 {
		return 0
	}
	return time.Duration(entries) * time.Second / time.Duration(rate)
}

// SetApplyDelay makes a secondary take this long from having an entry in its
// oplog until it shows in its data. w: majority doesn't wait for that; w: N does.
func (m *Member) SetApplyDelay(d time.Duration) { m.setDelay(&m.applyDelay, d) }

func (m *Member) setDelay(which *atomic.Int64, d time.Duration) {
	which.Store(int64(d))
	if s := m.running(); s != nil {
		s.mu.Lock()
		s.inbox.changed.raise()
		s.outbox.changed.raise()
		s.mu.Unlock()
	}
}

func (m *Member) running() *Server {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.server
}

// Truth is what this member knows of itself and of what its writes have waited
// for, over all its runs; empty without SetOptions.Record.
func (m *Member) Truth() Truth { return m.truth.read() }

// Start runs the member with the files that it has. It does nothing if it runs.
func (m *Member) Start() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.server != nil {
		return nil
	}
	s, err := m.load()
	if err != nil {
		return fmt.Errorf("member %s: %w", m.Name(), err)
	}
	l, err := m.set.ports.listen(m.index)
	if err != nil {
		s.codec.close()
		return fmt.Errorf("member %s: %w", m.Name(), errors.Join(err, s.journal.close(true)))
	}
	m.server = s
	s.gate.set(!m.paused)
	s.serve(l)
	s.replicate()
	return nil
}

// load makes a server of the member's files.
func (m *Member) load() (*Server, error) {
	o := Options{ServerDelay: m.set.options.ServerDelay, Engine: m.set.options.Engine}
	if !m.set.options.NoCompression {
		o.Compressors = []string{"snappy", "zstd", "zlib"}
	}
	s, err := newServer(o)
	if err != nil {
		return nil, err
	}
	s.member, s.dir, s.truth = m, m.dir, m.truth
	s.set = newReplication(m.set.config, m.index)
	if err := s.recover(m.journalPath()); err != nil {
		s.codec.close()
		return nil, err
	}
	return s, nil
}

// Stop ends the member as a shutdown does: what it has written is on disk. Its
// port stays its own, and refuses.
func (m *Member) Stop() error { return m.end(false) }

// Kill ends it as kill -9 does: what the journal hasn't reached is lost.
func (m *Member) Kill() error { return m.end(true) }

func (m *Member) end(lose bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.server
	if s == nil {
		return nil
	}
	m.server = nil
	m.paused = false
	s.Stop()
	err := s.journal.close(lose)
	if cause := context.Cause(s.ctx); !errors.Is(cause, context.Canceled) {
		err = errors.Join(cause, err)
	}
	return err
}

// Pause makes the member do nothing any more, as SIGSTOP does: its connections
// stay open, and nobody is answered.
func (m *Member) Pause() { m.pause(true) }

// Resume ends a pause.
func (m *Member) Resume() { m.pause(false) }

func (m *Member) pause(paused bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.server != nil {
		m.paused = paused
		m.server.gate.set(!paused)
	}
}

// Status is what a member says of itself.
type Status struct {
	Running  bool
	Writable bool // it's primary and takes writes
	State    int  // as in replSetGetStatus: 1 primary, 2 secondary, 9 rollback
	Term     int64
	Source   string // the member that it follows; empty: none
	// Written, Durable and Applied are its own progress; Committed is how far it
	// knows a majority to be.
	Written, Durable, Applied, Committed OpTime
}

// Status of the member now.
func (m *Member) Status() Status {
	s := m.running()
	if s == nil {
		return Status{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.set
	st := Status{
		Running: true, Writable: r.writable, State: r.state, Term: r.term,
		Written: r.written.OpTime, Durable: r.durable.OpTime, Applied: r.applied.OpTime, Committed: r.committed.OpTime,
	}
	if r.source >= 0 {
		st.Source = m.set.members[r.source].Name()
	}
	return st
}

// JournalStats count what a member's journal has done since its start.
type JournalStats struct {
	Entries  int64 // oplog entries, each one document's change
	Bytes    int64
	Syncs    int64
	SyncTime time.Duration // in all
}

// JournalStats of the member's present run.
func (m *Member) JournalStats() JournalStats {
	s := m.running()
	if s == nil {
		return JournalStats{}
	}
	j := &s.journal.stats
	return JournalStats{j.entries.Load(), j.bytes.Load(), j.syncs.Load(), time.Duration(j.syncMicros.Load()) * time.Microsecond}
}

// URI is a connection string for a driver that dials this member alone.
func (m *Member) URI() string { return "mongodb://" + m.Addr() + "/?directConnection=true" }

// plantSeed makes the entry with which the set's history begins, in a set that
// has none yet.
func (set *Set) plantSeed(fresh bool) error {
	id := bson.NewObjectID()
	if !fresh {
		return set.findSeed()
	}
	set.config.id = id
	now := time.Now()
	o, err := bson.Marshal(bson.D{{Key: "msg", Value: "initiating set"}, {Key: "replicaSetId", Value: id}})
	if err != nil {
		return err
	}
	set.seed = &entry{kind: "n", o: o}
	set.seed.mark = mark{OpTime{bson.Timestamp{T: uint32(now.Unix()), I: 1}, 1}, now}
	return set.seed.encode()
}

// findSeed takes the first entry of a member that has files.
func (set *Set) findSeed() error {
	for _, m := range set.members {
		j, log, err := openJournal(m.journalPath(), nil)
		if err != nil {
			return err
		}
		if err := j.close(true); err != nil {
			return err
		}
		if len(log) > 0 {
			set.seed = log[0]
			set.config.id, _ = set.seed.o.Lookup("replicaSetId").ObjectIDOK()
			return nil
		}
	}
	return errors.New("the files hold no oplog: use an empty directory")
}

// dialAddr is the address at which this member reaches another.
func (m *Member) dialAddr(to int) string {
	if m.set.options.DialPair != nil {
		return m.set.options.DialPair(m.index, to)
	}
	return m.set.config.members[to].host
}

func (m *Member) dialer() *net.Dialer {
	d := &net.Dialer{}
	if m.options.From != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(m.options.From)}
	}
	return d
}
