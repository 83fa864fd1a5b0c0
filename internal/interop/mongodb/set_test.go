package mongodb

import (
	"context"
	"regexp"
	"testing"
	"time"

	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/internal/lab/mongod"
	"github.com/wirewait/wirewait/internal/testenv"
)

// labSet is the replica set of internal/lab. Clients are told of one member, or of
// the link to it, and find the others by its hello. Its first member is primary
// until they have it step down.
var labSet = server{
	name: "the replica set", version: func(*testing.T) string { return "of internal/lab" },
	query: "replicaSet=rs0&retryWrites=true&heartbeatFrequencyMS=500", flags: "w0,stepdown", streams: true,
	members: func(t *testing.T) []string {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		set, err := lab.StartMongoSet(ctx, lab.MongoSetOptions{NoCompression: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if p := set.Primary(); !t.Failed() && (p == nil || p == set.Members()[0]) {
				t.Error("the first primary is it still")
			}
			if err := set.Close(); err != nil {
				t.Error(err)
			}
		})
		var addrs []string
		for _, m := range set.Members() {
			addrs = append(addrs, m.Addr())
		}
		return addrs
	},
}

// TestMongodSet is the matrix's last column on three servers that are MongoDB's own.
// What comes of it is on no page: none was there when that was written.
func TestMongodSet(t *testing.T) {
	program := testenv.Mongod(t)
	s := server{
		name: "mongod", query: labSet.query, flags: labSet.flags + ",transaction,tail,watch", streams: true,
		members: func(t *testing.T) []string {
			ports, err := mongod.ReservePorts(3)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			set, err := lab.StartMongodSet(ctx, lab.MongodSetOptions{Program: program, Ports: ports})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := set.Close(); err != nil {
					t.Error(err)
				}
			})
			return set.Addrs()
		},
	}
	for _, c := range clients {
		t.Run(c.dir, func(t *testing.T) { new(result).run(t, c, s) })
	}
}

// run runs an empty server, or set, until the test's end and returns its addresses.
func (s *server) run(t *testing.T) []string {
	if s.members != nil {
		return s.members(t)
	}
	return []string{s.start(t)}
}

// moved is what clients print of a step-down: errors are printed as lists.
var moved = regexp.MustCompile(`(?m)^step down: [^\[\n].*\n^writes: .*\b40\b.*\n^written once: .*\b40\b`)

// unsettled are lines that differ from run to run on a replica set: concerns with a
// time-out, and how often commands were sent, some of them again.
var unsettled = regexp.MustCompile(`(?m)^(concern [45]:|sent ).*\n`)

// settled is the part of what a client printed that doesn't differ.
func (s *server) settled(printed string) string {
	if s.members == nil {
		return printed
	}
	return unsettled.ReplaceAllString(printed, "")
}
