package cluster

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/internal/lab/mongod"
	"github.com/wirewait/wirewait/internal/study"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

func TestReleased(t *testing.T) {
	r := Released{"b": 3, "tie": 2}
	if r.String() != "b 3, tie 2" || r.Most() != "b" {
		t.Errorf("%s, most by %q", r, r.Most())
	}
	if most := (Released{"b": 2, "c": 2}).Most(); most != "" {
		t.Errorf("%q released more than half of two and two", most)
	}
	if r := Released(nil); r.String() != "" || r.Most() != "" {
		t.Errorf("nobody's: %q, %q", r, r.Most())
	}
}

func TestVoters_Majority(t *testing.T) {
	s := time.Second
	for _, c := range []struct {
		votes  int
		delays map[string]time.Duration
		want   time.Duration
		ok     bool
	}{
		{1, nil, 0, true},
		{3, map[string]time.Duration{"b": 0, "c": 5 * s}, 0, true},
		{3, map[string]time.Duration{"c": 5 * s}, 5 * s, true},
		{3, nil, 0, false},
		{5, map[string]time.Duration{"b": 0, "c": s, "d": 2 * s}, s, true},
		{4, map[string]time.Duration{"b": 0}, 0, false}, // majority of four is three
	} {
		v := &Voters{Votes: c.votes, Delays: c.delays}
		if got, ok := v.Majority(); got != c.want || ok != c.ok {
			t.Errorf("%d votes, %v: %v, %v; want %v, %v", c.votes, c.delays, got, ok, c.want, c.ok)
		}
	}
}

// finished is a write from somewhere that waited for w.
func finished(from, collection, w, by, basis string) *trace.Finished {
	x := &wire.Exchange{Protocol: wire.MongoDB, Write: true, OK: true, Answered: true}
	x.Collection = collection
	x.Mongo.WriteConcern = wire.WriteConcern{W: w, Source: "command"}
	return &trace.Finished{Exchange: x, Conn: &trace.Conn{From: from}, Replication: trace.Replication{ReleasedBy: by, Basis: basis}}
}

func TestJudge_CountsTheApplicationsWritesOnly(t *testing.T) {
	var j judge
	for _, f := range []*trace.Finished{
		finished(app, Collection, "majority", "rs0.b", trace.BasisExact),
		finished(app, Collection, "majority", "", trace.BasisTie),
		finished(app, Collection, "1", "", trace.BasisNotWaited),
		finished(app, "others", "1", "", trace.BasisNotWaited),
		finished("rs0.b", Collection, "1", "", trace.BasisNotWaited),
	} {
		j.Consume(f)
	}
	got, err := j.take(t.Context(), 3)
	if err != nil || got["majority"].String() != "b 1, tie 1" || got["1"].String() != "nobody 1" {
		t.Errorf("%v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := j.take(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("what was taken is still there: %v", err)
	}
}

func TestStartMongo_ShowsNoPassword(t *testing.T) {
	for _, uri := range []string{"mongodb://me:%zzsecret@a", "me:secret@a", "mongodb://me:secret/more@a:1/"} {
		r := &study.Run{URI: uri, Stdout: io.Discard, Stderr: io.Discard}
		if _, err := StartMongo(t.Context(), r, nil, mongod.Engine{}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

func TestStartPostgres_TakesItsOwnURIsOnly(t *testing.T) {
	for _, uri := range []string{
		"mongodb://u:planted4711@127.0.0.1:1/?a=b", // which pgx reads as keywords, and dials the machine's own server
		"mongodb://u:planted4711", "postgres://u:planted4711@h:x/d", "postgres://u:planted4711@[::1/d", "host=h port=x password=planted4711", "planted4711",
	} {
		_, err := StartPostgres(t.Context(), &study.Run{URI: uri, Stderr: io.Discard}, nil, nil)
		if err == nil || !strings.Contains(err.Error(), "write postgres://") || strings.Contains(err.Error(), "planted4711") {
			t.Errorf("%s: %v", uri, err)
		}
	}
	for _, uri := range []string{"postgresql://u@127.0.0.1:1/d", "host=127.0.0.1 port=1 password=a://b"} {
		_, err := StartPostgres(t.Context(), &study.Run{URI: uri, Stderr: io.Discard}, nil, nil)
		if err == nil || !strings.Contains(err.Error(), "connect to the primary") {
			t.Errorf("%s: %v", uri, err)
		}
	}
}
