package mongod

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// SetOptions say what a replica set is like. The zero value is usable: three
// members a, b, c, with a as primary, files in a temporary directory, and the
// defaults of a real configuration.
type SetOptions struct {
	// Name of the set; empty: rs0.
	Name string
	// Members; nil: three of the zero value. The first one whose priority is the
	// highest is primary at the start, without an election.
	Members []MemberOptions
	// Ports that were reserved before; nil: any free ones. The set closes them.
	Ports *Ports
	// DialPair, where not nil, is the address that one member dials to reach
	// another, by their places: a path of its own for each pair. Otherwise all
	// dial the one address that the configuration has (MemberOptions.Host).
	DialPair func(from, to int) string
	// Dir is where each member has a directory of its name; empty: a temporary
	// one, which Close removes. A set that finds files goes on from there, and
	// elects its primary.
	Dir string
	// NoChaining makes all secondaries follow the primary (chainingAllowed:
	// false). Otherwise one may follow another that is nearer to it.
	NoChaining bool
	// Modes are write concerns with names of their own (settings.getLastErrorModes):
	// of how many values of each tag a member must have a write.
	Modes map[string]map[string]int
	// NoHostInfo leaves out hostInfo, by which a member's connections tell whose
	// they are. Servers send it in some builds only.
	NoHostInfo bool
	// NoCompression makes members and clients send nothing compressed. Members'
	// messages then carry a checksum. Otherwise snappy, zstd and zlib are
	// accepted, and members use snappy.
	NoCompression bool
	// DelayedIsDurable makes a delayed member (MemberOptions.Delay) write what it
	// fetches at once, and only apply it late. Otherwise neither moves before the
	// delay is over, so that majority waits for it, as was measured on 8.3.11.
	DelayedIsDurable bool
	// HeartbeatInterval and ElectionTimeout; 0: 2 s and 10 s, as servers have.
	HeartbeatInterval, ElectionTimeout time.Duration
	// Record keeps what Member.Truth returns, for as long as the set runs.
	Record bool
	// ServerDelay as in Options, for clients' commands on every member.
	ServerDelay func(Command) time.Duration
	// Engine of every member.
	Engine Engine
}

// MemberOptions say what is special about a member. The zero value votes and may
// become primary.
type MemberOptions struct {
	Name string // empty: a, b, c, ... by place
	// Host is the member's address in the configuration: what drivers and other
	// members dial, such as a proxy's. Empty: where it listens.
	Host string
	// Priority; 0: 1. A negative one stands for 0: it never becomes primary.
	Priority float64
	// NoVote makes it a member without a vote, and thereby without priority.
	NoVote bool
	Hidden bool
	Tags   map[string]string
	// Delay is secondaryDelaySecs. It implies priority 0.
	Delay time.Duration
	// From is the local address that this member dials others from, without a
	// port, such as 127.0.0.2; empty: any.
	From string
}

// Set is a replica set whose members run in this process and speak to each other
// over TCP. Its methods are safe for concurrent use.
type Set struct {
	options SetOptions
	config  *config
	ports   *Ports
	dir     string
	ownDir  bool
	members []*Member
	seed    *entry // the set's first oplog entry
}

// StartSet starts all members and returns when the first of them takes writes.
// The context bounds the start alone.
func StartSet(ctx context.Context, o SetOptions) (*Set, error) {
	set, err := newSet(o)
	if err != nil {
		if o.Ports != nil {
			o.Ports.Close()
		}
		return nil, err
	}
	for _, m := range set.members {
		if err := m.Start(); err != nil {
			return nil, errors.Join(err, set.Close())
		}
	}
	if _, err := set.AwaitPrimary(ctx); err != nil {
		return nil, errors.Join(err, set.Close())
	}
	return set, nil
}

func newSet(o SetOptions) (*Set, error) {
	if o.Name == "" {
		o.Name = "rs0"
	}
	if o.Members == nil {
		o.Members = make([]MemberOptions, 3)
	}
	if o.HeartbeatInterval <= 0 {
		o.HeartbeatInterval = 2 * time.Second
	}
	if o.ElectionTimeout <= 0 {
		o.ElectionTimeout = 10 * time.Second
	}
	set := &Set{options: o, ports: o.Ports, dir: o.Dir}
	var err error
	if set.ports == nil {
		if set.ports, err = ReservePorts(len(o.Members)); err != nil {
			return nil, err
		}
	}
	if err := set.configure(); err != nil {
		return nil, errors.Join(err, set.closePorts())
	}
	if set.dir == "" {
		set.ownDir = true
		if set.dir, err = os.MkdirTemp("", "wirewait-mongodb-"); err != nil {
			return nil, errors.Join(err, set.closePorts())
		}
	}
	fresh, err := set.makeMembers()
	if err == nil {
		err = set.plantSeed(fresh)
	}
	if err != nil {
		return nil, errors.Join(err, set.Close())
	}
	return set, nil
}

// closePorts closes ports of the set's own.
func (set *Set) closePorts() error {
	if set.options.Ports == nil {
		set.ports.Close()
	}
	return nil
}

