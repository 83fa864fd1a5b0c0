package main

import (
	"context"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wirewait/wirewait/internal/lab/mongod"
)

// A replica set's URI opens a link to each member and says what to connect to;
// whoever does stays on the links, and its writes are traced.
func TestRun_ReplicaSetByItsURI(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	set, err := mongod.StartSet(ctx, mongod.SetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	uri := strings.Replace(set.URI(), "mongodb://", "mongodb://user:secret@", 1) + "&retryWrites=false"
	s := start(t, []string{"OTEL_TRACES_EXPORTER=console"}, "--upstream", uri, "--listen", "127.0.0.1:0")
	to := s.line(`^connect to: (mongodb://\S+)`)[1]
	if !regexp.MustCompile(`^mongodb://127\.0\.0\.1:\d+,127\.0\.0\.1:\d+,127\.0\.0\.1:\d+/\?replicaSet=rs0&retryWrites=false$`).MatchString(to) {
		t.Errorf("it says to connect to %s", to)
	}
	insertMany(t, to, 20)
	s.signal(syscall.SIGTERM)
	s.stopped()
	if n := strings.Count(s.stdout.String(), `"Name":"insert orders"`); n != 8*20 {
		t.Errorf("%d inserts were traced, of %d", n, 8*20)
	}
}
