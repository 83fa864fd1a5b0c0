// The command go-mongodb does what people do with the Go driver, on an empty
// database: go-mongodb URI [FLAG,...]
//
// It prints what it got, and nothing that differs from run to run; at the end
// how often it sent each command. --version prints what it is made of. Flags add
// what only some servers have: w0 (writes without a reply), timeout (collection
// "slow" answers late), transaction, tail (a capped collection), watch, stepdown
// (writes while a replica set changes its primary).
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"runtime/debug"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// sent counts the commands that the driver says it sent.
var sent struct {
	mu    sync.Mutex
	count map[string]int
}

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		log.Fatal("usage: go-mongodb URI [FLAG,...]")
	}
	if os.Args[1] == "--version" {
		info, _ := debug.ReadBuildInfo()
		for _, m := range info.Deps {
			if m.Path == "go.mongodb.org/mongo-driver/v2" {
				fmt.Println(m.Path, strings.TrimPrefix(m.Version, "v"))
			}
		}
		return
	}
	flags := ""
	if len(os.Args) > 2 {
		flags = os.Args[2]
	}
	if err := run(os.Args[1], flags); err != nil {
		log.Fatal(err)
	}
}

func run(uri, flags string) error {
	sent.count = map[string]int{}
	monitor := &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		sent.mu.Lock()
		defer sent.mu.Unlock()
		sent.count[e.CommandName]++
	}}
	client, err := mongo.Connect(options.Client().ApplyURI(uri).SetMonitor(monitor))
	if err != nil {
		return err
	}
	c := client.Database("shop").Collection("orders")
	inserts(c)
	changes(c)
	reads(c)
	for f := range strings.SplitSeq(flags, ",") {
		if f != "" {
			extra[f](c)
		}
	}
	big(c)
	schema(c)
	if err := client.Disconnect(context.Background()); err != nil {
		return err
	}
	counts, err := json.Marshal(sent.count)
	fmt.Printf("sent %s\n", counts)
	return err
}

// step prints what an act gave. What is neither an answer nor a server's error
// ends the program.
func step(name string, act func(context.Context) (any, error)) {
	v, err := act(context.Background())
	var said []byte
	var se mongo.ServerError
	switch {
	case err == nil:
		said, err = bson.MarshalExtJSON(bson.M{"v": v}, false, false)
	case errors.As(err, &se), mongo.IsTimeout(err):
		text := err.Error()
		if mongo.IsTimeout(err) {
			text = "timeout" // its text says how long it took
		}
		said, err = json.Marshal([]any{fmt.Sprintf("%T", err), text})
	}
	if err != nil {
		log.Fatalf("%s: %v", name, err)
	}
	fmt.Printf("%s: %s\n", name, said)
}

func d(pairs ...any) bson.D {
	doc := bson.D{}
	for i := 0; i < len(pairs); i += 2 {
		doc = append(doc, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
	}
	return doc
}