// configure makes the configuration from the options.
func (set *Set) configure() error {
	o := set.options
	if n := len(o.Members); n == 0 || n > 50 || n != set.ports.Len() {
		return fmt.Errorf("%d members on %d ports: a set has 1 to 50 members, and a port for each", n, set.ports.Len())
	}
	c := &config{
		name: o.Name, chaining: !o.NoChaining, modes: o.Modes,
		electionTimeout: o.ElectionTimeout.Milliseconds(), heartbeatInterval: o.HeartbeatInterval.Milliseconds(),
	}
	seen := map[string]bool{}
	for i := range o.Members {
		m := &o.Members[i]
		if m.Name == "" {
			m.Name = string(rune('a' + i%26))
			if i >= 26 {
				m.Name += fmt.Sprint(i / 26)
			}
		}
		if m.Host == "" {
			m.Host = set.ports.Addr(i)
		}
		if seen[m.Name] || seen[m.Host] || strings.ContainsAny(m.Name, `/\`) {
			return fmt.Errorf("member %d: name %q and host %q must be its own, without slashes in the name", i, m.Name, m.Host)
		}
		seen[m.Name], seen[m.Host] = true, true
		c.members = append(c.members, m.config(int32(i)))
	}
	if c.voters() == 0 || set.candidate(c) < 0 {
		return errors.New("no member could become primary: one needs a vote and a priority")
	}
	set.config = c
	return nil
}

// candidate is the first member with the highest priority, -1 if none may be
// primary.
func (set *Set) candidate(c *config) int {
	best := -1
	for i, m := range c.members {
		if m.priority > 0 && (best < 0 || m.priority > c.members[best].priority) {
			best = i
		}
	}
	return best
}

func (m MemberOptions) config(id int32) configMember {
	c := configMember{host: m.Host, votes: 1, priority: m.Priority, hidden: m.Hidden, delaySecs: int64(m.Delay.Seconds()), memberID: id}
	if c.priority == 0 {
		c.priority = 1
	}
	if m.NoVote {
		c.votes = 0
	}
	if m.NoVote || m.Delay > 0 || m.Hidden || c.priority < 0 {
		c.priority = 0
	}
	for key, value := range m.Tags {
		c.tags = append(c.tags, bson.E{Key: key, Value: value})
	}
	return c
}

// makeMembers reports whether no member has files yet.
func (set *Set) makeMembers() (fresh bool, err error) {
	fresh = true
	var names []string
	for _, m := range set.options.Members {
		names = append(names, m.Name)
	}
	for i, o := range set.options.Members {
		m := &Member{set: set, index: i, options: o, dir: filepath.Join(set.dir, o.Name)}
		if set.options.Record {
			m.truth = &recorder{names: names}
		}
		if err := os.MkdirAll(m.dir, 0o700); err != nil {
			return false, err
		}
		if info, err := os.Stat(m.journalPath()); err == nil && info.Size() > 0 {
			fresh = false
		}
		set.members = append(set.members, m)
	}
	return fresh, nil
}

// Members of the set, by place.
func (set *Set) Members() []*Member { return set.members }

// Member with this name; nil: there is none.
func (set *Set) Member(name string) *Member {
	for _, m := range set.members {
		if m.options.Name == name {
			return m
		}
	}
	return nil
}

// URI is a connection string with the set's name and these addresses, such as
// those of a proxy in front of it; without any, those of the configuration.
func (set *Set) URI(addrs ...string) string {
	if len(addrs) == 0 {
		for _, m := range set.config.members {
			addrs = append(addrs, m.host)
		}
	}
	return "mongodb://" + strings.Join(addrs, ",") + "/?replicaSet=" + set.config.name
}

// Addrs are where members listen, by place.
func (set *Set) Addrs() (addrs []string) {
	for _, m := range set.members {
		addrs = append(addrs, m.Addr())
	}
	return addrs
}

// Kill is a member's, by place.
func (set *Set) Kill(place int) error { return set.members[place].Kill() }

// Primary is the member that takes writes now; nil: there is none.
func (set *Set) Primary() *Member {
	for _, m := range set.members {
		if m.Status().Writable {
			return m
		}
	}
	return nil
}

// AwaitPrimary waits until a member takes writes.
func (set *Set) AwaitPrimary(ctx context.Context) (*Member, error) {
	for {
		if m := set.Primary(); m != nil {
			return m, nil
		}
		if err := sleep(ctx, 5*time.Millisecond, nil); err != nil {
			return nil, fmt.Errorf("no member of %s became primary: %w", set.config.name, err)
		}
	}
}

// Close stops all members and removes a temporary directory. It may be called
// more than once.
func (set *Set) Close() error {
	var errs []error
	for _, m := range set.members {
		errs = append(errs, m.Kill())
	}
	set.ports.Close()
	if set.ownDir {
		errs = append(errs, os.RemoveAll(set.dir))
	}
	return errors.Join(errs...)
}
