package page

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/wirewait/wirewait/internal/interop/rig"
)

// built is where the wirewait is that all tests run; empty: nobody asked.
var built string

var command = sync.OnceValues(func() (string, error) {
	var err error
	if built, err = os.MkdirTemp("", "wirewait-page-"); err != nil {
		return "", err
	}
	path := filepath.Join(built, "wirewait")
	build := exec.Command("go", "build", "-o", path, "./cmd/wirewait")
	build.Dir = "../../.."
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(code)
}

// running is a wirewait with the addresses that it printed.
type running struct {
	*rig.Process
	page, uri string
}

// start runs wirewait until the test's end. The address of the page is what it
// says to a person.
func start(t *testing.T, args ...string) *running {
	t.Helper()
	r := launch(t, args...)
	r.page = r.said(t, `(?m)^page: (http://\S+)$`)
	return r
}

// launch is start for one that may not come up.
func launch(t *testing.T, args ...string) *running {
	t.Helper()
	path, err := command()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "OTEL_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	return &running{Process: rig.StartProcess(t, cmd)}
}

// said waits for a line, and returns what its brackets match.
func (r *running) said(t *testing.T, line string) string {
	t.Helper()
	var found []string
	if !r.Until(func() bool { found = regexp.MustCompile(line).FindStringSubmatch(r.Log.String()); return found != nil }) {
		t.Fatalf("it never printed %s:\n%s", line, r.Log.String())
	}
	return found[1]
}

// startLab runs a replica set in three places, 160 and 92 ms from the primary.
func startLab(t *testing.T) *running {
	t.Helper()
	r := start(t, "lab", "mongodb", "--admin", "127.0.0.1:0")
	r.uri = r.said(t, `(?m)^through wirewait\s+(mongodb://\S+)$`)
	return r
}

// concerns are what a set is written to with, each by a client of its own. A
// name is as the page has it.
var concerns = []struct {
	name, app, operation string
	concern              *writeconcern.WriteConcern
	pause                time.Duration
}{
	{"w:1", "clicks", "insert", writeconcern.W1(), 40 * time.Millisecond},
	{"w:1 j", "cart", "update", &writeconcern.WriteConcern{W: 1, Journal: new(true)}, 60 * time.Millisecond},
	{"majority", "orders-api", "insert", writeconcern.Majority(), 10 * time.Millisecond},
	{"w:3", "ledger", "insert", &writeconcern.WriteConcern{W: 3}, 10 * time.Millisecond},
}

// write writes to the set until stop is called, or the test ends.
func write(t *testing.T, uri string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for _, c := range concerns {
		client, err := mongo.Connect(options.Client().ApplyURI(uri).SetAppName(c.app).SetRetryWrites(true))
		if err != nil {
			t.Fatal(err)
		}
		to := client.Database("shop").Collection(strings.TrimSuffix(c.app, "-api"), options.Collection().SetWriteConcern(c.concern))
		writers.Go(func() {
			defer client.Disconnect(context.WithoutCancel(ctx))
			for n := 0; ctx.Err() == nil; n++ {
				var err error
				if c.operation == "update" {
					_, err = to.UpdateOne(ctx, bson.D{{Key: "_id", Value: n % 10}}, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}, options.UpdateOne().SetUpsert(true))
				} else {
					_, err = to.InsertOne(ctx, bson.D{{Key: "item", Value: "book"}})
				}
				if err != nil && ctx.Err() == nil {
					t.Errorf("%s: %v", c.name, err)
					return
				}
				select {
				case <-ctx.Done():
				case <-time.After(c.pause):
				}
			}
		})
	}
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); writers.Wait() }) }
	t.Cleanup(stop)
	return stop
}

// v1 asks what the page is held against.
func (r *running) v1(t *testing.T, method, path, body string, to any) {
	t.Helper()
	req, err := http.NewRequest(method, strings.TrimSuffix(r.page, "/")+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %d, %v: %s", method, path, resp.StatusCode, err, answer)
	}
	if to == nil {
		return
	}
	if err := json.Unmarshal(answer, to); err != nil {
		t.Fatal(err)
	}
}
