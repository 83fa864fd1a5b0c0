package otlp

import (
	"bufio"
	"fmt"
	"io"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wirewait/wirewait/internal/otlprecv"
	"github.com/wirewait/wirewait/trace"
	"github.com/wirewait/wirewait/wire"
)

// scrape reads /metrics as Prometheus would: series to value.
func scrape(t *testing.T, e *Exporter) map[string]float64 {
	t.Helper()
	w := httptest.NewRecorder()
	e.MetricsHandler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("/metrics answered %d: %s", w.Code, w.Body)
	}
	series := make(map[string]float64)
	for lines := bufio.NewScanner(io.Reader(w.Body)); lines.Scan(); {
		line := lines.Text()
		if i := strings.LastIndexByte(line, ' '); i > 0 && line[0] != '#' {
			v, err := strconv.ParseFloat(line[i+1:], 64)
			if err != nil {
				t.Fatalf("/metrics has %q: %v", line, err)
			}
			series[line[:i]] = v
		}
	}
	return series
}

func wantSeries(t *testing.T, got map[string]float64, want map[string]float64) {
	t.Helper()
	for name, v := range want {
		if g, ok := got[name]; !ok {
			t.Errorf("/metrics lacks %s", name)
		} else if d := g - v; d > 1e-9 || d < -1e-9 {
			t.Errorf("%s is %v, want %v", name, g, v)
		}
	}
	if t.Failed() {
		for name, v := range got {
			if !strings.Contains(name, "_bucket") {
				t.Logf("%s %v", name, v)
			}
		}
	}
}

func TestMetrics_WaitsByPart(t *testing.T) {
	t.Parallel()
	e := setup(t, Options{})
	defer e.Shutdown(t.Context())
	for _, f := range fixtures() {
		if f.name != "mongodb_majority_delayed" && f.name != "postgres_failed" && f.name != "mongodb_read" {
			continue
		}
		c := *f.conn
		c.Link = "app-a"
		e.Consume(&trace.Finished{Exchange: f.x, Conn: &c, Waits: trace.Split(f.x)})
	}
	write := `db_operation_name="insert",db_system_name="mongodb",wirewait_concern="majority",wirewait_link="app-a"`
	read := `db_operation_name="find",db_system_name="mongodb",wirewait_link="app-a"`
	failed := `db_operation_name="INSERT",db_system_name="postgresql",wirewait_concern="on",wirewait_link="app-a"`
	got := scrape(t, e)
	wantSeries(t, got, map[string]float64{
		`wirewait_operation_duration_seconds_count{` + write + `,wirewait_outcome="ok"}`:                        1,
		`wirewait_operation_duration_seconds_sum{` + write + `,wirewait_outcome="ok"}`:                          0.087,
		`wirewait_operation_duration_seconds_bucket{` + write + `,wirewait_outcome="ok",le="0.05"}`:             0,
		`wirewait_operation_duration_seconds_bucket{` + write + `,wirewait_outcome="ok",le="0.1"}`:              1,
		`wirewait_operation_duration_seconds_count{` + read + `,wirewait_outcome="ok"}`:                         1,
		`wirewait_operation_duration_seconds_count{` + failed + `,wirewait_outcome="error"}`:                    1,
		`wirewait_wait_duration_seconds_sum{` + write + `,wirewait_wait="receive"}`:                             0.002,
		`wirewait_wait_duration_seconds_sum{` + write + `,wirewait_wait="request"}`:                             0.040,
		`wirewait_wait_duration_seconds_sum{` + write + `,wirewait_wait="server"}`:                              0.004,
		`wirewait_wait_duration_seconds_sum{` + write + `,wirewait_wait="reply"}`:                               0.041,
		`wirewait_delay_error_seconds_count{wirewait_direction="to_server",wirewait_link="app-a"}`:              2,
		`wirewait_delay_error_seconds_sum{wirewait_direction="to_server",wirewait_link="app-a"}`:                0,
		`wirewait_delay_error_seconds_sum{wirewait_direction="to_client",wirewait_link="app-a"}`:                0.002,
		`wirewait_delay_error_seconds_bucket{wirewait_direction="to_client",wirewait_link="app-a",le="0.001"}`:  2,
		`wirewait_delay_error_seconds_bucket{wirewait_direction="to_client",wirewait_link="app-a",le="0.0005"}`: 0,
	})
	for name := range got {
		if strings.Contains(name, "orders") || strings.Contains(name, `"replication"`) {
			t.Errorf("/metrics has %s", name)
		}
	}
}

