package otlp

import (
	"bytes"
	"context"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spanpb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/wirewait/wirewait/internal/otlprecv"
	"github.com/wirewait/wirewait/trace"
)

// The whole way: exchanges offered to a tracer arrive as spans in another
// process, over both transports, with their parents, as the golden files say.
func TestSpansArriveInAnotherProcess(t *testing.T) {
	for _, protocol := range []string{"grpc", "http/protobuf"} {
		t.Run(protocol, func(t *testing.T) {
			dump := filepath.Join(t.TempDir(), "spans.json")
			receiver, err := otlprecv.Start(dump)
			if err != nil {
				t.Fatal(err)
			}
			defer receiver.Stop()
			address := receiver.HTTP
			if protocol == "grpc" {
				address = receiver.GRPC
			}
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+address)
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
			t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")

			e := offerAll(t, Options{Version: "1.2.3"})
			counts, err := receiver.Counts()
			if err != nil {
				t.Fatal(err)
			}
			if e.Dropped() != 0 || e.Exported() != counts.Spans || counts.Spans == 0 || counts.Bytes == 0 {
				t.Errorf("%d exported, %d dropped; the receiver got %+v", e.Exported(), e.Dropped(), counts)
			}
			if err := receiver.Stop(); err != nil {
				t.Errorf("the receiver ended with %v", err)
			}
			compareGoldens(t, readDump(t, dump))
		})
	}
}

// offerAll runs all fixtures through a tracer and an exporter, to their end.
func offerAll(t *testing.T, o Options) *Exporter {
	t.Helper()
	e, err := Setup(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	tracer := trace.New(100, e)
	for _, f := range fixtures() {
		if !tracer.Offer(f.x, f.conn) {
			t.Fatalf("%s found no room", f.name)
		}
	}
	tracer.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := e.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	return e
}

// readDump also checks what all requests have in common: who sent them.
func readDump(t *testing.T, dump string) (spans []*spanpb.Span) {
	t.Helper()
	text, err := os.ReadFile(dump)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var m tracepb.ExportTraceServiceRequest
		if err := protojson.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		for _, rs := range m.ResourceSpans {
			who := attributes(rs.Resource.Attributes)
			for key, want := range map[string]string{
				"service.name": `"wirewait"`, "service.version": `"1.2.3"`,
				"deployment.environment.name": `"test"`, "telemetry.sdk.language": `"go"`,
			} {
				if string(who[key]) != want {
					t.Errorf("resource says %s is %s, want %s", key, who[key], want)
				}
			}
			for _, ss := range rs.ScopeSpans {
				spans = append(spans, ss.Spans...)
			}
		}
	}
	return spans
}

