package mongodb

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/FerretDB/FerretDB/ferretdb"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

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
	// compresses: of the 15 MB reply, and of the insert where its document comes
	// before the rest of the command, only the first 256 KiB are read.
	compresses bool
	// streams: its hello has a topologyVersion, so that drivers' monitors let it
	// answer again and again.
	streams bool
	// answersAll: it answers requests that want no reply.
	answersAll bool
}

var (
	ferretDB = server{name: "FerretDB", start: startFerret, version: ferretVersion, answersAll: true}
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

// startFerret: SQLite in files that are never synced, not in memory, where an
// update of many documents waits for its own cursor
// (internal/backends/sqlite/metadata/pool/opendb.go allows one connection).
func startFerret(t *testing.T) string {
	t.Helper()
	f, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: "127.0.0.1:0"},
		Logger:    slog.New(slog.DiscardHandler),
		Handler:   "sqlite",
		SQLiteURL: "file:" + t.TempDir() + "/?_pragma=synchronous(off)",
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(f.MongoDBURI())
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// startSecantus runs its server process. It must be told a port; one that was
// free is, and if somebody else took it meanwhile, another.
func startSecantus(t *testing.T) string {
	t.Helper()
	dir := clientDir(t, "secantusdb")
	for range 5 {
		addr := freeAddr(t)
		_, port, _ := net.SplitHostPort(addr)
		var said bytes.Buffer
		cmd := exec.Command(filepath.Join(dir, "bin", "secantusd-py"), "--host", "127.0.0.1", "--port", port,
			"--storage-path", t.TempDir(), "--log-level", "ERROR")
		cmd.Dir = t.TempDir()
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			_ = cmd.Wait()
			close(ended)
		}()
		if answers(addr, ended) {
			t.Cleanup(func() {
				_ = cmd.Process.Signal(os.Interrupt)
				select {
				case <-ended:
				case <-time.After(20 * time.Second):
					_ = cmd.Process.Kill()
					<-ended
				}
			})
			return addr
		}
		_ = cmd.Process.Kill()
		<-ended
		t.Logf("SecantusDB did not start on %s: %s", addr, said.String())
	}
	t.Fatal("SecantusDB did not start")
	return ""
}

// freeAddr is a free port below the range from which systems take the ports of
// outgoing connections.
func freeAddr(t *testing.T) string {
	t.Helper()
	for port := 20_000 + os.Getpid()%5000; port < 32_000; port++ {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
	t.Fatal("no free port")
	return ""
}

// answers waits until a server answers a ping; false if it ended first or takes
// more than a minute.
func answers(addr string, ended <-chan struct{}) bool {
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + addr + "/?directConnection=true"))
	if err != nil {
		return false
	}
	defer client.Disconnect(context.Background())
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	go func() {
		select {
		case <-ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	for ctx.Err() == nil {
		if client.Database("admin").RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}).Err() == nil {
			return true
		}
	}
	return false
}
