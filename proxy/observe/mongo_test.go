package observe_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wirewait/wirewait/internal/lab/mongod"
	"github.com/wirewait/wirewait/proxy/observe"
	"github.com/wirewait/wirewait/trace"
)

func startSet(t *testing.T, o mongod.SetOptions) *mongod.Set {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	set, err := mongod.StartSet(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	return set
}

// locked is a buffer that a log writes and a test reads.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestWatch_FindsMembersAndDefaults(t *testing.T) {
	set := startSet(t, mongod.SetOptions{Members: []mongod.MemberOptions{{}, {NoVote: true, Tags: map[string]string{"dc": "east"}}, {}}})
	ctx, cancel := context.WithCancel(t.Context())
	found := make(chan *trace.ReplicaSet, 10)
	done := make(chan error)
	o := &observe.Set{
		Name: "rs0", URI: "mongodb://" + set.Member("b").Addr() + "/?replicaSet=other", Every: 20 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
		Members: []observe.Member{ // the second by its address, the third by its id
			{Name: "rs0.second", ID: 7, Hosts: []string{"x:1", strings.ToUpper(set.Member("b").Host())}}, {Name: "rs0.third", ID: 2},
		},
	}
	go func() { done <- o.Watch(ctx, func(s *trace.ReplicaSet) { found <- s }) }()
	var s *trace.ReplicaSet
	select {
	case s = <-found:
	case err := <-done:
		t.Fatal(err)
	case <-time.After(time.Minute):
		t.Fatal("nothing was found within a minute")
	}
	got := fmt.Sprint(s.Members)
	want := fmt.Sprint([]trace.SetMember{{Name: "rs0.0", Votes: 1}, {Name: "rs0.second", ID: 1, Tags: map[string]string{"dc": "east"}}, {Name: "rs0.third", ID: 2, Votes: 1}})
	if got != want {
		t.Errorf("members %s, want %s", got, want)
	}
	if !s.Observed || s.Version == 0 || s.DefaultW != "majority" || s.DefaultJ != "" || s.MajorityWritten {
		t.Errorf("%+v", *s)
	}
	time.Sleep(200 * time.Millisecond) // ten more questions, one answer
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := len(found); n > 0 {
		t.Errorf("told %d times more of what hasn't changed", n)
	}
}

// A member that can't be asked is logged once, without the password.
func TestWatch_SaysOnceThatItCannotAsk(t *testing.T) {
	var log locked
	alone, err := mongod.Start(mongod.Options{}) // which is no replica set
	if err != nil {
		t.Fatal(err)
	}
	defer alone.Stop()
	ctx, cancel := context.WithCancel(t.Context())
	o := &observe.Set{Name: "rs0", URI: "mongodb://" + alone.Addr() + "/", Every: 5 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil))}
	done := make(chan error)
	go func() { done <- o.Watch(ctx, func(s *trace.ReplicaSet) { t.Errorf("found %+v", s) }) }()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(log.String(), "can't ask"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing was logged within a minute")
		}
	}
	time.Sleep(100 * time.Millisecond)
	cancel()
	<-done
	if n := strings.Count(log.String(), "can't ask"); n != 1 || !strings.Contains(log.String(), "replSetGetConfig") {
		t.Errorf("logged %d times: %s", n, log.String())
	}
}

func TestWatch_RefusesWhatIsNoURI(t *testing.T) {
	o := &observe.Set{Name: "rs0", URI: "mongodb://u:hunter2@h:99999/", Log: slog.New(slog.DiscardHandler)}
	err := o.Watch(t.Context(), func(*trace.ReplicaSet) {})
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "cluster rs0") {
		t.Errorf("%v", err)
	}
}