func TestMetrics_WhateverClientsSendSeriesAreFew(t *testing.T) {
	t.Parallel()
	e := setup(t, Options{})
	defer e.Shutdown(t.Context())
	for i := range 5000 {
		f := one()
		f.Operation = fmt.Sprint("unheard-of-", i)
		f.Mongo.WriteConcern.W = fmt.Sprint("tag", i)
		f.ErrorCode, f.OK = fmt.Sprint(i), false
		e.Consume(f)
	}
	got := scrape(t, e)
	wantSeries(t, got, map[string]float64{
		`wirewait_operation_duration_seconds_count{db_operation_name="_OTHER",db_system_name="mongodb",` +
			`wirewait_concern="tag",wirewait_link="mongodb_undelayed_update",wirewait_outcome="error"}`: 5000,
	})
	if len(got) > 200 {
		t.Errorf("%d series for one link", len(got))
	}
}

func TestMetrics_BackgroundIsNotCounted(t *testing.T) {
	t.Parallel()
	spans := &collect{}
	e := setup(t, Options{SpanExporter: spans})
	monitor, replication := one(), one()
	monitor.Mongo.Monitor = true
	replication.Peer = &wire.Peer{Replication: "physical"}
	e.Consume(monitor)
	e.Consume(replication)
	for name := range scrape(t, e) {
		if strings.HasPrefix(name, "wirewait_operation") || strings.HasPrefix(name, "wirewait_wait") {
			t.Errorf("/metrics has %s", name)
		}
	}
	e.Shutdown(t.Context())
	if len(spans.all) != 0 {
		t.Errorf("%d spans", len(spans.all))
	}
}

func TestMetrics_Counters(t *testing.T) {
	t.Parallel()
	counters := trace.Counters{Dropped: 13, Marker: &trace.Marker{Scenario: "evening", Step: "slow"}, Links: []trace.LinkCounters{{
		Link: "app-a", ConnectionsOpen: 1, ConnectionsTotal: 2, Exchanges: 6,
		Encrypted: 7, Opaque: 8, DecodeFailures: map[string]uint64{"bson": 9, "compressed_bomb": 10},
		DialFailures: 11, AcceptFailures: 12,
		Ways: [2]trace.WayCounters{
			{Bytes: 4, Live: 3, Stalled: 14500 * time.Millisecond, Stalls: 16, Paused: 1, Held: 17, PlannedSeconds: 18.5, AchievedSeconds: 18.75},
			{Bytes: 5, Stalled: 15500 * time.Millisecond},
		},
	}, {Link: "app-b", ConnectionsOpen: 20}}, Rules: []trace.RuleCounters{{
		Rule: "lost", Effect: "lose_reply", Link: "app-a", Matches: 21, Hits: 22, NotApplicable: map[string]uint64{"in_block": 23},
	}}}
	e := setup(t, Options{Counters: func() trace.Counters { return counters }, SpanExporter: &collect{}})
	defer e.Shutdown(t.Context())
	a := `wirewait_link="app-a"`
	toServer, toClient := `{wirewait_direction="to_server",`+a+`}`, `{wirewait_direction="to_client",`+a+`}`
	wantSeries(t, scrape(t, e), map[string]float64{
		`wirewait_connections_open{` + a + `}`:                                                                                            1,
		`wirewait_connections_open{wirewait_link="app-b"}`:                                                                                20,
		`wirewait_connections_total{` + a + `}`:                                                                                           2,
		`wirewait_exchanges_total{` + a + `}`:                                                                                             6,
		`wirewait_connections_opaque_total{` + a + `,wirewait_reason="encrypted"}`:                                                        7,
		`wirewait_connections_opaque_total{` + a + `,wirewait_reason="other"}`:                                                            8,
		`wirewait_decode_failures_total{` + a + `,wirewait_reason="bson"}`:                                                                9,
		`wirewait_decode_failures_total{` + a + `,wirewait_reason="compressed_bomb"}`:                                                     10,
		`wirewait_dial_failures_total{` + a + `}`:                                                                                         11,
		`wirewait_accept_failures_total{` + a + `}`:                                                                                       12,
		`wirewait_exchanges_dropped_total`:                                                                                                13,
		`wirewait_scenario_step{wirewait_scenario="evening",wirewait_scenario_step="slow"}`:                                               1,
		`wirewait_bytes_total` + toServer:                                                                                                 4,
		`wirewait_bytes_total` + toClient:                                                                                                 5,
		`wirewait_rule_matches_total{` + a + `,wirewait_rule="lost",wirewait_rule_effect="lose_reply"}`:                                   21,
		`wirewait_rule_hits_total{` + a + `,wirewait_rule="lost",wirewait_rule_effect="lose_reply"}`:                                      22,
		`wirewait_rule_not_applicable_total{` + a + `,wirewait_reason="in_block",wirewait_rule="lost",wirewait_rule_effect="lose_reply"}`: 23,
		`wirewait_bytes_live` + toServer:                                                                                                  3,
		`wirewait_bytes_live` + toClient:                                                                                                  0,
		`wirewait_stalled_time_seconds_total` + toServer:                                                                                  14.5,
		`wirewait_stalled_time_seconds_total` + toClient:                                                                                  15.5,
		`wirewait_stalls_total` + toServer:                                                                                                16,
		`wirewait_connections_paused` + toServer:                                                                                          1,
		`wirewait_delay_runs_total` + toServer:                                                                                            17,
		`wirewait_delay_planned_time_seconds_total` + toServer:                                                                            18.5,
		`wirewait_delay_achieved_time_seconds_total` + toServer:                                                                           18.75,
		`wirewait_spans_exported_total`:                                                                                                   0,
		`wirewait_spans_dropped_total{wirewait_reason="queue_full"}`:                                                                      0,
	})
}

