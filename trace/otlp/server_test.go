package otlp

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/trace"
)

// sampled is a sample that ends now.
func sampled(set map[trace.Measure]float64) *trace.Activity {
	now := time.Now()
	a := &trace.Activity{From: now.Add(-time.Second), To: now}
	for m, v := range set {
		a.Set(m, v)
	}
	return a
}

func TestServer_SpansSayWhatItDidMeanwhile(t *testing.T) {
	f := released(t)
	f.Meanwhile = trace.Meanwhile{Activity: *sampled(map[trace.Measure]float64{
		trace.Checkpoint: 1, trace.FlowControl: 0, trace.JournalTime: 3.5, trace.TicketsQueued: 12, trace.SampleCost: 1,
	}), Samples: 1, Age: -250 * time.Millisecond}
	got := map[string]string{}
	for _, kv := range made(&spans{limits: newLimits()}, f)[0].attributes {
		got[string(kv.Key)] = kv.Value.String()
	}
	for k, want := range map[string]string{
		"wirewait.server.checkpoint": "true", "wirewait.server.flow_control": "false", "wirewait.server.journal_ms_per_sync": "3.5",
		"wirewait.server.tickets_queued": "12", "wirewait.server.sample_age_ms": "-250",
		"wirewait.server.sample_cost_ms": "", "wirewait.server.waiting_sync": "", // the one isn't a write's, the other isn't known
	} {
		if got[k] != want {
			t.Errorf("%s is %q, want %q", k, got[k], want)
		}
	}
	f.Meanwhile.Samples = 0
	for _, kv := range made(&spans{limits: newLimits()}, f)[0].attributes {
		if strings.HasPrefix(string(kv.Key), serverPrefix) {
			t.Errorf("without a sample there is %s", kv.Key)
		}
	}
}

func TestServer_MetricsOfTheNewestSample(t *testing.T) {
	t.Parallel()
	var all trace.Activities
	e := setup(t, Options{Activities: func() *trace.Activities { return &all }})
	defer e.Shutdown(t.Context())
	for _, server := range []string{"rs0.a", "rs0.gone", "rs0.silent"} {
		all.Watch(server, time.Minute)
	}
	all.Add("rs0.a", sampled(map[trace.Measure]float64{trace.Checkpoint: 0}))
	newest := sampled(map[trace.Measure]float64{trace.Checkpoint: 1, trace.JournalTime: 3.5, trace.JournalBytes: 4096, trace.TicketWait: 20})
	newest.Lags = []trace.MemberLag{{Member: "rs0.b", Written: trace.NoLag, Durable: time.Second, Applied: 2 * time.Second}}
	all.Add("rs0.a", newest)
	old := sampled(map[trace.Measure]float64{trace.Checkpoint: 1})
	old.To = old.To.Add(-time.Hour)
	all.Add("rs0.gone", old)
	got := scrape(t, e)
	wantSeries(t, got, map[string]float64{
		`wirewait_server_checkpoint{wirewait_server="rs0.a"}`:                                                             1,
		`wirewait_server_journal_time_per_sync_seconds{wirewait_server="rs0.a"}`:                                          0.0035,
		`wirewait_server_journal_bytes_per_s{wirewait_server="rs0.a"}`:                                                    4096,
		`wirewait_server_ticket_wait_time_seconds{wirewait_server="rs0.a"}`:                                               0.02,
		`wirewait_server_member_lag_seconds{wirewait_member="rs0.b",wirewait_progress="applied",wirewait_server="rs0.a"}`: 2,
		`wirewait_server_member_lag_seconds{wirewait_member="rs0.b",wirewait_progress="durable",wirewait_server="rs0.a"}`: 1,
	})
	for name := range got {
		if strings.Contains(name, "rs0.gone") || strings.Contains(name, "rs0.silent") || strings.Contains(name, "written") {
			t.Errorf("there is %s, of which nothing is known now", name)
		}
	}
}

// TestServer_DocsNameEveryMeasure: docs/observe.md has each, and docs/spans.md
// says where.
func TestServer_DocsNameEveryMeasure(t *testing.T) {
	page, err := os.ReadFile("../../docs/observe.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range trace.Measures() {
		if !strings.Contains(string(page), "`"+m.String()+"`") {
			t.Errorf("docs/observe.md doesn't name %s", m)
		}
	}
}
