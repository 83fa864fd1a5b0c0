package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/wirewait/wirewait/internal/lab/mongod"
)

// MongoMembers is a replica set of either kind: one of package mongod's in this
// process, or real ones.
type MongoMembers interface {
	// Addrs are where its members listen, by place.
	Addrs() []string
	// URI is a connection string with its name and these addresses, or its own.
	URI(addrs ...string) string
	// Kill ends a member as kill -9 does.
	Kill(place int) error
	// Close ends all and removes their files.
	Close() error
}

// MongodSet is a replica set of real servers: processes of the program mongod.
type MongodSet struct {
	options MongodSetOptions
	dir     string
	members []*process
}

// MongodSetOptions say what it is like.
type MongodSetOptions struct {
	// Program is mongod: a path, or a name on PATH.
	Program string
	// Ports are where members listen, one each. The set closes them.
	Ports *mongod.Ports
	// Hosts are members' addresses in the configuration, such as those of links in
	// front of them; nil: where they listen.
	Hosts []string
	// Tags of each member, and the write concerns that have names of their own;
	// nil: none.
	Tags  []map[string]string
	Modes map[string]map[string]int
}

// mongodSetName is that of all such sets.
const mongodSetName = "rs0"

// StartMongodSet starts the servers, makes them a replica set, and returns when
// the first is primary and the others follow it. The context bounds the start
// alone.
//
// It has not been run: there was no mongod where it was written. What it sends and
// expects is as MongoDB's manual and source have it.
func StartMongodSet(ctx context.Context, o MongodSetOptions) (*MongodSet, error) {
	program, err := exec.LookPath(o.Program)
	if err != nil {
		o.Ports.Close()
		return nil, fmt.Errorf("no mongod: install MongoDB 8.0 (https://www.mongodb.com/docs/manual/installation/) and have it on PATH: %w", err)
	}
	o.Program = program
	set := &MongodSet{options: o}
	if set.dir, err = os.MkdirTemp("", "wirewait-mongod-"); err == nil {
		err = set.start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, set.Close())
	}
	return set, nil
}

func (s *MongodSet) start(ctx context.Context) error {
	for i := range s.options.Ports.Len() {
		cmd := exec.Command(s.options.Program, s.arguments(i)...)
		cmd.SysProcAttr = processAttr(account{})
		if err := os.Mkdir(s.files(i), 0o700); err != nil {
			return err
		}
		p, err := spawn(cmd)
		if err != nil {
			return fmt.Errorf("start mongod: %w", err)
		}
		s.members = append(s.members, p)
	}
	for i := range s.members {
		if err := s.await(ctx, i, bson.D{{Key: "ping", Value: 1}}, func(bson.Raw) bool { return true }); err != nil {
			return err
		}
	}
	initiate := bson.D{{Key: "replSetInitiate", Value: s.configuration()}}
	if err := s.run(ctx, 0, initiate).Err(); err != nil {
		return fmt.Errorf("replSetInitiate: %w", err)
	}
	for i := range s.members {
		field := "secondary"
		if i == 0 {
			field = "isWritablePrimary"
		}
		ready := func(hello bson.Raw) bool {
			is, ok := hello.Lookup(field).BooleanOK()
			return ok && is
		}
		if err := s.await(ctx, i, bson.D{{Key: "hello", Value: 1}}, ready); err != nil {
			return err
		}
	}
	return nil
}

func (s *MongodSet) files(i int) string { return filepath.Join(s.dir, fmt.Sprint(i)) }

func (s *MongodSet) log(i int) string { return s.files(i) + ".log" }

// arguments are a member's command line
// (https://www.mongodb.com/docs/manual/reference/program/mongod/). With
// enableTestCommands members say in hostInfo who they are
// (src/mongo/client/async_client.cpp); otherwise all that dial from this machine
// are told apart by their heartbeats only.
func (s *MongodSet) arguments(i int) []string {
	_, port, _ := net.SplitHostPort(s.options.Ports.Addr(i))
	return []string{
		"--replSet", mongodSetName, "--bind_ip", "127.0.0.1", "--port", port, "--nounixsocket",
		"--dbpath", s.files(i), "--logpath", s.log(i), "--wiredTigerCacheSizeGB", "0.25",
		"--setParameter", "enableTestCommands=1",
	}
}