func TestMetricsAreExportedOnlyIfAsked(t *testing.T) {
	receiver, err := otlprecv.Start("")
	if err != nil {
		t.Fatal(err)
	}
	defer receiver.Stop()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+receiver.GRPC)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	for exporter, want := range map[string]bool{"": false, "none": false, "otlp": true} {
		t.Setenv("OTEL_METRICS_EXPORTER", exporter)
		before, err := receiver.Counts()
		if err != nil {
			t.Fatal(err)
		}
		e := setup(t, Options{})
		e.Consume(one())
		if err := e.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		after, err := receiver.Counts()
		if err != nil {
			t.Fatal(err)
		}
		if got := after.Metrics > before.Metrics; got != want || after.Spans == before.Spans {
			t.Errorf("OTEL_METRICS_EXPORTER=%q: %+v then %+v", exporter, before, after)
		}
	}
	t.Setenv("OTEL_METRICS_EXPORTER", "zipkin")
	if _, err := Setup(t.Context(), Options{}); err == nil {
		t.Error("OTEL_METRICS_EXPORTER=zipkin was taken")
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	for w, want := range map[string]string{
		"": "default", "majority": "majority", "0": "0", "3": "3", "4": "n", "50": "n", "multiDC": "tag", "{dc: 2}": "tag", "-1": "tag",
	} {
		if got := wLabel(w); got != want {
			t.Errorf("w: %s is labelled %s, want %s", w, got, want)
		}
	}
	f := &trace.Finished{Exchange: &wire.Exchange{Protocol: wire.Postgres, Write: true}}
	for level, want := range map[string]string{"remote_apply": "remote_apply", "off": "off", "": "unknown", "sometimes": "unknown"} {
		f.Postgres.SynchronousCommit = level
		if got := concernLabel(f); got != want {
			t.Errorf("synchronous_commit %q is labelled %s, want %s", level, got, want)
		}
	}
	f.Postgres.InBlock = true
	if got := concernLabel(f); got != inTransaction {
		t.Errorf("a write in a block is labelled %s", got)
	}
}
