//go:build unix

package lab

import (
	"context"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/wirewait/wirewait/internal/lab/mongod"
)

var _ = []MongoMembers{(*MongodSet)(nil), (*mongod.Set)(nil)}

func reserve(t *testing.T) *mongod.Ports {
	t.Helper()
	p, err := mongod.ReservePorts(3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// What servers are started with: an address of this machine only, no socket in a
// shared place, and members by the addresses that they are to be reached at.
func TestMongodSet_CommandLineAndConfiguration(t *testing.T) {
	ports := reserve(t)
	s := &MongodSet{dir: t.TempDir(), options: MongodSetOptions{
		Ports: ports, Hosts: []string{"proxy:1", "proxy:2", "proxy:3"},
		Tags: []map[string]string{{"dc": "east"}, {"dc": "east"}, {"dc": "west"}}, Modes: map[string]map[string]int{"both": {"dc": 2}},
	}}
	_, port, _ := net.SplitHostPort(ports.Addr(1))
	line := strings.Join(s.arguments(1), " ") + " "
	for _, want := range []string{"--replSet rs0 ", "--bind_ip 127.0.0.1 ", "--port " + port + " ", "--nounixsocket ", "--dbpath " + s.files(1) + " "} {
		if !strings.Contains(line, want) {
			t.Errorf("no %q in %q", want, line)
		}
	}
	var c struct {
		ID      string `bson:"_id"`
		Members []struct {
			ID       int `bson:"_id"`
			Host     string
			Priority float64
			Tags     map[string]string
		}
		Settings struct {
			Modes map[string]map[string]int `bson:"getLastErrorModes"`
		}
	}
	doc, err := bson.Marshal(s.configuration())
	if err == nil {
		err = bson.Unmarshal(doc, &c)
	}
	if err != nil || c.ID != "rs0" || len(c.Members) != 3 || c.Members[2].ID != 2 || c.Members[2].Host != "proxy:3" ||
		c.Members[0].Priority <= c.Members[1].Priority || c.Members[2].Tags["dc"] != "west" || c.Settings.Modes["both"]["dc"] != 2 {
		t.Errorf("configuration %+v, %v", c, err)
	}
	if uri := s.URI(); uri != "mongodb://proxy:1,proxy:2,proxy:3/?replicaSet=rs0" || !slices.Equal(s.Addrs(), []string{ports.Addr(0), ports.Addr(1), ports.Addr(2)}) {
		t.Errorf("URI %s, addresses %v", uri, s.Addrs())
	}
}

// A program that isn't there, and one that is no server: the error says what to do,
// and nothing is left.
func TestMongodSet_ProgramsThatAreNone(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for program, want := range map[string]string{"no-such-mongod": "install MongoDB", "false": "mongod ended at its start"} {
		set, err := StartMongodSet(ctx, MongodSetOptions{Program: program, Ports: reserve(t)})
		if err == nil || !strings.Contains(err.Error(), want) || set != nil {
			t.Errorf("%s: %v, want %q", program, err, want)
		}
	}
	left, err := os.ReadDir(os.TempDir())
	if err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