// configuration is what replSetInitiate is given
// (https://www.mongodb.com/docs/manual/reference/replica-configuration/). The
// first member is preferred as primary.
func (s *MongodSet) configuration() bson.D {
	members := bson.A{}
	for i, host := range s.hosts() {
		priority := 1
		if i == 0 {
			priority = 2
		}
		m := bson.D{{Key: "_id", Value: i}, {Key: "host", Value: host}, {Key: "priority", Value: priority}}
		if s.options.Tags != nil {
			m = append(m, bson.E{Key: "tags", Value: s.options.Tags[i]})
		}
		members = append(members, m)
	}
	c := bson.D{{Key: "_id", Value: mongodSetName}, {Key: "members", Value: members}}
	if s.options.Modes != nil {
		c = append(c, bson.E{Key: "settings", Value: bson.D{{Key: "getLastErrorModes", Value: s.options.Modes}}})
	}
	return c
}

func (s *MongodSet) hosts() []string {
	if s.options.Hosts != nil {
		return s.options.Hosts
	}
	return s.Addrs()
}

// await asks a member again and again until the answer is as it should be.
func (s *MongodSet) await(ctx context.Context, i int, command bson.D, ready func(bson.Raw) bool) error {
	for {
		reply, err := s.run(ctx, i, command).Raw()
		if err == nil && ready(reply) {
			return nil
		}
		select {
		case <-s.members[i].done:
			return fmt.Errorf("mongod ended at its start (%v): %s", s.members[i].err, s.lastWords(i))
		default:
		}
		if pause(ctx, 50*time.Millisecond) != nil {
			return fmt.Errorf("wait for mongod (%s): %w, %w: %s", command[0].Key, context.Cause(ctx), err, s.lastWords(i))
		}
	}
}

// run has one member run a command.
func (s *MongodSet) run(ctx context.Context, i int, command bson.D) *mongo.SingleResult {
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + s.options.Ports.Addr(i) + "/?directConnection=true").
		SetServerSelectionTimeout(time.Second))
	if err != nil {
		return mongo.NewSingleResultFromDocument(bson.D{}, err, nil)
	}
	defer func() { _ = client.Disconnect(context.WithoutCancel(ctx)) }()
	return client.Database("admin").RunCommand(ctx, command)
}

// lastWords are the end of a member's log.
func (s *MongodSet) lastWords(i int) string {
	const most = 2000
	b, err := os.ReadFile(s.log(i))
	if err != nil {
		return "it wrote no log"
	}
	return strings.TrimSpace(string(b[max(len(b)-most, 0):]))
}

// Addrs implements MongoMembers.
func (s *MongodSet) Addrs() (addrs []string) {
	for i := range s.options.Ports.Len() {
		addrs = append(addrs, s.options.Ports.Addr(i))
	}
	return addrs
}

// URI implements MongoMembers.
func (s *MongodSet) URI(addrs ...string) string {
	if len(addrs) == 0 {
		addrs = s.hosts()
	}
	return "mongodb://" + strings.Join(addrs, ",") + "/?replicaSet=" + mongodSetName
}

// Kill implements MongoMembers.
func (s *MongodSet) Kill(place int) error {
	p := s.members[place]
	p.kill()
	if !p.wait(immediateStop) {
		return fmt.Errorf("mongod (pid %d) can't be killed", p.pid())
	}
	return nil
}

// Close implements MongoMembers. It may be called more than once.
func (s *MongodSet) Close() error {
	for _, p := range s.members {
		p.signal(syscall.SIGTERM)
	}
	var errs []error
	for i, p := range s.members {
		if !p.wait(fastStop) {
			errs = append(errs, s.Kill(i))
		}
	}
	s.options.Ports.Close()
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}