func TestServiceNameOfTheEnvironmentWins(t *testing.T) {
	t.Setenv("OTEL_SERVICE_NAME", "orders-wan")
	res, err := newResource(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := res.Set().Value("service.name"); v.AsString() != "orders-wan" {
		t.Errorf("service.name is %q", v.AsString())
	}
}

func TestChildrenOptions(t *testing.T) {
	t.Parallel()
	for children, want := range map[Children]map[string]int{
		ChildrenAuto:   {"mongodb_majority_delayed": 4, "mongodb_undelayed_update": 1, "mongodb_unacknowledged": 2},
		ChildrenAlways: {"mongodb_majority_delayed": 4, "mongodb_undelayed_update": 4, "mongodb_unacknowledged": 2},
		ChildrenNever:  {"mongodb_majority_delayed": 1, "mongodb_undelayed_update": 1, "mongodb_unacknowledged": 1},
	} {
		spans := &collect{}
		offerAll(t, Options{Children: children, SpanExporter: spans})
		got := spans.byLink()
		for name, n := range want {
			if got[name] != n {
				t.Errorf("children %s: %s has %d spans, want %d", children, name, got[name], n)
			}
		}
	}
	if _, err := Setup(t.Context(), Options{Children: "some"}); err == nil {
		t.Error("children: some was taken")
	}
}

func TestSamplerOfTheEnvironment(t *testing.T) {
	t.Setenv("OTEL_TRACES_SAMPLER", "parentbased_always_off")
	spans := &collect{}
	offerAll(t, Options{SpanExporter: spans})
	for link := range spans.byLink() {
		switch link { // those with a sampled parent
		case "mongodb_majority_delayed", "postgres_insert_delayed":
		default:
			t.Errorf("%s has a span", link)
		}
	}
	if len(spans.all) != 8 {
		t.Errorf("%d spans, want those of two writes", len(spans.all))
	}
}

func TestSampler(t *testing.T) {
	for _, tt := range []struct {
		name, arg string
		low, high int // of 1,000 writes
		err       string
	}{
		{"", "", 1000, 1000, ""},
		{"always_on", "", 1000, 1000, ""},
		{" ALWAYS_OFF ", "", 0, 0, ""},
		{"traceidratio", "", 1000, 1000, ""},
		{"traceidratio", "0.1", 40, 200, ""},
		{"parentbased_traceidratio", "0.1", 40, 200, ""},
		{"parentbased_traceidratio", "0", 0, 0, ""},
		{"sometimes", "", 0, 0, "OTEL_TRACES_SAMPLER=sometimes"},
		{"parentbased_", "", 0, 0, "OTEL_TRACES_SAMPLER=parentbased_"},
		{"traceidratio", "1%", 0, 0, "OTEL_TRACES_SAMPLER_ARG=1%"},
		{"traceidratio", "1.1", 0, 0, "use a number from 0 to 1"},
		{"traceidratio", "NaN", 0, 0, "use a number from 0 to 1"},
	} {
		t.Run(tt.name+" "+tt.arg, func(t *testing.T) {
			t.Setenv("OTEL_TRACES_SAMPLER", tt.name)
			t.Setenv("OTEL_TRACES_SAMPLER_ARG", tt.arg)
			spans := &collect{}
			e, err := Setup(t.Context(), Options{SpanExporter: spans})
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got error %v, want one that says %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for range 1000 {
				e.Consume(one())
			}
			if err := e.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := len(spans.all); n < tt.low || n > tt.high {
				t.Errorf("%d spans, want %d to %d", n, tt.low, tt.high)
			}
		})
	}
}

func FuzzParent(f *testing.F) {
	for _, s := range []string{
		traceparent, parentOf("02", "00"), "", "00", traceparent + "-future", "01" + traceparent[2:] + "-future",
		"ff" + traceparent[2:], "00-" + traceID + "-0000000000000000-01",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		sc, ok := parent(s)
		if !ok {
			return
		}
		id, span := sc.TraceID(), sc.SpanID()
		if !sc.IsValid() || !sc.IsRemote() || s[3:35] != hex.EncodeToString(id[:]) || s[36:52] != hex.EncodeToString(span[:]) {
			t.Errorf("%q was read as %v %v", s, id, span)
		}
	})
}

func TestParent(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]struct{ ok, sampled bool }{
		traceparent:                              {true, true},
		traceparent[:53] + "00":                  {true, false},
		traceparent[:53] + "03":                  {true, true},
		"01" + traceparent[2:] + "-more":         {true, true},
		traceparent + "-more":                    {},
		"01" + traceparent[2:] + "more":          {},
		"ff" + traceparent[2:]:                   {},
		"00-" + traceID + "-0000000000000000-01": {},
		"00-" + traceID + "-B7AD6B7169203331-01": {},
		"zz" + traceparent[2:]:                   {},
		traceparent[:54]:                         {},
		"":                                       {},
	} {
		sc, ok := parent(s)
		if ok != want.ok || sc.IsSampled() != want.sampled {
			t.Errorf("%q: valid %v sampled %v, want %+v", s, ok, sc.IsSampled(), want)
		}
	}
}
