package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/internal/otlprecv"
	"github.com/wirewait/wirewait/internal/study"
)

func TestMain(m *testing.M) {
	if otlprecv.Requested() {
		otlprecv.Main()
	}
	if role := os.Getenv(roleVariable); role != "" {
		if err := playRole(role, os.Args[1:]); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{quick: true, log: io.Discard, temp: t.TempDir(), report: &Report{Machine: Machine{Cores: 1}}}
	t.Cleanup(b.fleet.stop)
	var err error
	if b.server, err = b.fleet.role("server"); err != nil {
		t.Fatal(err)
	}
	if b.client, err = b.fleet.role("client"); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPingPong_ThroughEveryRelay(t *testing.T) {
	b := newBench(t)
	targets, err := b.targets(b.server.Addr, relayTCP, []program{b.relayProgram(), b.timerProgram()})
	if err != nil {
		t.Fatal(err)
	}
	got, err := b.interleave(2, targets, func(target) job {
		return job{Kind: "ping", Conns: 2, Warm: time.Millisecond, For: 30 * time.Millisecond}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range targets {
		for _, o := range got[x.name()] {
			if o.Count == 0 || o.P50 <= 0 || o.P99 < o.P50 || o.All < o.Count {
				t.Errorf("%s: %+v", x.name(), o)
			}
			if x.pid != 0 && processorModel() != "unknown" && o.CPU <= 0 {
				t.Errorf("%s: no processor time was seen", x.name())
			}
		}
	}
	b.reportPing(2, targets, got)
	var out bytes.Buffer
	b.report.text(&out)
	for _, x := range targets {
		if !strings.Contains(out.String(), x.name()) {
			t.Errorf("the table lacks %s:\n%s", x.name(), out.String())
		}
	}
}

func TestStream_BothKindsArriveWhole(t *testing.T) {
	b := newBench(t)
	for _, speak := range []string{"", "postgres"} {
		o, err := b.client.ask(job{Kind: "stream", Addr: b.server.Addr, Speak: speak, Bytes: 5<<20 + 1024})
		if err != nil || o.Bytes != 5<<20+1024 || megabytes(o) <= 0 {
			t.Errorf("%q: %+v, %v", speak, o, err)
		}
	}
}

func TestTimerRelay_Delays(t *testing.T) {
	b := newBench(t)
	relay, err := b.fleet.role("relay", "timer:30ms", b.server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	o, err := b.client.ask(job{Kind: "ping", Addr: relay.Addr, Count: 2})
	if err != nil || len(o.Samples) != 2 {
		t.Fatalf("%+v, %v", o, err)
	}
	for _, s := range o.Samples {
		if time.Duration(s) < 30*time.Millisecond {
			t.Errorf("a round trip took %v under a delay of 30ms", time.Duration(s))
		}
	}
}

func TestClient_SaysWhatFailed(t *testing.T) {
	b := newBench(t)
	addr, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.client.ask(job{Kind: "ping", Addr: addr, Conns: 1}); err == nil {
		t.Error("a ping to nobody succeeded")
	}
	if _, err := b.client.ask(job{Kind: "hold", Addr: b.server.Addr, Conns: 3}); err != nil {
		t.Errorf("the client did not go on after a failure: %v", err)
	}
}

func TestAddUp_OverLabels(t *testing.T) {
	text := "# HELP lost_total x\nlost_total{reason=\"a b\"} 3\nlost_total{reason=\"c\"} 4\nlost_totals 100\nheap 1.5e+03\n"
	if v, err := addUp(strings.NewReader(text), []string{"lost_total", "heap"}); err != nil || v != 1507 {
		t.Errorf("the sum is %v, %v", v, err)
	}
	if _, err := addUp(strings.NewReader(text), []string{"cold"}); err == nil {
		t.Error("a metric that is missing was added up")
	}
}

func TestGoal_Verdicts(t *testing.T) {
	for _, c := range []struct {
		value   study.Spread
		goal    float64
		atLeast bool
		want    string
	}{
		{around(1, 0.9, 1.04, 9), 1.05, false, "met"},
		{around(1, 0.9, 1.1, 9), 1.05, false, "met?"},
		{around(1.2, 1.1, 1.3, 9), 1.05, false, "missed"},
		{around(1.2, 1, 1.3, 9), 1.05, false, "missed?"},
		{around(1.2, 1.1, 1.3, 9), 1, true, "met"},
		{around(0.9, 0.8, 1.3, 9), 1, true, "missed?"},
	} {
		var r Report
		r.goal("x", Cell{Spread: c.value}, "x", c.goal, c.atLeast)
		if got := r.Figures[0].Verdict; got != c.want {
			t.Errorf("%v against %v: %s, want %s", c.value, c.goal, got, c.want)
		}
	}
	var r Report
	r.goal("nothing was measured", Cell{}, "x", 1, false)
	if len(r.Figures) != 0 {
		t.Error("a figure that was not measured got a verdict")
	}
}

func TestPing_HasItsSize(t *testing.T) {
	if n := len(pgInsert()); n != pingSize {
		t.Errorf("the request has %d bytes", n)
	}
	if n := len(pgInsertReply()); n != pingSize {
		t.Errorf("the reply has %d bytes", n)
	}
	if n, m := len(mongoInsert()), len(mongoInsertReply()); n != pingSize || m != pingSize {
		t.Errorf("MongoDB's request and reply have %d and %d bytes", n, m)
	}
	if n := len(pgRow(streamRow)); n != streamRow {
		t.Errorf("a row of a stream has %d bytes", n)
	}
}
