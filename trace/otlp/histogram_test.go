package otlp

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/wirewait/wirewait/internal/otlprecv"
)

// Our histograms say what the SDK's would, on every bound and beside it.
func TestHistogram_SaysWhatTheSDKs(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]buckets{"waits": waitBuckets, "errors": errorBuckets} {
		t.Run(name, func(t *testing.T) {
			reader := sdkmetric.NewManualReader()
			provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
			bounds := make([]float64, len(b))
			for i, d := range b {
				bounds[i] = d.Seconds()
			}
			sdk, err := provider.Meter("").Float64Histogram("h", metric.WithExplicitBucketBoundaries(bounds...))
			if err != nil {
				t.Fatal(err)
			}
			label := attribute.String("wirewait.link", "app-a")
			ours := newHistogram(b, label)
			record := func(d time.Duration) {
				sdk.Record(t.Context(), d.Seconds(), metric.WithAttributes(label))
				ours.add(d)
			}
			for _, d := range b {
				record(d - 1)
				record(d)
				record(d + 1)
			}
			record(time.Hour)
			record(-time.Hour)
			var rm metricdata.ResourceMetrics
			if err := reader.Collect(t.Context(), &rm); err != nil {
				t.Fatal(err)
			}
			want := rm.ScopeMetrics[0].Metrics[0].Data.(metricdata.Histogram[float64]).DataPoints
			got := ours.appendTo(nil, time.Time{}, time.Time{})
			if len(want) != 1 || want[0].Count != uint64(3*len(b)+2) || len(got) != 1 {
				t.Fatalf("%d and %d points", len(got), len(want))
			}
			if d := got[0].Sum - want[0].Sum; d > 1e-9 || d < -1e-9 { // the order of additions shows
				t.Errorf("the sum is %v, want %v", got[0].Sum, want[0].Sum)
			}
			got[0].Sum = want[0].Sum
			metricdatatest.AssertEqual(t, want[0], got[0], metricdatatest.IgnoreTimestamp())
		})
	}
}

func TestMetrics_NothingRecordedNothingProduced(t *testing.T) {
	t.Parallel()
	got, err := newMetrics("").Produce(t.Context())
	if err != nil || len(got) != 1 || len(got[0].Metrics) != 0 {
		t.Errorf("got %+v (%v)", got, err)
	}
}

// Writes that differ in their outcome share the series of their waits.
func TestMetrics_WaitsAreNotSplitByOutcome(t *testing.T) {
	t.Parallel()
	e := setup(t, Options{})
	defer e.Shutdown(t.Context())
	e.Consume(one())
	f := one()
	f.OK = false
	e.Consume(f)
	labels := `db_operation_name="update",db_system_name="mongodb",wirewait_concern="default",wirewait_link="mongodb_undelayed_update"`
	wantSeries(t, scrape(t, e), map[string]float64{
		`wirewait_operation_duration_seconds_count{` + labels + `,wirewait_outcome="ok"}`:    1,
		`wirewait_operation_duration_seconds_count{` + labels + `,wirewait_outcome="error"}`: 1,
		`wirewait_wait_duration_seconds_count{` + labels + `,wirewait_wait="server"}`:        2,
		`wirewait_wait_duration_seconds_sum{` + labels + `,wirewait_wait="server"}`:          0.006,
	})
}

// Histograms go where OTEL_METRICS_EXPORTER says, with the other metrics.
func TestMetrics_HistogramsReachTheReceiver(t *testing.T) {
	receiver, err := otlprecv.Start("")
	if err != nil {
		t.Fatal(err)
	}
	defer receiver.Stop()
	t.Setenv("OTEL_TRACES_EXPORTER", "none") // whose counters are metrics too
	t.Setenv("OTEL_METRICS_EXPORTER", "otlp")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+receiver.GRPC)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	e := setup(t, Options{})
	e.Consume(one())
	if err := e.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	counts, err := receiver.Counts()
	if err != nil || counts.Metrics != 2 { // operation and wait
		t.Errorf("the receiver got %+v (%v)", counts, err)
	}
	t.Setenv("OTEL_METRICS_PRODUCERS", "prometheus")
	if _, err := Setup(t.Context(), Options{}); err == nil {
		t.Error("OTEL_METRICS_PRODUCERS took the place of the histograms")
	}
}

// While one goroutine records, others scrape.
func TestMetrics_ScrapedWhileRecording(t *testing.T) {
	t.Parallel()
	m := newMetrics("")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			if _, err := m.Produce(context.Background()); err != nil {
				t.Error(err)
			}
		}
	}()
	for _, f := range []string{"a", "b", "c"} {
		for range 1000 {
			x := one()
			c := *x.Conn
			c.Link, x.Conn = f, &c
			m.record(x)
		}
	}
	<-done
}
