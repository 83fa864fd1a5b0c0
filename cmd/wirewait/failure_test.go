//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/wirewait/wirewait/internal/lab"
)

// hanging accepts connections and never answers.
func hanging(t *testing.T) string {
	t.Helper()
	addr, _ := silent(t)
	return addr
}

// nobody is an address that refuses.
func nobody(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// insertMany has eight clients insert at once, and fails the test if one fails.
func insertMany(t *testing.T, uri string, each int) {
	t.Helper()
	withMongo(t, uri, func(c *mongo.Client) {
		orders := c.Database("shop").Collection("orders")
		var all sync.WaitGroup
		for w := range 8 {
			all.Go(func() {
				for i := range each {
					if _, err := orders.InsertOne(t.Context(), bson.D{{Key: "_id", Value: w*each + i}}); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		if n, err := orders.CountDocuments(t.Context(), bson.D{}); err != nil || n != int64(8*each) {
			t.Errorf("%d documents, %v; want %d", n, err, 8*each)
		}
	})
}

// TestRun_ExporterDownOrHanging: more writes than all queues hold go through,
// and the stop is clean.
func TestRun_ExporterDownOrHanging(t *testing.T) {
	for name, collector := range map[string]func(*testing.T) string{"down": nobody, "hanging": hanging} {
		for _, protocol := range []string{"grpc", "http/protobuf"} {
			t.Run(name+"/"+protocol, func(t *testing.T) {
				peer := startMongo(t)
				w := start(t, []string{
					"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + collector(t), "OTEL_EXPORTER_OTLP_PROTOCOL=" + protocol,
					"OTEL_BSP_SCHEDULE_DELAY=20", "OTEL_BSP_MAX_QUEUE_SIZE=64", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=16",
				}, "--listen", "127.0.0.1:0", "--upstream", peer.Addr(), "--rtt", "1ms")
				insertMany(t, peer.URI(w.addr()), 60)
				w.signal(syscall.SIGTERM)
				w.stopped()
				if strings.Contains(w.log(), "were cut") {
					t.Error(w.log())
				}
			})
		}
	}
}

// TestRun_NobodyTakesTheLog: with a full disk under the log and the spans, or
// with readers that are gone, traffic goes on and the stop is clean.
func TestRun_NobodyTakesTheLog(t *testing.T) {
	for name, open := range map[string]func(*testing.T) *os.File{"disk full": diskFull, "reader gone": readerGone} {
		t.Run(name, func(t *testing.T) {
			peer := startMongo(t)
			dir, err := os.MkdirTemp("", "ww") // short enough for a unix socket
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			socket := filepath.Join(dir, "w.sock") // known without a log
			cmd := exec.Command(os.Args[0], "run", "--admin", "off", "--log-level", "debug",
				"--listen", "unix:"+socket, "--upstream", peer.Addr())
			cmd.Env = append(os.Environ(), asWirewait+"=1", "OTEL_TRACES_EXPORTER=console")
			f := open(t)
			defer f.Close()
			cmd.Stdout, cmd.Stderr = f, f
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { cmd.Process.Kill() })
			insertMany(t, "mongodb://"+url.PathEscape(socket)+"/?directConnection=true", 20)
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

func diskFull(t *testing.T) *os.File {
	t.Helper()
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no /dev/full")
	}
	return f
}

func readerGone(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	return w
}

// underLoad has eight clients write, each until it fails, and stops wirewait in
// the middle. write makes the n-th write of a client and says whether it was
// acknowledged. It returns how many writes were, by client, and how each ended.
func underLoad(t *testing.T, w *started, client func(i int) (write func(n int) error)) (acknowledged [8]int, ends [8]error) {
	t.Helper()
	var total atomic.Int32
	loaded := make(chan struct{})
	var all sync.WaitGroup
	for i := range acknowledged {
		write := client(i)
		all.Go(func() {
			for n := 0; ends[i] == nil; n++ {
				if ends[i] = write(n); ends[i] == nil {
					acknowledged[i]++
					if total.Add(1) == 200 {
						close(loaded)
					}
				}
			}
		})
	}
	<-loaded
	w.signal(syscall.SIGTERM)
	all.Wait()
	w.stopped()
	for i, err := range ends {
		if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
			t.Errorf("client %d was not ended in good order: %v", i, err)
		}
	}
	if strings.Contains(w.log(), "were cut") {
		t.Errorf("something was lost:\n%s", w.log())
	}
	return acknowledged, ends
}

// TestRun_SIGTERMUnderLoad: what a client saw acknowledged is in the database, and
// nothing else. A request that comes in the moment in which its quiet connection is
// closed isn't passed on; its client sees the end.
func TestRun_SIGTERMUnderLoad(t *testing.T) {
	pg := startPostgres(t, lab.PostgresOptions{})
	direct := connectPostgres(t, pg.URL(pg.Addr()))
	if _, err := direct.Exec(t.Context(), "CREATE TABLE w (client int, n int)"); err != nil {
		t.Fatal(err)
	}
	w := start(t, nil, "--listen", "127.0.0.1:0", "--upstream", pg.Addr(), "--rtt", "4ms", "--jitter", "1ms", "--drain", "1m")
	acknowledged, _ := underLoad(t, w, func(i int) func(int) error {
		c := connectPostgres(t, pg.URL(w.addr()))
		return func(n int) error {
			_, err := c.Exec(t.Context(), "INSERT INTO w VALUES ($1, $2)", i, n)
			return err
		}
	})
	for i, n := range acknowledged {
		var got int
		if err := direct.QueryRow(t.Context(), "SELECT count(*) FROM w WHERE client = $1", i).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got != n {
			t.Errorf("client %d saw %d writes acknowledged, the server has %d", i, n, got)
		}
	}
}

func connectPostgres(t *testing.T, uri string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), uri)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// TestRun_SIGTERMUnderMongoLoad is the same with the MongoDB driver, whose
// monitors are connected as well. At the first end of a connection the driver
// drops its monitors' in the middle of a hello.
func TestRun_SIGTERMUnderMongoLoad(t *testing.T) {
	peer := startMongo(t)
	w := start(t, nil, "--listen", "127.0.0.1:0", "--upstream", peer.Addr(), "--rtt", "4ms", "--jitter", "1ms", "--drain", "1m")
	uri := peer.URI(w.addr()) + "&retryWrites=false&serverSelectionTimeoutMS=1000"
	acknowledged, _ := underLoad(t, w, func(i int) func(int) error {
		c, err := mongo.Connect(options.Client().ApplyURI(uri))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Disconnect(context.Background()) })
		writes := c.Database("d").Collection(fmt.Sprint("c", i))
		return func(n int) error {
			_, err := writes.InsertOne(t.Context(), bson.D{{Key: "_id", Value: n}})
			return err
		}
	})
	withMongo(t, peer.URI(peer.Addr()), func(c *mongo.Client) {
		for i, n := range acknowledged {
			got, err := c.Database("d").Collection(fmt.Sprint("c", i)).CountDocuments(t.Context(), bson.D{})
			if err != nil || got != int64(n) {
				t.Errorf("client %d saw %d writes acknowledged, the server has %d (%v)", i, n, got, err)
			}
		}
	})
}

// TestRun_SecondSIGTERMUnderLoad: at once, and no client takes what it has for
// a whole answer.
func TestRun_SecondSIGTERMUnderLoad(t *testing.T) {
	pg := startPostgres(t, lab.PostgresOptions{})
	w := start(t, nil, "--listen", "127.0.0.1:0", "--upstream", pg.Addr(), "--rtt", "4ms", "--drain", "10h")
	var ended sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		c := connectPostgres(t, pg.URL(w.addr()))
		ended.Go(func() { _, errs[i] = c.Exec(t.Context(), "SELECT pg_sleep(3600)") })
	}
	direct := connectPostgres(t, pg.URL(pg.Addr()))
	for n := 0; n < len(errs); time.Sleep(time.Millisecond) {
		if err := direct.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep%'").Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	w.signal(syscall.SIGTERM)
	w.line(`msg=stopping`)
	w.signal(syscall.SIGTERM)
	w.stopped()
	ended.Wait()
	for i, err := range errs {
		if err == nil {
			t.Errorf("client %d saw no failure", i)
		}
	}
	w.line(`4 connections were cut: a second terminated`)
}
