package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/wirewait/wirewait/internal/lab"
	"github.com/wirewait/wirewait/internal/lab/mongod"
	"github.com/wirewait/wirewait/proxy/admin"
)

// TestRun_WhatServersDidMeanwhile is a person who looks for it in all places: on
// spans, in the report, in the metrics, and without a wirewait.
func TestRun_WhatServersDidMeanwhile(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	set, err := mongod.StartSet(ctx, mongod.SetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	file := filepath.Join(t.TempDir(), "wirewait.yaml")
	text := fmt.Sprintf(`network:
  - {between: [app, sgp], rtt: 0}
clusters:
  rs0:
    protocol: mongodb
    observe: "mongodb://%[1]s/"
    observe_every: 100ms
    members:
      a: {site: sgp, upstream: "%[1]s"}
      b: {site: sgp, upstream: "%[2]s"}
links:
  - {from: app, to: rs0.a, listen: "127.0.0.1:0"}
`, set.Member("a").Addr(), set.Member("b").Addr())
	writeFile(t, file, text)
	w := start(t, []string{"OTEL_TRACES_EXPORTER=console"}, file)
	address := w.adminAddr()
	uri := "mongodb://" + w.line(`^link app-rs0\.a: (\S+) -> `)[1] + "/?directConnection=true"
	withMongo(t, uri, func(c *mongo.Client) {
		until(t, "the report says how long the journal's syncs take", func() bool {
			insert(t, c, 1, writeconcern.Majority())
			for _, s := range reportOf(t, address).Observed {
				for _, d := range s.Samples {
					if s.Server == "rs0.a" && d.Values["journal_ms_per_sync"] > 0 && len(d.Lags) == 2 && d.Lags[0].Member == "rs0.b" {
						return true
					}
				}
			}
			return false
		})
		insert(t, c, 5, writeconcern.Majority())
	})
	_, out, _ := command(t, "report", "--admin", address)
	for _, want := range []string{`rs0\.a, by second`, `rs0\.b, by second`, `cost ms`, `syncs/s +ms/sync +journal/s`, `members behind it: rs0\.b `} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("the report has no %s:\n%s", want, out)
		}
	}
	if scrape := get(t, "http://"+address+"/metrics"); !strings.Contains(scrape, `wirewait_server_journal_syncs_per_s{wirewait_server="rs0.a"}`) {
		t.Error("the metrics have nothing of the journal")
	}
	// A file that asks nobody any more.
	writeFile(t, file, regexp.MustCompile(`(?m)^ +observe.*\n`).ReplaceAllString(text, ""))
	w.signal(syscall.SIGHUP)
	until(t, "nobody is asked", func() bool { return len(reportOf(t, address).Observed) == 0 })
	w.signal(syscall.SIGTERM)
	w.stopped()
	covered := 0
	for dec := json.NewDecoder(&w.stdout); dec.More(); {
		var s consoleSpan
		if err := dec.Decode(&s); err != nil {
			t.Fatal(err)
		}
		age, _ := s.attribute("wirewait.server.sample_age_ms").(float64)
		if took, _ := s.attribute("wirewait.server.journal_ms_per_sync").(float64); took > 0 && age < 0 {
			covered++
		}
	}
	if covered == 0 {
		t.Error("no span says what its server did meanwhile")
	}
}

// TestReport_TicketsWhereTheyTell: and by which rule.
func TestReport_TicketsWhereTheyTell(t *testing.T) {
	s := &admin.ObservedServer{Server: "rs0.a", TicketRule: "a rule", Samples: []admin.Sample{
		{Values: map[string]float64{"tickets": 4, "tickets_available": 4, "read_tickets": 4, "read_tickets_available": 4, "flow_control": 0, "checkpoint": 1, "checkpoint_ms": 321}},
	}}
	idle := observedTable(s)
	if strings.Contains(idle, "tickets") || strings.Contains(idle, "flow") || !regexp.MustCompile(`checkpoint +last ms\n\S+ +yes +321.0`).MatchString(idle) {
		t.Errorf("nobody wants a ticket:\n%s", idle)
	}
	busy := map[string]float64{"tickets": 4, "tickets_available": 0, "tickets_queued": 9, "tickets_short": 1, "read_tickets": 4, "read_tickets_available": 4}
	s.Samples = append(s.Samples, admin.Sample{Values: busy})
	text := observedTable(s)
	if !regexp.MustCompile(`tickets +free +queued +short\n`).MatchString(text) || !strings.Contains(text, "tickets, a rule\n") || strings.Contains(text, "read tickets") {
		t.Errorf("nine want one:\n%s", text)
	}
}

// TestReport_AsksAServerItself: without a wirewait.
func TestReport_AsksAServerItself(t *testing.T) {
	peer := startMongo(t)
	uri := "mongodb://" + peer.Addr() + "/"
	code, out, errs := command(t, "report", "--admin", "off", "--observe", uri, "--every", "20ms")
	if code != 0 || !strings.HasPrefix(out, peer.Addr()+", by second") || !strings.Contains(out, "nothing, in the last ") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	for _, uri := range []string{"redis://u:hunter2@h/", "mongodb://u:hunter2@h:99999/"} {
		code, out, errs := command(t, "report", "--admin", "off", "--observe", uri)
		if code != 1 || !strings.Contains(errs, "is no URI") || strings.Contains(out+errs, "hunter2") {
			t.Errorf("%s: exit %d\n%s%s", uri, code, out, errs)
		}
	}
}

func TestReport_AsksPostgresItself(t *testing.T) {
	pg := startPostgres(t, lab.PostgresOptions{})
	code, out, errs := command(t, "report", "--admin", "off", "--observe", pg.URL(pg.Addr()), "--every", "20ms", "--json")
	var r reported
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
		t.Fatalf("exit %d, %v\n%s%s", code, err, out, errs)
	}
	if len(r.Observed) != 1 || len(r.Observed[0].Samples) == 0 || r.Observed[0].Server != pg.Addr() {
		t.Fatalf("%+v", r.Observed)
	}
	for _, name := range []string{"journal_bytes_per_s", "waiting_lock", "checkpoint", "sample_cost_ms"} {
		if _, ok := r.Observed[0].Samples[0].Values[name]; !ok {
			t.Errorf("it doesn't say %s: %v", name, r.Observed[0].Samples[0].Values)
		}
	}
}
