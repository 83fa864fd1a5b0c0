package mongodb

import (
	"context"
	"net"
	"os/exec"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/wirewait/wirewait/internal/interop/ferret"
	"github.com/wirewait/wirewait/internal/interop/rig"
	"github.com/wirewait/wirewait/internal/lab"
)

// server is something that speaks MongoDB's protocol.
type server struct {
	name string
	// start runs an empty one until the test's end and returns its address.
	start   func(t *testing.T) string
	version func(t *testing.T) string
	// query goes into clients' connection strings. directConnection: a set's
	// member names itself in hello, and drivers would leave the proxy for it.
	query string
	flags string // what it can do beyond the usual
	// compresses: the 15 MB reply, and the insert where its document comes before
	// the rest of the command, are not read to their end.
	compresses bool
	// streams: its hello has a topologyVersion, so that drivers' monitors let it
	// answer again and again.
	streams bool
	// answersAll: it answers requests that want no reply.
	answersAll bool
	// members, instead of start, starts a replica set and returns its members'
	// addresses. How long what clients do there takes, and how often, differs.
	members func(t *testing.T) []string
}

var (
	ferretDB = server{name: "FerretDB", start: ferret.Start, version: ferretVersion, answersAll: true}
	secantus = server{name: "SecantusDB", start: startSecantus, version: secantusVersion,
		query: "directConnection=true", flags: "w0,transaction,tail,watch"}
)

// plain is a server with nothing special about it.
var plain = server{}

// peer is the scripted one with a compressor.
func peer(compressor string) server {
	return server{
		name: "the scripted peer, " + compressor,
		start: func(t *testing.T) string {
			m, err := lab.StartMongo(lab.MongoOptions{
				Compressors: []string{compressor}, SetName: "rs0", ServerDelay: slowly, StreamHello: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(m.Stop)
			return m.Addr()
		},
		version: func(*testing.T) string { return "of internal/lab" },
		query:   "directConnection=true&heartbeatFrequencyMS=500&compressors=" + compressor,
		flags:   "w0,timeout", compresses: true, streams: true,
	}
}

// late is how long the peer thinks about a read of the collection "slow":
// more than twice what clients wait.
const late = 1500 * time.Millisecond

func slowly(c lab.MongoCommand) time.Duration {
	if c.Collection == "slow" {
		return late
	}
	return 0
}

// startSecantus runs its server process. It must be told a port; one that was
// free is, and if somebody else took it meanwhile, another.
func startSecantus(t *testing.T) string {
	t.Helper()
	program := rig.Installed(t, "secantusdb", "bin/secantusd-py")
	for range 5 {
		addr := rig.FreeAddr(t)
		_, port, _ := net.SplitHostPort(addr)
		cmd := exec.Command(program, "--host", "127.0.0.1", "--port", port, "--storage-path", t.TempDir(), "--log-level", "ERROR")
		cmd.Dir = t.TempDir()
		p := rig.StartProcess(t, cmd)
		if answers(addr, p) {
			return addr
		}
		p.Stop()
		t.Logf("SecantusDB did not start on %s: %s", addr, p.Log.String())
	}
	t.Fatal("SecantusDB did not start")
	return ""
}

// answers waits until a server answers a ping; false if it ended first or takes
// more than a minute.
func answers(addr string, p *rig.Process) bool {
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + addr + "/?directConnection=true"))
	if err != nil {
		return false
	}
	defer client.Disconnect(context.Background())
	return p.Until(func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		return client.Database("admin").RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}).Err() == nil
	})
}
