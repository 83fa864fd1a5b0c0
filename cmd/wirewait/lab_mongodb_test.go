package main

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	mongooptions "go.mongodb.org/mongo-driver/v2/mongo/options"
)

// runLabMongo runs the lab until its reader has seen all that it prints, works
// with the connection strings, and asks it to stop.
func runLabMongo(t *testing.T, args []string, work func(uris []string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read, write := io.Pipe()
	var errs bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"wirewait", "lab", "mongodb", "--admin", "127.0.0.1:0"}, args...), strings.NewReader(""), write, &errs)
		write.Close()
	}()
	text, buf := "", make([]byte, 4096)
	for !strings.Contains(text, "SIGINT") {
		n, err := read.Read(buf)
		if err != nil {
			t.Fatalf("it ended: %d, %s", <-ended, errs.String())
		}
		text += string(buf[:n])
	}
	go io.Copy(io.Discard, read)
	work(regexp.MustCompile(`mongodb://\S+`).FindAllString(text, -1))
	cancel()
	if code := <-ended; code != 0 {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}

func countOrders(t *testing.T, uri string, insert bool) int64 {
	t.Helper()
	client, err := mongo.Connect(mongooptions.Client().ApplyURI(uri))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Disconnect(context.Background())
	orders := client.Database("shop").Collection("orders")
	if insert {
		if _, err := orders.InsertOne(t.Context(), bson.D{}); err != nil {
			t.Fatal(err)
		}
	}
	n, err := orders.CountDocuments(t.Context(), bson.D{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The lab runs until it's asked to stop, and goes on from its files.
func TestLabMongo_RunsUntilItIsAskedToStop(t *testing.T) {
	args := []string{"--dir", t.TempDir(), "--members", "one", "--set", "here"}
	for want := range int64(2) {
		runLabMongo(t, args, func(uris []string) {
			if len(uris) != 2 || !strings.Contains(uris[0], "replicaSet=here") {
				t.Fatalf("connection strings %q, want the set's and the member's", uris)
			}
			if n := countOrders(t, uris[0], true); n != want+1 {
				t.Errorf("run %d has %d documents", want, n)
			}
		})
	}
	runLabMongo(t, []string{"--members", "a,b,c", "--apply-delay", "c=1h", "--delayed", "b=1h"}, func(uris []string) {
		if len(uris) != 4 {
			t.Fatalf("connection strings %q, want four", uris)
		}
		uri := uris[0] + "&w=1"
		if n := countOrders(t, uri, true); n != 1 {
			t.Errorf("%d documents on the primary", n)
		}
		if n := countOrders(t, uris[3], false); n != 0 {
			t.Errorf("%d documents on a member that applies nothing", n)
		}
	})
}

func TestLabMongo_BadUsage(t *testing.T) {
	for _, args := range [][]string{
		{"now"}, {"--members", "a,a"}, {"--members", ""}, {"--write-delay", "b"}, {"--write-delay", "x=1ms"},
		{"--apply-delay", "b=fast"}, {"--delayed", "b=1500ms"}, {"--rtt", "a-x=1ms"}, {"--rtt", "a=1ms"}, {"--admin", "here"},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"wirewait", "lab", "mongodb"}, args...), strings.NewReader(""), &out, &errs)
		if code != exitUsage || !strings.Contains(errs.String(), "wirewait lab mongodb") {
			t.Errorf("%q: exit %d, %q; want %d and the command's name", args, code, errs.String(), exitUsage)
		}
	}
}
